"""Shared memory and tensor memory maps: where everything stands, in bytes and in columns."""

from __future__ import annotations

from dataclasses import replace

from gemmspec.model.spec import Barrier, Spec
from gemmspec.protocol.tile import Tiling
from gemmspec.record import record

MBARRIER_BYTES = 8
# A 128-byte swizzle atom is 8 rows of 128 bytes, and tiles start on whole atoms.
TILE_ALIGNMENT = 1024


@record
class Region:
    """`size` units (bytes of SMEM, columns of TMEM) at `offset`: `slots` equal slots of `slot` units."""

    name: str
    offset: int
    slots: int
    slot: int
    detail: str

    @property
    def size(self) -> int:
        return self.slots * self.slot

    @property
    def end(self) -> int:
        return self.offset + self.size


def smem_map(spec: Spec) -> tuple[Region, ...]:
    """Return the dynamic shared memory of one CTA, in bytes, in order of offset.

    First the word that tcgen05.alloc writes, then the mbarriers, then on 1024-byte boundaries A, B, D, and with `split`
    R, the receive buffers of parts of sums.
    """
    tiling = Tiling.of(spec)
    regions: list[Region] = []
    offset = 0

    def place(name: str, slots: int, slot: int, detail: str, align: int) -> None:
        nonlocal offset
        offset = -(-offset // align) * align
        regions.append(Region(name, offset, slots, slot, detail))
        offset += slots * slot

    if spec.target.has_tmem:
        place("tmem address", 1, 4, "1 word", 4)
    for barrier in spec.barriers:
        place(barrier.name, barrier.slots, MBARRIER_BYTES, counted(barrier.slots, "mbarrier"), MBARRIER_BYTES)
    s, c, k = tiling.stages, tiling.consumers, tiling.block_k
    stages = counted(s, "stage")
    e_in, e_out = spec.gemm.a.value, spec.gemm.d.value
    place("A", s * c, tiling.a_bytes, f"{stages} x {c} x {tiling.block_m} x {k} {e_in.value}", TILE_ALIGNMENT)
    place("B", s, tiling.b_bytes, f"{stages} x {tiling.block_n} x {k} {e_in.value}", TILE_ALIGNMENT)
    d = tiling.writers * tiling.buffers
    buffers = counted(d, "buffer")
    place(
        "D",
        d,
        tiling.d_bytes,
        f"{buffers} x {tiling.block_m} x {tiling.chunk} {e_out.value}",
        TILE_ALIGNMENT,
    )
    if tiling.split > 1:
        parts = f"{c} x {counted(tiling.split - 1, 'part')} x {tiling.block_m} x {tiling.acc_columns // tiling.split}"
        place("R", c * (tiling.split - 1), tiling.part_bytes, f"{parts} f32", TILE_ALIGNMENT)
    return tuple(regions)


def swizzle_of(row: int) -> int:
    """Return the bytes of a row of the swizzle atom of a buffer with rows of so many bytes; 0 for no swizzle.

    A TMA box is one atom wide, so the widest that divides a row makes the fewest boxes. A row of an odd number of
    16-byte units needs no swizzle: eight such rows, one right below the other, start in different groups of banks.
    """
    return next((atom for atom in (128, 64, 32) if row % atom == 0), 0)


def counted(n: int, noun: str) -> str:
    """Return `1 stage` or `4 stages`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def smem_bytes(spec: Spec) -> int:
    """Return the dynamic shared memory of one CTA in bytes."""
    return smem_map(spec)[-1].end


def most_stages(spec: Spec) -> int:
    """Return the most stages whose shared memory fits the target; 0 if not even one does."""
    stages = spec.target.smem_bytes // Tiling.of(spec).stage_bytes
    while stages > 0 and smem_bytes(with_stages(spec, stages)) > spec.target.smem_bytes:
        stages -= 1
    return stages


def with_stages(spec: Spec, stages: int) -> Spec:
    """Return the spec with another number of stages, its barriers' slots following."""

    def resize(barrier: Barrier) -> Barrier:
        factors = tuple(replace(f, value=stages) if f.text == "stages" else f for f in barrier.factors)
        return replace(barrier, factors=factors)

    given = replace(spec.stages, value=stages)
    return replace(spec, stages=given, barriers=tuple(resize(b) for b in spec.barriers))


def tmem_map(spec: Spec) -> tuple[Region, ...]:
    """Return the tensor memory of one CTA in columns of 128 lanes x 32 bit; empty without tensor memory."""
    if not spec.target.has_tmem:
        return ()
    tiling = Tiling.of(spec)
    size = tiling.accumulators * tiling.acc_columns
    return tuple(
        Region(f"acc[{c}]", c * size, tiling.accumulators, tiling.acc_columns, f"consumer {c}")
        for c in range(tiling.consumers)
    )


def tmem_columns(spec: Spec) -> int:
    """Return the columns that are allocated: all of them, so that the allocation starts at column 0 for certain.

    A kernel of this kind has its SM to itself (shared memory), so nothing is lost. Where the accumulators need
    more than there is, the next power of two (PTX ISA, tcgen05.alloc).
    """
    regions = tmem_map(spec)
    columns = spec.target.tmem_columns
    while regions and columns < regions[-1].end:
        columns *= 2
    return columns
