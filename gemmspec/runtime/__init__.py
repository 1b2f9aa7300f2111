"""Runs built kernels: a cubin and its manifest, on CUDA tensors, with cuda-bindings and without TVM.

    kernel = gemmspec.runtime.load("build/hopper_n256.json")
    D = kernel(A, B)                  # or kernel(A, B, D): on torch's current stream, also while a graph is captured
    step = kernel.bind(A, B, D)       # checks and tensor maps once;
    step()                            # then this is all that a launch costs
    compiled = torch.compile(lambda A, B: kernel.ops.matmul(A, B).relu())

Imports nothing else of gemmspec: the folder `gemmspec/runtime`, Python and cuda-bindings are enough where kernels run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from gemmspec.runtime.kernel import Bound, Kernel
from gemmspec.runtime.manifest import Manifest, manifest_of, read_manifest
from gemmspec.runtime.problem import ArgumentProblem, DriverProblem, LoadProblem

__all__ = ["ArgumentProblem", "Bound", "DriverProblem", "Kernel", "LoadProblem", "Manifest", "load"]


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
    if isinstance(artifact, (str, os.PathLike)):
        return _from_files(Path(artifact), overlap)
    manifest = artifact.manifest
    if artifact.cubin is None or manifest is None:
        why = f": {artifact.note}" if artifact.note else ""
        raise LoadProblem(f"`{artifact.name}` was built without a cubin{why}")
    read = manifest_of(manifest.data, f"the manifest of `{artifact.name}`")
    return Kernel(read, artifact.cubin, overlap=overlap)


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
