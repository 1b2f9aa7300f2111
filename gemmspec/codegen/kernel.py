"""The Protocol in the words of the generated module: constants, names, places in memory, coordinates.

Spells what the Protocol and its tiling state; decides nothing of the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gemmspec.codegen.ranks import RANK, Ranks
from gemmspec.codegen.words import BOUNDED_WAITS, Names, product, total
from gemmspec.model.spec import Role
from gemmspec.protocol.memory import swizzle_of, tmem_columns
from gemmspec.protocol.program import Arrive, BarrierPlan, Commit, Expect, Load, Program, Protocol, Slot
from gemmspec.protocol.tile import Tiling
from gemmspec.vocabulary import DType, Operand, RoleKind, Via
from gemmspec.waits import Waits

DTYPES = {DType.F16: "float16", DType.BF16: "bfloat16", DType.F32: "float32"}


@dataclass(frozen=True, slots=True)
class Constant:
    """Assignment of `names` at the head of the module's function."""

    names: tuple[str, ...]
    value: str
    comment: str = ""


class Kernel:
    """One Protocol and what its parts are called. `waits`: how its waits are bounded, if they are."""

    def __init__(self, protocol: Protocol, waits: Waits | None = None) -> None:
        self.protocol, self.waits = protocol, waits
        self.spec = protocol.spec
        self.tiling = Tiling.of(protocol.spec)
        self.ranks = Ranks(protocol.spec)
        names = Names(BOUNDED_WAITS if waits else frozenset())
        self.name = names.take(self.spec.name)
        self.m, self.n, self.k = (names.take(s.name) for s in self.spec.sizes)
        self.d, self.a, self.b = (names.take(n) for n in self.spec.gemm.names)
        self.a_smem, self.b_smem, self.d_smem = (names.take(f"{n}smem") for n in (self.a, self.b, self.d))
        self.parts = names.take(f"{self.d}parts")
        """Receive buffers, 16 bytes a thread of the consumer side by side, so that no two meet in a bank."""
        self.barriers = {b.name: names.take(b.name) for b in protocol.barriers}
        self.names = names
        self.views: dict[str, str] = {}
        """Barriers of other CTAs that the roles use: name -> expression."""

    # -- sizes -------------------------------------------------------------------------------------------------

    @property
    def dynamic(self) -> tuple[str, ...]:
        """The sizes that are known at run time only."""
        return tuple(n for n, s in zip((self.m, self.n, self.k), self.spec.sizes, strict=True) if s.fixed is None)

    @property
    def dispatch(self) -> str:
        """How TIRx makes TMA copies: `tma_auto` derives the box, but not from strides that are unknown.

        Nor of an A or D of one row (apache-tvm 0.27): it drops that axis, and takes the elements of K for rows.
        """
        return "tma_explicit" if self.dynamic or self.spec.sizes[0].fixed == 1 else "tma_auto"

    @property
    def cluster_m(self) -> str:
        m = self.spec.cluster.m
        return "1" if m == 1 else "CLUSTER" if m == self.spec.cluster.size else "CLUSTER_M"

    @property
    def cluster_n(self) -> str:
        n = self.spec.cluster.n
        return "1" if n == 1 else "CLUSTER" if n == self.spec.cluster.size else "CLUSTER_N"

    @property
    def group(self) -> str:
        """CTAs that run one MMA."""
        return "CTA_GROUP" if self.spec.paired else "1"

    @property
    def consumers(self) -> str:
        return self.count(self.tiling.consumers, "CONSUMERS")

    @property
    def acc_n(self) -> str:
        """Columns of an accumulator."""
        return "ACC_N" if self.spec.paired else "BLK_N"

    @property
    def tile_m(self) -> str:
        return "BLK_M" if self.tiling.tile_m == self.tiling.block_m else "TILE_M"

    @property
    def tile_n(self) -> str:
        return self.acc_n if self.spec.cluster.n == 1 else "TILE_N"

    @property
    def tile_k(self) -> str:
        """Depth of what the CTAs that share an output tile multiply at a time."""
        return "BLK_K" if self.tiling.split == 1 else "SPLIT_K"

    @staticmethod
    def count(value: int, name: str) -> str:
        """Return the name of a number that is worth one, or `1`."""
        return name if value > 1 else "1"

    def instances(self, role: Role, number: int) -> str:
        """Return a number of instances of a role."""
        counts = role.does(RoleKind.MMA) or role.does(RoleKind.EPILOGUE)
        return "CONSUMERS" if counts and number == self.tiling.consumers > 1 else str(number)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """All constants that the text may use, each after those that it needs."""
        return tuple(self._constants())

    def _constants(self) -> Iterator[Constant]:
        spec, t = self.spec, self.tiling
        m, n = spec.cluster.m, spec.cluster.n
        yield Constant(("CTAS",), str(t.ctas), "persistent: each takes tile after tile")
        if t.split > 1:
            yield Constant(("CLUSTER_M",), str(m), "CTAs of a cluster along M")
            yield Constant(("CLUSTER_N",), str(n), "CTAs of a cluster along N")
            yield Constant(("SPLIT",), str(t.split), "CTAs of each output tile, with k tiles of their own")
            yield Constant(("CLUSTER",), product(self.cluster_m, self.cluster_n, "SPLIT"))
        elif m > 1 and n > 1:
            yield Constant(("CLUSTER_M", "CLUSTER_N"), f"{m}, {n}", "CTAs of a cluster along M and N")
            yield Constant(("CLUSTER",), "CLUSTER_M * CLUSTER_N")
        elif m * n > 1:
            yield Constant(("CLUSTER",), str(m * n), f"CTAs of a cluster, along {'M' if m > 1 else 'N'}")
        if spec.paired:
            yield Constant(("CTA_GROUP",), "2", "CTAs that run one MMA")
        yield Constant(("CONSUMERS",), str(t.consumers), "accumulate different rows of D, and share B")
        yield Constant(("STAGES",), str(t.stages))
        yield Constant(("ACCS",), str(t.accumulators), "accumulators of a consumer")
        sizes = f"{t.block_m}, {t.block_n}, {t.block_k}"
        yield Constant(("BLK_M", "BLK_N", "BLK_K"), sizes, "rows of A of a consumer, rows of B, depth")
        yield Constant(("ACC_N",), "CTA_GROUP * BLK_N", "columns of an accumulator")
        yield Constant(("CHUNK_N",), str(t.chunk), "columns that are stored at a time")
        whole = f"{self.acc_n} // CHUNK_N" if self.even else f"-(-{self.acc_n} // CHUNK_N)"
        yield Constant(("CHUNKS",), whole + (" // SPLIT" if t.split > 1 else ""))
        yield Constant(("SPLIT_K",), "SPLIT * BLK_K", "depth of a k tile of each CTA")
        yield Constant(("BUFS",), str(t.buffers), "store buffers of a warpgroup")
        yield Constant(("TILE_M",), product(self.consumers, self.cluster_m, "BLK_M"), "rows of D of a cluster")
        yield Constant(("TILE_N",), product(self.acc_n, self.cluster_n), "columns of D of a cluster")
        for name, size, tile in (
            ("M_TILES", self.m, self.tile_m),
            ("N_TILES", self.n, self.tile_n),
            ("K_TILES", self.k, self.tile_k),
        ):
            if size not in self.dynamic:
                yield Constant((name,), f"-(-{size} // {tile})", "")
        yield Constant(("STAGE_BYTES",), *self._stage_bytes())
        yield from self._box_constants()
        yield from self._hopper_constants()
        yield Constant(("TMEM_COLS",), str(tmem_columns(spec)), "all there are")

    def _stage_bytes(self) -> tuple[str, str]:
        rows = total(product(self.consumers, "BLK_M"), "BLK_N")
        size = str(self.spec.gemm.a.value.bytes)
        return product(self.group, rows, "BLK_K", size), "of both CTAs" if self.spec.paired else ""

    def _box_constants(self) -> Iterator[Constant]:
        """Yield the sizes of boxes that are less than a tile."""
        spec, gemm = self.spec, self.spec.gemm
        loads = [s for p in self.protocol.programs for s in p.walk() if isinstance(s, Load)]
        for operand, tile in ((Operand.A, "BLK_M"), (Operand.B, "BLK_N")):
            sliced = next((s for s in loads if s.operand is operand and s.parts > 1), None)
            if sliced is not None:
                count = "CONSUMERS" if sliced.count == self.tiling.consumers > 1 else str(sliced.count)
                whole = product(count, tile)
                yield Constant(
                    (f"{operand.value}_PART",), f"{whole} // {sliced.parts}", "rows that one CTA loads for all"
                )
        for name, columns in (("ATOM_K", spec.target.swizzle_bytes // gemm.a.value.bytes), ("ATOM_N", self.store_atom)):
            yield Constant((name,), str(columns), "columns of a swizzle atom")

    def _hopper_constants(self) -> Iterator[Constant]:
        t, gemm = self.tiling, self.spec.gemm
        kind = gemm.a.value.value
        yield Constant(("WGMMA",), f'"wgmma.mma_async.sync.aligned.m64n{t.block_n}k16.f32.{kind}.{kind}"')
        yield Constant(("MMA_M",), str(self.spec.target.mma_rows), "rows of one wgmma")
        rows = "MMA_M" if self.halves > 1 else "BLK_M"
        yield Constant(("ACC_REGS",), f"{rows} * BLK_N // 128", "of a thread" + " for them" * (self.halves > 1))
        yield Constant(("PART_REGS",), "ACC_REGS // SPLIT", "those that one CTA stores")
        size = gemm.a.value.bytes
        # Descriptors count shared memory in units of 16 bytes.
        yield Constant(("A_STAGE",), product(self.consumers, "BLK_M", "BLK_K", f"{size}") + " // 16", "in 16 bytes")
        yield Constant(("B_STAGE",), f"BLK_N * BLK_K * {size} // 16")
        a_rows = product(self.consumers, "BLK_M") if self.merged else "BLK_M"
        yield Constant(("A_ATOM",), f"{a_rows} * 128 // 16", "from one atom of a row to the next")
        yield Constant(("B_ATOM",), "BLK_N * 128 // 16")
        yield Constant(("A_HALF",), "MMA_M * 128 // 16", "from the rows of one wgmma to those of the next")

    def bytes(self, number: int) -> str:
        """Return a number of bytes: by name where it is a whole stage's."""
        return "STAGE_BYTES" if number == self.spec.pair * self.tiling.stage_bytes else str(number)

    # -- barriers ----------------------------------------------------------------------------------------------

    def barrier_class(self, plan: BarrierPlan) -> str:
        """Return the TIRx class of a barrier: one that can do all that the programs do with it."""
        actions = [s for p in self.protocol.programs for s in p.walk() if isinstance(s, Arrive | Commit | Expect)]
        kinds = {type(s) for s in actions if s.barrier == plan.name}
        if Expect in kinds or (plan.via is Via.TMA and Arrive not in kinds):
            return "TMABar"
        return "TCGen05Bar" if kinds == {Commit} else "MBarrier"

    def slots(self, plan: BarrierPlan) -> str:
        """Return the number of slots of a barrier, by the names of its factors."""
        return self._factors(plan, len(plan.barrier.factors))

    def arrivals(self, plan: BarrierPlan) -> str:
        """Return the arrivals of one phase, as a sum over the roles where that is what they come to."""
        if plan.arrivals != sum(s.total for s in plan.shares):
            return str(plan.arrivals)
        return total(*(self._share(s.role, s.each, s.instances, s.ctas) for s in plan.shares))

    def _share(self, role: str, each: int, instances: int, ctas: int) -> str:
        where = {self.spec.cluster.size: "CLUSTER", 1: "1"}
        if self.spec.paired:
            where[2] = "CTA_GROUP"
        return product(self.instances(self.spec.role(role), instances), where.get(ctas, str(ctas)), str(each))

    def _factors(self, plan: BarrierPlan, last: int) -> str:
        """Return the product of the last factors of a barrier's slots."""
        factors = plan.barrier.factors[len(plan.barrier.factors) - last :]
        words = {"stages": "STAGES", "accumulators": "ACCS"}
        known = {r.name: self.instances(r, r.instances) for r in self.spec.roles}
        return product(*(
            "1" if f.value == 1 else words.get(f.text) or known.get(f.text) or str(f.value) for f in factors
        ))  # fmt: skip

    def stride(self, plan: BarrierPlan, stride: int) -> str:
        """Return the distance of slots that differ by one in an outer factor."""
        size = 1
        for last, factor in enumerate(reversed(plan.barrier.factors)):
            if size == stride:
                return self._factors(plan, last)
            size *= factor.value
        return str(stride)

    def view(self, barrier: str, targets: tuple[int, ...]) -> str:
        """Return the name of a barrier in the CTA that each rank reaches (one), declaring it if it is another's."""
        name = self.barriers[barrier]
        if all(targets[r] == 1 << r for r in self.ranks.ranks):
            return name
        rank = self.ranks.single([max(mask.bit_length() - 1, 0) for mask in targets])
        view = f"{name}_cta{rank}" if rank.isdigit() else f"{name}_lead" if rank == f"{RANK} // 2 * 2" else f"{name}_to"
        self.views[view] = f"{name}.remote_view({rank})"
        return view

    # -- memory and coordinates --------------------------------------------------------------------------------

    @cached_property
    def merged(self) -> bool:
        """Whether one load brings the A rows of several consumers, so that they stand below each other in a stage."""
        return any(s.count > 1 for p in self.protocol.programs for s in p.walk() if isinstance(s, Load))

    @property
    def halves(self) -> int:
        """Instructions one below the other that a wgmma consumer needs for its rows."""
        return self.tiling.block_m // self.spec.target.mma_rows

    def row_stride(self) -> str:
        """Return the distance of the rows of D (and A) of two consumers of a CTA."""
        return product(self.cluster_m, "BLK_M") if self.spec.paired else "BLK_M"

    def rows(self, consumer: str = "0") -> str:
        """Return the first row of D (and A) of a consumer of the CTA (protocol.tile.row_of)."""
        x = self.ranks.m_index
        if self.spec.paired:
            block = total(product(consumer, self.cluster_m), x)
        else:
            block = total(product(x, self.consumers), consumer)
        return total(f"tiles.m_idx * {self.tile_m}", product(block, "BLK_M"))

    def columns(self) -> str:
        """Return the first column of D that the CTA stores."""
        return total(f"tiles.n_idx * {self.tile_n}", product(self.ranks.n_index, self.acc_n))

    def b_rows(self) -> str:
        """Return the first row of B that the CTA loads."""
        return total(self.columns(), product(self.ranks.in_pair, "BLK_N"))

    @property
    def even(self) -> bool:
        """Whether chunks divide an accumulator."""
        return self.tiling.acc_columns % self.tiling.chunk == 0

    def chunk_start(self, chunk: str) -> str:
        """Return the first column of a chunk of an accumulator (Tiling.chunk_column)."""
        start = product(chunk, "CHUNK_N")
        return start if self.even or start == "0" else f"T.min({start}, {self.acc_n} - CHUNK_N)"

    @property
    def store_atom(self) -> int:
        """Columns of a swizzle atom of the store buffers; all of a chunk where they have none."""
        size = self.spec.gemm.d.value.bytes
        return swizzle_of(self.tiling.chunk * size) // size or self.tiling.chunk

    def split(self, operand: Operand | None, part: bool = False) -> int:
        """Return how many copies a box takes along its rows' bytes: one a swizzle atom where `tma_auto` cannot do it.

        `operand`: None is D. One box over several atoms is three-dimensional, which takes a row of whole atoms, and all
        rows of its buffer: not a `part`, as a box of a multicast is.
        """
        t, spec = self.tiling, self.spec
        width, size = (t.chunk, spec.sizes[1]) if operand is None else (t.block_k, spec.sizes[2])
        atom = self.store_atom if operand is None else spec.target.swizzle_bytes // spec.gemm.a.value.bytes
        ragged = size.fixed is None or size.fixed % atom != 0
        return width // atom if width > atom and (ragged or part or self.dispatch == "tma_explicit") else 1


def runs_in(kernel: Kernel, program: Program) -> Ranks:
    """Return the ranks in which a program runs."""
    return kernel.ranks.leaders if program.leader_only else kernel.ranks


def fixed(slot: Slot, me: str, stride: int) -> str:
    """Return `const + self` of a slot, in units of `stride`."""
    return total(product(me, str(slot.self_stride // stride)), str(slot.const // stride))
