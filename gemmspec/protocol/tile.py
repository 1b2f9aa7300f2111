"""Tile arithmetic: which rows and columns each consumer of each CTA computes, and how much a stage moves.

Given a `Spec`, pure numbers; the lowering spells the same formulas from the fields here.
"""

from __future__ import annotations

from gemmspec.model.spec import Role, Spec
from gemmspec.record import record
from gemmspec.vocabulary import DType, Operand, Release, RoleKind

MOST_USUAL_CHUNK = 64
DEFAULT_GROUP = 8


def ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up, for positive b."""
    return -(-a // b)


@record
class Tiling:
    """Sizes in elements unless said otherwise. One output tile is what one cluster computes at a time."""

    consumers: int
    """mma instances of a CTA: each has its own rows of A and its own accumulator."""
    writers: int
    """epilogue instances of a CTA."""
    accumulators: int
    stages: int
    block_m: int
    block_n: int
    block_k: int
    pair: int
    acc_columns: int
    """Columns of one accumulator: block n of every CTA of the pair."""
    chunk: int
    chunks: int
    """Chunks that one CTA stores: its share of those of the accumulator."""
    split: int
    """CTAs that share an output tile: each has its k tiles, and its chunks of the sum."""
    buffers: int
    """Store buffers of one epilogue instance."""
    release: Release
    tile_m: int
    tile_n: int
    """Rows and columns of D that one cluster computes at a time."""
    a_bytes: int
    """One consumer's A tile of one stage."""
    b_bytes: int
    d_bytes: int
    """One store buffer."""
    part_bytes: int
    """What one consumer receives of one peer: float32 sums of its share of the columns."""
    ctas: int
    """Persistent CTAs: a multiple of the cluster size."""
    group: int
    a_parts: int
    """Multicast slices of an A tile: 1, or the CTAs of a cluster row."""
    b_parts: int

    @staticmethod
    def of(spec: Spec) -> Tiling:
        """Return the tiling of a spec."""
        pair = spec.pair
        m, n, k = spec.block.m.value, spec.block.n.value, spec.block.k.value
        columns, split = n * pair, spec.cluster.split
        consumers = sum(r.instances for r in spec.roles_of(RoleKind.MMA)) or 1
        epilogues = spec.roles_of(RoleKind.EPILOGUE)
        chunk = next((r.chunk.value for r in epilogues if r.chunk), usual_chunk(spec, columns))
        default_buffers = 1 if spec.target.has_tmem else 2
        buffers = next((r.buffers.value for r in epilogues if r.buffers), default_buffers)
        release = next((r.release.value for r in epilogues if r.release), Release.STORE)
        shared = {o for r in spec.roles_of(RoleKind.TMA) if r.multicast for o in r.multicast.value}
        asked = spec.schedule.ctas.value if spec.schedule.ctas else spec.target.sm_count
        return Tiling(
            consumers=consumers,
            writers=sum(r.instances for r in epilogues) or 1,
            accumulators=spec.accumulators.value,
            stages=spec.stages.value,
            block_m=m,
            block_n=n,
            block_k=k,
            pair=pair,
            acc_columns=columns,
            chunk=chunk,
            chunks=ceil_div(columns, chunk * split),
            split=split,
            buffers=buffers,
            release=release,
            tile_m=m * consumers * spec.cluster.m,
            tile_n=columns * spec.cluster.n,
            a_bytes=m * k * spec.gemm.a.value.bytes,
            b_bytes=n * k * spec.gemm.b.value.bytes,
            d_bytes=m * chunk * spec.gemm.d.value.bytes,
            part_bytes=m * columns // split * DType.F32.bytes,
            ctas=max(asked // spec.cluster.size, 1) * spec.cluster.size,
            group=spec.schedule.group.value if spec.schedule.group else DEFAULT_GROUP,
            a_parts=spec.cluster.n if Operand.A in shared else 1,
            b_parts=spec.cluster.m if Operand.B in shared else 1,
        )

    def k_tiles(self, k: int) -> int:
        """k tiles of one CTA for a depth of `k` elements, the same number for all that share an output tile.

        The last ones may be ragged, or lie behind K. PTX ISA, cp.async.bulk.tensor (out-of-bounds access): TMA fills
        with zeros what lies outside, and counts the bytes of the whole box, so such a tile adds nothing, and takes
        part in the pipeline like any other.
        """
        return ceil_div(k, self.block_k * self.split)

    def m_tiles(self, m: int) -> int:
        """Output tiles along M."""
        return ceil_div(m, self.tile_m)

    def n_tiles(self, n: int) -> int:
        """Output tiles along N."""
        return ceil_div(n, self.tile_n)

    def chunk_column(self, chunk: int) -> int:
        """Return the first column of a chunk of an accumulator.

        The last one ends where the accumulator ends: where chunks do not divide it, it has columns in common with the
        one before, which are stored twice, with the same values.
        """
        return max(min(chunk * self.chunk, self.acc_columns - self.chunk), 0)

    @property
    def shared_columns(self) -> range:
        """Columns of an accumulator that belong to two chunks: the last, and the one before."""
        return range(self.chunk_column(self.chunks - 1), (self.chunks - 1) * self.chunk)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage in one CTA."""
        return self.consumers * self.a_bytes + self.b_bytes


def usual_chunk(spec: Spec, columns: int) -> int:
    """Return the chunk of an accumulator of so many columns where none is stated.

    Of the legal ones of 32 to 64 columns it is the one that moves the fewest in all, and the widest of those.
    """
    legal = [c for c in spec.target.chunks if c <= min(MOST_USUAL_CHUNK, columns) and covers(spec, columns, c)]
    wide = [c for c in legal if 2 * c >= MOST_USUAL_CHUNK] or legal[-1:]
    return min(wide, key=lambda c: (ceil_div(columns, c) * c, -c), default=min(MOST_USUAL_CHUNK, columns))


def covers(spec: Spec, columns: int, chunk: int) -> bool:
    """Say whether chunks make up an accumulator: without a rest in tensor memory and where CTAs deal them out."""
    split = spec.cluster.split
    return columns % (chunk * split) == 0 if spec.target.has_tmem or split > 1 else chunk <= columns


def row_of(spec: Spec, tiling: Tiling, m_index: int, rank: int, consumer: int) -> int:
    """Return the first row of D that a consumer of the CTA of that rank computes in tile row `m_index`.

    In a pair, one MMA's rows are those of both CTAs, so consumers are the outer factor; without pairs a CTA's
    consumers are adjacent, so that one TMA box can load the A rows of all of them.
    """
    x = spec.cluster.x(rank)
    if spec.paired:
        return ((m_index * tiling.consumers + consumer) * spec.cluster.m + x) * tiling.block_m
    return ((m_index * spec.cluster.m + x) * tiling.consumers + consumer) * tiling.block_m


def column_of(spec: Spec, tiling: Tiling, n_index: int, rank: int) -> int:
    """Return the first column of D that the CTA of that rank computes in tile column `n_index`."""
    return (n_index * spec.cluster.n + spec.cluster.y(rank)) * tiling.acc_columns


def chunk_of(spec: Spec, tiling: Tiling, rank: int, chunk: int) -> int:
    """Return the number, among those of the accumulator, of a chunk that the CTA of that rank stores."""
    return spec.cluster.share(rank) * tiling.chunks + chunk


def depth_of(spec: Spec, tiling: Tiling, k: int, rank: int, k_tile: int) -> int:
    """Return where, along K, a k tile of the CTA of that rank starts; `k` is the whole depth, in elements."""
    return (spec.cluster.share(rank) * tiling.k_tiles(k) + k_tile) * tiling.block_k


def receive_slot(spec: Spec, sender: int, owner: int) -> int:
    """Return the place of a CTA among the peers of another: its share, those above the owner's one less."""
    share = spec.cluster.share(sender)
    return share - (share > spec.cluster.share(owner))


def b_row_of(spec: Spec, tiling: Tiling, n_index: int, rank: int) -> int:
    """Return the first row of B that the CTA of that rank loads: its share of the pair's columns."""
    return column_of(spec, tiling, n_index, rank) + rank % tiling.pair * tiling.block_n


def base_of(spec: Spec, role: Role, kind: RoleKind) -> int:
    """Return how many instances of that kind the roles declared before `role` have."""
    base = 0
    for other in spec.roles_of(kind):
        if other.name == role.name:
            break
        base += other.instances
    return base


def waves_of(spec: Spec, tiling: Tiling) -> int | None:
    """Return the most output tiles that one persistent cluster computes; None where M or N is not fixed."""
    m, n, _ = (size.fixed for size in spec.sizes)
    if m is None or n is None:
        return None
    return ceil_div(tiling.m_tiles(m) * tiling.n_tiles(n), tiling.ctas // spec.cluster.size)
