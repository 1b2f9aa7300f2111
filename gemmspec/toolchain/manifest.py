"""The manifest beside a cubin: all that a launch needs, so that TVM is not needed to run the kernel."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = int | str
"""A number, or an expression over the names of the sizes that are known at run time only: `K * 2`."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tensor(_Part):
    """A matrix that the caller passes: row-major, dense, on the device."""

    name: str
    role: Literal["A", "B", "D"]
    shape: tuple[Number, Number]
    dtype: str


class TensorMap(_Part):
    """A kernel argument: a CUtensorMap, made by cuTensorMapEncodeTiled from these values.

    Dimensions from the innermost; `strides` in bytes, one less than dimensions; the enumerations as numbers of the
    CUDA driver API.
    """

    kind: Literal["tensormap"] = "tensormap"
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


class Scalar(_Part):
    """A kernel argument: a 32-bit integer."""

    kind: Literal["int32"] = "int32"
    value: Number


Argument = Annotated[TensorMap | Scalar, Field(discriminator="kind")]


class Launch(_Part):
    """Grid and block in the units of CUDA; `shared_bytes` is dynamic.

    `programmatic`: the kernel may start before those before it in its stream are done, since it waits for them itself
    (PTX ISA, griddepcontrol; CUDA, programmatic stream serialization).
    """

    kernel: str
    grid: tuple[Number, Number, Number]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    programmatic: bool = True
    arguments: tuple[Argument, ...]


class Tile(_Part):
    """What a cluster computes at a time: `m` x `n` elements of D, `k` of the depth a stage.

    `a_rows`, `b_rows`: rows of A and of B, `k` elements each, that every CTA of it loads for a stage.
    """

    m: int
    n: int
    k: int
    a_rows: int
    b_rows: int


class Assembled(_Part):
    """What the assembler said. Bytes of a thread."""

    tool: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


class Manifest(_Part):
    """`sizes`: the number of each, or None where it is known at run time only. `spec_sha256`: of the spec's text."""

    format: Literal[1] = 1
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
