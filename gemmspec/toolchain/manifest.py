"""The manifest beside a cubin: all that a launch needs, so that TVM is not needed to run the kernel."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gemmspec.runtime.manifest import Tile
from gemmspec.runtime.waits import Site

Number = int | str
"""A number, or an expression over the names of the sizes that are known at run time only: `K * 2`."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A matrix that the caller passes: row-major, dense, on the device."""

    name: str
    role: Literal["A", "B", "D"]
    shape: tuple[Number, Number]
    dtype: str


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A kernel argument: a CUtensorMap, made by cuTensorMapEncodeTiled from these values.

    Dimensions from the innermost; `strides` in bytes, one less than dimensions; the enumerations as numbers of the
    CUDA driver API.
    """

    kind: Literal["tensormap"] = field(default="tensormap", init=False)
    tensor: str
    byte_offset: int
    dtype: str
    dims: tuple[Number, ...]
    strides: tuple[Number, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A kernel argument: a 32-bit integer."""

    kind: Literal["int32"] = field(default="int32", init=False)
    value: Number


@dataclass(frozen=True, slots=True)
class Launch:
    """Grid and block in the units of CUDA; `shared_bytes` is dynamic.

    `programmatic`: the kernel may start before those before it in its stream are done, since it waits for them itself
    (PTX ISA, griddepcontrol; CUDA, programmatic stream serialization).
    """

    kernel: str
    grid: tuple[Number, Number, Number]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    programmatic: bool
    arguments: tuple[TensorMap | Scalar, ...]


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the assembler said. Bytes of a thread."""

    tool: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True, slots=True)
class WaitedBarrier:
    """`sources`: the roles that arrive."""

    name: str
    arrivals: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WaitingRole:
    """A role: `row` is that of its first instance, `ctas` the ranks where it runs, `depths` those of its cursors.

    `body`: the loops, branches, waits and arrivals of its program, as JSON on one line: see `gemmspec.toolchain.waits`.
    """

    name: str
    row: int
    instances: int
    ctas: tuple[int, ...]
    depths: tuple[int, ...]
    body: str


@dataclass(frozen=True, slots=True)
class BoundedWaits:
    """What the waits of a debug build write down, and what it means. `tile`: of a cluster, rows, columns and depth.

    `records` names an array of 32-bit words: 8, the first of which tells whether the kernel was stopped, then 8 for
    each of the `rows` of each CTA. All zero before a launch.
    """

    seconds: float
    records: str
    rows: int
    spec: str
    cluster: int
    clusters: int
    tile: tuple[int, int, int]
    barriers: tuple[WaitedBarrier, ...]
    roles: tuple[WaitingRole, ...]
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """`sizes`: the number of each, or None where it is known at run time only. `spec_sha256`: of the spec's text."""

    name: str
    target: str
    gemmspec: str
    tvm: str
    spec_sha256: str
    sizes: dict[str, int | None]
    tensors: tuple[Tensor, ...]
    launch: Launch
    tile: Tile | None = None
    assembled: Assembled | None = None
    waits: BoundedWaits | None = None
    """In a debug build alone; left out of the file in others."""

    @property
    def format(self) -> Literal[1, 2]:
        """2 for a debug build: a runtime that knows of format 1 alone would launch it, and not see that it stopped."""
        return 1 if self.waits is None else 2

    @property
    def data(self) -> dict[str, Any]:
        """What the file holds, as `json.load` gives it, less that tuples stand for lists."""
        data = {"format": self.format, **asdict(self)}
        if self.waits is None:
            del data["waits"]
        return data

    @property
    def text(self) -> str:
        """The file."""
        return json.dumps(self.data, indent=2, ensure_ascii=False) + "\n"
