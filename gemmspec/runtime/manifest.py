"""The launch of a kernel, read from its manifest NAME.json.

Plain data, read with the standard library alone: who runs a kernel needs nothing of what made it. The format is that of
`gemmspec.toolchain.manifest`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from gemmspec.runtime.arithmetic import Number, c_text, names_of, parse
from gemmspec.runtime.problem import LoadProblem
from gemmspec.runtime.waits import Waits, waits_of

T = TypeVar("T")

PLAIN, DEBUG = 1, 2
"""Formats: a debug build has one of its own, so that no runtime launches it without reading what its waits wrote."""
# CUtensorMapDataType of cuda.h.
_MAP_TYPES = {"float16": 6, "float32": 7, "bfloat16": 9}
ITEM_BYTES = {"f16": 2, "bf16": 2, "f32": 4}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A matrix that the caller passes. `role`: A, B or D. `shape`: numbers, or names of sizes."""

    name: str
    role: str
    shape: tuple[int | str, int | str]
    dtype: str


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A kernel argument: a CUtensorMap of the tensor with that place in `Manifest.tensors`."""

    tensor: int
    byte_offset: int
    dtype: int
    dims: tuple[Number, ...]
    strides: tuple[Number, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int


@dataclass(frozen=True, slots=True)
class Tile:
    """What a cluster computes at a time: `m` x `n` elements of D, `k` of the depth a stage.

    `a_rows`, `b_rows`: rows of A and of B, `k` elements each, that every CTA of it loads for a stage.
    """

    m: int
    n: int
    k: int
    a_rows: int
    b_rows: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """How to launch a kernel. `sizes`: M, N and K under their own names; None where a call decides.

    `tile` is None in manifests that an older gemmspec wrote.
    `waits`: of a debug build, what its waits write down; None in others.
    """

    name: str
    target: str
    sizes: Mapping[str, int | None]
    tensors: tuple[Tensor, ...]
    kernel: str
    grid: tuple[Number, Number, Number]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    programmatic: bool
    """The kernel itself waits for the kernels before it, so that it may be started before they are done."""
    arguments: tuple[TensorMap | Number, ...]
    tile: Tile | None = None
    waits: Waits | None = None

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the kernel runs on: `sm_90a` is (9, 0)."""
        digits = "".join(c for c in self.target if c.isdigit())
        return int(digits[:-1]), int(digits[-1])

    @property
    def types(self) -> str:
        """The types of A, B and D: `f16 f16 f16`."""
        return " ".join(tensor.dtype for tensor in self.tensors)

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Whether the kernel is built for devices of a compute capability."""
        # The `a` of sm_90a: for that capability alone.
        return capability == self.capability if self.target.endswith("a") else capability >= self.capability

    @property
    def text(self) -> str:
        """All that a launch depends on, as text: the same for the same launch."""
        names = {name: name for name in self.sizes}

        def part(argument: TensorMap | Number) -> str:
            if not isinstance(argument, TensorMap):
                return c_text(argument, names)
            fields = (getattr(argument, field) for field in TensorMap.__slots__ if field not in ("dims", "strides"))
            numbers = (c_text(number, names) for number in (*argument.dims, *argument.strides))
            return f"({', '.join(map(str, fields))}; {', '.join(numbers)})"

        arguments = [part(argument) for argument in (*self.grid, *self.arguments)]
        launch = (self.kernel, self.block, self.cluster, self.shared_bytes, self.programmatic)
        return repr((self.target, dict(self.sizes), self.types, launch, arguments))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file. Raises `LoadProblem`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadProblem(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise LoadProblem(f"{path} is no manifest: {error}") from error
    return manifest_of(data, str(path))


def manifest_of(data: Any, where: str) -> Manifest:
    """Return the manifest in JSON data. Raises `LoadProblem`."""
    found = cast("dict[str, Any]", data).get("format") if isinstance(data, dict) else None
    if found not in (PLAIN, DEBUG):
        raise LoadProblem(
            f"{where} is of format {found}, and this gemmspec reads formats {PLAIN} and {DEBUG} (a debug build): "
            "compile the spec with this gemmspec, or launch with the one that compiled it"
        )
    try:
        manifest = _manifest(cast("dict[str, Any]", data))
    except (KeyError, TypeError, ValueError) as error:
        raise LoadProblem(f"{where} is no manifest of a kernel ({type(error).__name__}: {error})") from error
    known = set(manifest.sizes)
    used = {n for t in manifest.tensors for n in t.shape if isinstance(n, str)}
    for names in (used, *(names_of(number) for number in _numbers(manifest))):
        for name in sorted(names - known):
            raise LoadProblem(f"{where} uses a size `{name}` that is none of {', '.join(manifest.sizes)}")
    return manifest


def _manifest(data: dict[str, Any]) -> Manifest:
    launch = data["launch"]
    debug = data["format"] == DEBUG
    if debug != (data.get("waits") is not None):
        raise ValueError(f"format {data['format']} {'with no' if debug else 'with a'} table of waits")
    tensors = tuple(_tensor(t) for t in data["tensors"])
    if [t.role for t in tensors] != ["A", "B", "D"]:
        raise ValueError("its tensors are not A, B, D")
    return Manifest(
        name=str(data["name"]),
        target=str(data["target"]),
        sizes={str(name): None if size is None else int(size) for name, size in data["sizes"].items()},
        tensors=tensors,
        kernel=str(launch["kernel"]),
        grid=_three(parse(n) for n in launch["grid"]),
        block=_three(int(n) for n in launch["block"]),
        cluster=_three(int(n) for n in launch["cluster"]),
        shared_bytes=int(launch["shared_bytes"]),
        programmatic=bool(launch.get("programmatic", False)),
        arguments=tuple(_argument(a, tensors) for a in launch["arguments"]),
        tile=_tile(data.get("tile")),
        waits=waits_of(data["waits"]) if debug else None,
    )


def _tile(data: dict[str, Any] | None) -> Tile | None:
    if data is None:
        return None
    tile = Tile(*(int(data[name]) for name in ("m", "n", "k", "a_rows", "b_rows")))
    if min(tile.m, tile.n, tile.k, tile.a_rows, tile.b_rows) < 1:
        raise ValueError(f"a tile of {tile.m} x {tile.n} x {tile.k}")
    return tile


def _tensor(data: dict[str, Any]) -> Tensor:
    rows, columns = (n if isinstance(n, int) else str(n) for n in data["shape"])
    if data["dtype"] not in ITEM_BYTES:
        raise ValueError(f"a tensor of type {data['dtype']}")
    return Tensor(str(data["name"]), str(data["role"]), (rows, columns), str(data["dtype"]))


def _argument(data: dict[str, Any], tensors: tuple[Tensor, ...]) -> TensorMap | Number:
    match data["kind"]:
        case "int32":
            return parse(data["value"])
        case "tensormap":
            return TensorMap(
                tensor=[t.name for t in tensors].index(data["tensor"]),
                byte_offset=int(data["byte_offset"]),
                dtype=_MAP_TYPES[data["dtype"]],
                dims=tuple(parse(n) for n in data["dims"]),
                strides=tuple(parse(n) for n in data["strides"]),
                box=tuple(int(n) for n in data["box"]),
                element_strides=tuple(int(n) for n in data["element_strides"]),
                interleave=int(data["interleave"]),
                swizzle=int(data["swizzle"]),
                l2_promotion=int(data["l2_promotion"]),
                oob_fill=int(data["oob_fill"]),
            )
        case kind:
            raise ValueError(f"an argument of kind {kind}")


def _three(values: Iterable[T]) -> tuple[T, T, T]:
    first, second, third = values
    return first, second, third


def _numbers(manifest: Manifest) -> list[Number]:
    numbers: list[Number] = [*manifest.grid]
    for argument in manifest.arguments:
        numbers += [*argument.dims, *argument.strides] if isinstance(argument, TensorMap) else [argument]
    return numbers
