"""Reading and writing files so that every failure is a `FileProblem` with a message for the user.

Also finds the files that ship with the package, in a wheel or in a checkout. Knows nothing of specs.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

STDIN = "-"
SUFFIX = ".gemmspec"
_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOSPC: "no space left on the device",
    errno.EROFS: "the file system is read-only",
}


class FileProblem(Exception):
    """A file that cannot be read or written; the text says which and why."""


def find_specs(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files that the user named, and all `*.gemmspec` below the folders that the user named, once each."""
    seen: set[str] = set()
    for path in paths:
        for found in _below(path) if path != STDIN and Path(path).is_dir() else (path,):
            if found not in seen:
                seen.add(found)
                yield found


def _below(folder: str) -> list[str]:
    def fail(error: OSError) -> None:
        raise FileProblem(f"cannot read folder {error.filename}: {reason(error)}")

    found = [
        str(Path(root) / name)
        for root, _, names in os.walk(folder, onerror=fail)
        for name in names
        if name.endswith(SUFFIX)
    ]
    if not found:
        raise FileProblem(f"no *{SUFFIX} file in folder {folder}")
    return sorted(found)


def read_bytes(path: str) -> bytes:
    """Return what is in a file, or in standard input for `-`."""
    name = shown_name(path)
    try:
        return sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise FileProblem(f"cannot read {name}: {reason(error)}") from error
    except ValueError as error:  # a NUL in the path
        raise FileProblem(f"cannot read {name!r}: {error}") from error


def shown_name(path: str) -> str:
    """Return what a path is called in messages."""
    return "<stdin>" if path == STDIN else path


def atomic_write(path: str | Path, content: str | bytes) -> None:
    """Write a whole file or nothing: by a temporary file beside it and a rename. Keeps the mode; follows links."""
    target = Path(path).resolve()
    import tempfile  # slow to import, and lint writes nothing

    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileProblem(f"cannot write {path}: {reason(error)}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(_mode(target))
        Path(temporary).replace(target)
    except OSError as error:
        raise FileProblem(f"cannot write {path}: {reason(error)}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def shipped(folder: str) -> Path:
    """Return a folder that the wheel holds inside the package and the checkout beside it (`specs`)."""
    package = Path(__file__).parent
    inside = package / folder
    return inside if inside.is_dir() else package.parent / folder


def reason(error: OSError) -> str:
    """Return why the system refused, in words."""
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


def _mode(target: Path) -> int:
    """Return the mode that a file has, or that a new one gets."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
