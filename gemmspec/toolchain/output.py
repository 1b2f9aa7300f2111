"""Writes several files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gemmspec.files import FileProblem, reason


def write_together(folder: Path, contents: dict[str, str | bytes]) -> tuple[Path, ...]:
    """Write files into a folder, made if need be: all under other names first, then renamed."""
    waiting: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            waiting.append((Path(temporary), folder / name))
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            Path(temporary).chmod(0o666 & ~_mask())
        for _, path in waiting:
            if path.is_dir():
                raise FileProblem(f"cannot write {path}: it is a folder")
        for temporary, path in waiting:
            temporary.replace(path)
    except OSError as error:
        raise FileProblem(f"cannot write into {folder}: {reason(error)}") from error
    finally:
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)
    return tuple(path for _, path in waiting)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
