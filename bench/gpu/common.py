"""What the scripts for the device share: the kernels in a folder, and where results go.

Needs Python, torch and cuda-bindings; of gemmspec only `gemmspec.runtime`, found beside this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from gemmspec.runtime import Kernel, load  # noqa: E402
from gemmspec.runtime.watchdog import Watchdog  # noqa: E402

__all__ = ["ROOT", "Kernel", "Watchdog", "kernels", "options", "pairs", "types", "watch", "write"]
OUT = Path(os.environ.get("OUT") or ROOT / "build" / "results")
HUNG = OUT / "hung.txt"


def options(about: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all have."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "gpu", help="folder of cubins and manifests")
    parser.add_argument("--only", default="", help="take only kernels with this in their name; commas for several")
    parser.add_argument("--no-overlap", dest="overlap", action="store_false", help="launches wait for those before")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds until the GPU is said to hang")
    return parser


def kernels(folder: Path, only: str, overlap: bool = True) -> dict[str, Kernel]:
    """Return the kernels in a folder by name, but for those that hung before."""
    wanted = [word for word in only.split(",") if word]
    hung = HUNG.read_text(encoding="utf-8").split() if HUNG.is_file() else []
    for name in hung:
        print(f"LEFT OUT: {name}, which hung", flush=True)
    found = {
        path.stem: load(path, overlap=overlap)
        for path in sorted(folder.glob("*.json"))
        if path.with_suffix(".cubin").is_file()
        and path.stem not in hung
        and (not wanted or any(word in path.stem for word in wanted))
    }
    if not found:
        sys.exit(f"no kernel in {folder}: run bench/gpu/build.py, and carry that folder")
    return found


def watch(patience: float) -> Watchdog:
    """Return a watchdog that writes down the kernel that hangs, so that the next run leaves it out."""

    def write_down(doing: str) -> None:
        OUT.mkdir(parents=True, exist_ok=True)
        with HUNG.open("a", encoding="utf-8") as file:
            file.write(f"{doing.split()[0]}\n")

    return Watchdog(patience, write_down)


def types(kernel: Kernel) -> tuple[str, str]:
    """Return the types of A (and B) and of D."""
    a, _, d = kernel.manifest.tensors
    return a.dtype, d.dtype


def pairs(text: str) -> list[tuple[int, int, int]]:
    """Return the shapes of `128x4096x4096,1024`; one number is a cube."""
    shapes: list[tuple[int, int, int]] = []
    for part in text.split(","):
        numbers = [int(n) for n in part.split("x")]
        m, n, k = numbers * 3 if len(numbers) == 1 else numbers
        shapes.append((m, n, k))
    return shapes


def write(name: str, data: dict[str, Any], table: list[str]) -> None:
    """Write NAME.json and NAME.md where the device tool fetches files from, or into build/, and print the table."""
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (OUT / f"{name}.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table), flush=True)
