"""Runs built kernels: a cubin and its manifest, on CUDA tensors, with cuda-bindings and without TVM.

    kernel = gemmspec.runtime.load("build/hopper_n256.json")
    D = kernel(A, B)                  # or kernel(A, B, D): on torch's current stream, also while a graph is captured
    step = kernel.bind(A, B, D)       # checks and tensor maps once;
    step()                            # then this is all that a launch costs
    compiled = torch.compile(lambda A, B: kernel.ops.matmul(A, B).relu())

    matmul = gemmspec.runtime.select("build", "tune.sqlite")
    matmul(A, B, D)                   # the best of the kernels in build/ for this shape

Imports nothing else of gemmspec: the folder `gemmspec/runtime`, Python and cuda-bindings are enough where kernels run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gemmspec.runtime.choice import Card, Choice
from gemmspec.runtime.hang import HangError
from gemmspec.runtime.kernel import Bound, Kernel
from gemmspec.runtime.manifest import Manifest, manifest_of, read_manifest
from gemmspec.runtime.problem import ArgumentProblem, DriverProblem, LoadProblem, TableProblem
from gemmspec.runtime.selection import Selection
from gemmspec.runtime.table import read_table

__all__ = [
    "ArgumentProblem", "Bound", "Card", "Choice", "DriverProblem", "HangError", "Kernel", "LoadProblem", "Manifest",
    "Selection", "TableProblem", "load", "select",
]  # fmt: skip


_Made = TypeVar("_Made", Kernel, Selection)


class Built(Protocol):
    """What `gemmspec.build` gives."""

    @property
    def name(self) -> str: ...
    @property
    def cubin(self) -> bytes | None: ...
    @property
    def manifest(self) -> Any: ...
    @property
    def note(self) -> str: ...


def load(artifact: Built | str | os.PathLike[str], *, overlap: bool = True) -> Kernel:
    """Return the kernel of what `gemmspec.build` gives, or of NAME.json or NAME.cubin beside each other in a folder.

    `overlap`: let a launch set itself up while the kernels before it in its stream still run; it waits for them before
    it touches memory. Needs no GPU yet. Raises `LoadProblem` where a file is missing or not of a kernel.
    """
    return _ready(_load(artifact, overlap))


def _load(artifact: Built | str | os.PathLike[str], overlap: bool = True) -> Kernel:
    if isinstance(artifact, (str, os.PathLike)):
        return _from_files(Path(artifact), overlap)
    manifest = artifact.manifest
    if artifact.cubin is None or manifest is None:
        why = f": {artifact.note}" if artifact.note else ""
        raise LoadProblem(f"`{artifact.name}` was built without a cubin{why}")
    read = manifest_of(manifest.data, f"the manifest of `{artifact.name}`")
    return Kernel(read, artifact.cubin, overlap=overlap)


def select(
    kernels: Built | Kernel | str | os.PathLike[str] | Iterable[Built | Kernel | str | os.PathLike[str]],
    table: str | os.PathLike[str] | None = None,
    *,
    card: Card | None = None,
) -> Selection:
    """Return kernels that are called as one: the best of them for the shape of each call.

    kernels: folders of NAME.json and NAME.cubin, or what `load` takes, one or several. table: what `gemmspec tune`
    wrote, SQLite or its export; without one, a model decides. card: choose as on this card, whatever device is at hand.
    Needs no GPU yet. Raises `LoadProblem` and `TableProblem`.
    """
    several = kernels if isinstance(kernels, Iterable) and not isinstance(kernels, str) else [kernels]
    found: dict[str, Kernel] = {}
    for item in several:
        for kernel in _kernels(item):
            found.setdefault(kernel.content, kernel)
    rows = read_table(Path(table)) if table is not None else []
    return _ready(Selection(list(found.values()), rows, card_of=None if card is None else lambda device: card))


def _ready(made: _Made) -> _Made:
    """Register its operators where torch is in use: torch.compile can use them, but not register them."""
    if "torch" in sys.modules:
        _ = made.ops
    return made


def _kernels(item: Built | Kernel | str | os.PathLike[str]) -> list[Kernel]:
    if isinstance(item, Kernel):
        return [item]
    if isinstance(item, (str, os.PathLike)) and Path(item).is_dir():
        there = sorted(path for path in Path(item).glob("*.json") if path.with_suffix(".cubin").is_file())
        if not there:
            raise LoadProblem(f"there is no kernel in the folder {item}")
        return [_load(path) for path in there]
    return [_load(item)]


def _from_files(path: Path, overlap: bool) -> Kernel:
    stem = path.with_suffix("") if path.suffix in (".json", ".cubin") else path
    manifest = read_manifest(stem.with_name(f"{stem.name}.json"))
    image = stem.with_name(f"{stem.name}.cubin")
    try:
        cubin = image.read_bytes()
    except OSError as error:
        raise LoadProblem(f"cannot read {image}: {error.strerror}") from error
    if not cubin.startswith(b"\x7fELF"):
        raise LoadProblem(f"{image} is no cubin: it does not begin as an ELF file does")
    return Kernel(manifest, cubin, overlap=overlap)
