"""What each instruction and tile primitive of the kernel does, as the texts of an event's numbers.

An instruction whose modifiers are not exactly those of a known form raises `Unfollowed`: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gemmspec.audit.effect import Assign, Effect, Emit, Registers, Settle
from gemmspec.audit.exchange import Exchange
from gemmspec.audit.ir import Box, Call, Const, Do, Expr, For, Read, Set, Tensor, Tile, Var
from gemmspec.audit.places import Places
from gemmspec.audit.terms import RANK, Terms, Unfollowed, number, plus, pure, times
from gemmspec.audit.wgmma import ROWS, Wgmma, fragment, laid_out


@dataclass(frozen=True, slots=True)
class _Address:
    """Slot `slot` of a barrier in the CTA of rank `rank`."""

    barrier: str
    slot: str
    rank: str


_OWN = f"v[{RANK}]"
_GROUP = "cta_group::"
# Options of a load, and of a store. That a tensor map is prefetched, and what L2 fetches, changes no result.
_OPTIONS = {"mbar", "cta_group", "cta_mask", "tensormap_l2_promotion", "prefetch_tensormap"}
_STORE_OPTIONS = {"prefetch_tensormap"}
_AT_CLUSTER = ("release", "cluster", "shared::cluster")
_COMMIT = ("commit", "mbarrier::arrive::one", "shared::cluster")


class Effects:
    """Translates one kernel's instructions."""

    def __init__(self, terms: Terms, places: Places) -> None:
        self.terms, self.places = terms, places
        self.reads = Registers(terms)
        self.wgmma = Wgmma(terms, places)
        self.exchange = Exchange(terms, places, self.register)
        self.remote: dict[int, _Address] = {}
        """By variable or tensor: what of another CTA it points to."""
        self.registers: set[int] = set()
        """Places of register arrays."""
        self.roots: dict[int, int] = {}
        """Views of registers -> the tensor that they are views of."""
        self.instructions: dict[tuple[str, tuple[str, ...]], Callable[[tuple[Expr, ...], str], list[Effect]]] = {
            ("ptx.mbarrier_init", ("init", "shared", "b64")): self._init,
            ("cuda.mbarrier_wait", ()): lambda args, group: [self.wait(args)],
            ("cuda.mbarrier_wait_acquire_cluster", ()): self._wait_for_peers,
            ("ptx.mbarrier_arrive", ("arrive", "shared", "b64")): self._arrive_here,
            ("ptx.mbarrier_arrive", ("arrive", "shared::cluster", "b64")): self._arrive,
            ("ptx.mbarrier_arrive_nocount", ("arrive", "shared", "b64")): self._arrive_here,
            ("ptx.mbarrier_arrive_nocount", ("arrive", "shared::cluster", "b64")): self._arrive,
            ("ptx.mbarrier_arrive_nocount", ("arrive", *_AT_CLUSTER, "b64")): self._arrive_for_peers,
            ("ptx.mbarrier_arrive_expect_tx", ("arrive", "expect_tx", "shared", "b64")): self._expect_here,
            ("ptx.mbarrier_arrive_expect_tx", ("arrive", "expect_tx", "shared::cluster", "b64")): self._expect,
            ("ptx.mapa", ("u64",)): self._map,
            ("ptx.mapa_u32", ("shared::cluster", "u32")): self._map,
            ("ptx.tcgen05_commit", (*_COMMIT, "b64")): self._commit,
            ("ptx.tcgen05_commit_multicast", (*_COMMIT, "multicast::cluster", "b64")): self._commit,
            ("ptx.fence_mbarrier_init", ("mbarrier_init", "release", "cluster")): plain("init fence"),
            ("ptx.fence_proxy", ("proxy", "async", "shared::cta")): plain("proxy fence"),
            ("ptx.tcgen05_fence", ("fence::before_thread_sync",)): plain("tcgen05 fence", "before_thread_sync"),
            ("ptx.tcgen05_fence", ("fence::after_thread_sync",)): plain("tcgen05 fence", "after_thread_sync"),
            ("ptx.tcgen05_wait", ("wait::ld", "sync", "aligned")): self._read_wait,
            ("cuda.warpgroup_sync", ()): self._warpgroup_sync,
            ("cuda.cta_sync", ()): plain("sync", "cta"),
            ("cuda.cluster_sync", ()): plain("sync", "cluster"),
            ("cuda.warp_sync", ()): plain("warp sync"),
            ("ptx.cp_async_bulk_commit_group", ("async", "bulk", "commit_group")): plain("store commit"),
            # Without `.read` it waits for more: that the stores have been written.
            ("ptx.cp_async_bulk_wait_group", ("async", "bulk", "wait_group", "read")): self._store_wait,
            ("ptx.cp_async_bulk_wait_group", ("async", "bulk", "wait_group")): self._store_wait,
            ("ptx.griddepcontrol", ("launch_dependents",)): plain("grid", "launch_dependents"),
            ("ptx.griddepcontrol", ("wait",)): plain("grid", "wait"),
            ("ptx.setmaxnreg", ("inc", "sync", "aligned", "u32")): self._registers_of("inc"),
            ("ptx.setmaxnreg", ("dec", "sync", "aligned", "u32")): self._registers_of("dec"),
            ("ptx.tcgen05_alloc", ("alloc", "sync", "aligned", "shared::cta", "b32")): self._alloc,
            ("ptx.tcgen05_relinquish_alloc_permit", ("relinquish_alloc_permit", "sync", "aligned")): self._relinquish,
            ("ptx.tcgen05_dealloc", ("dealloc", "sync", "aligned", "b32")): self._dealloc,
        }

    def instruction(self, do: Do) -> list[Effect]:
        """Return what an instruction does."""
        group = next((m.removeprefix(_GROUP) for m in do.mods if m.startswith(_GROUP)), "1")
        mods = tuple(m for m in do.mods if not m.startswith(_GROUP))
        if do.op in self.wgmma.instructions:
            return self.wgmma.instructions[do.op](do)
        if do.op in self.exchange.instructions:
            return self.exchange.instructions[do.op](do)
        known = self.instructions.get((do.op, mods))
        if known is None:
            raise Unfollowed(" ".join((do.op.removeprefix("ptx."), *do.mods)))
        return known(do.args, group)

    # -- barriers ----------------------------------------------------------------------------------------------

    def point(self, key: int, value: Expr) -> bool:
        """Let a variable or view stand for what a `mapa` result points to; return whether `value` is one."""
        match value:
            case Call("reinterpret", (inner,)) | Call("reinterpret", (_, inner)):
                return self.point(key, inner)
            case Read(Tensor(source)) | Var(source) if source in self.remote:
                self.remote[key] = self.remote[source]
                return True
            case _:
                return False

    def _address(self, e: Expr) -> _Address:
        match e:
            case Call("cuda.cvta_generic_to_shared", (inner,)):
                return self._address(inner)
            case Call("address_of", (Read(tensor, (slot,)),)):
                base = self.remote.get(tensor.key)
                if base is None:
                    return _Address(self.places.barrier(tensor), self.terms.text(slot), _OWN)
                return _Address(base.barrier, plus(base.slot, self.terms.text(slot)), base.rank)
            case Read(tensor) if tensor.key in self.remote:
                return self.remote[tensor.key]
            case _:
                raise Unfollowed("the address of a barrier")

    def _own(self, e: Expr) -> _Address:
        address = self._address(e)
        if address.rank != _OWN:
            raise Unfollowed(f"{address.barrier} of another CTA, by its address in shared::cta")
        return address

    def _map(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        match args:
            case (Read(into), address, rank):
                # Slot and rank are those of now, wherever the result is used.
                place, to = self.terms.place(into.key), self.terms.text(rank)
                received = self.exchange.mapped(into, address, to)
                if received is not None:
                    return received
                at = self._own(address)
                if pure(to):
                    self.remote[into.key] = _Address(at.barrier, f"v[{place}]", to)
                    return [Assign(place, at.slot)]
                where = self.terms.spare()
                self.remote[into.key] = _Address(at.barrier, f"v[{place}]", f"v[{where}]")
                return [Assign(place, at.slot), Assign(where, to)]
            case _:
                raise Unfollowed("mapa")

    def _init(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        at, count = self._own(args[0]), self.terms.text(args[1])
        return [Emit("init", (at.barrier,), (at.slot, count))]

    def wait(self, args: tuple[Expr, ...]) -> Emit:
        """Return a wait on the own CTA's barrier, given its address and a parity."""
        at, parity = self._own(args[0]), self.terms.text(args[1])
        return Emit("wait", (at.barrier,), (at.slot, parity))

    def _wait_for_peers(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        at, parity = self._own(args[0]), self.terms.text(args[1])
        return [Emit("wait", (at.barrier, "cluster"), (at.slot, parity))]

    def _arrive_for_peers(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        at = self._address(args[0])
        return [Emit("arrive one", (at.barrier, "cluster"), (at.slot, at.rank, "1"))]

    def _arrive_here(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        self._own(args[0])
        return self._arrive(args, group)

    def _arrive(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        at, count = self._address(args[0]), self.terms.text(args[1]) if len(args) > 1 else "1"
        return [Emit("arrive one", (at.barrier,), (at.slot, at.rank, count))]

    def _expect_here(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        self._own(args[0])
        return self._expect(args, group)

    def _expect(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        at, size = self._address(args[0]), self.terms.text(args[1])
        return [Emit("expect", (at.barrier,), (at.slot, at.rank, size))]

    def _commit(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        if len(args) == 1:
            at = self._address(args[0])
            mask = f"1 << {at.rank}"
        else:
            at, mask = self._own(args[0]), self.terms.text(args[1])
        return [Emit("commit", (at.barrier,), (at.slot, mask, group))]

    # -- order and resources -----------------------------------------------------------------------------------

    def _warpgroup_sync(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        return [Emit("warpgroup sync", (), (self.terms.text(args[0]), "128"))]

    def _read_wait(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        return [Emit("read wait"), Settle(self.reads)]

    def _store_wait(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        return [Emit("store wait", (), (self.terms.text(args[0]),))]

    def _registers_of(self, change: str) -> Callable[[tuple[Expr, ...], str], list[Effect]]:
        return lambda args, group: [Emit("registers", (change,), (self.terms.text(args[0]),))]

    def _alloc(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        match args[0]:
            case Call("cuda.cvta_generic_to_shared", (Call("address_of", (Read(tensor, (Const(0),)),)),)):
                self._address_word(tensor)
            case _:
                raise Unfollowed("where tcgen05.alloc writes")
        return [Emit("alloc", (), (self.terms.text(args[1]), group))]

    def _dealloc(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        match args[0]:
            case Read(tensor, (Const(0),)):
                self._address_word(tensor)
            case _:
                raise Unfollowed("what tcgen05.dealloc frees")
        return [Emit("dealloc", (), (self.terms.text(args[1]), group))]

    def _address_word(self, tensor: Tensor) -> None:
        if not self.places.is_address_word(tensor):
            raise Unfollowed(f"{tensor.name} is not the word that tcgen05.alloc writes")

    def _relinquish(self, args: tuple[Expr, ...], group: str) -> list[Effect]:
        return [Emit("relinquish", (), (group,))]

    # -- tiles -------------------------------------------------------------------------------------------------

    def tile(self, tile: Tile) -> list[Effect]:
        """Return what a tile primitive does."""
        match tile.op, tile.args:
            case ("copy_async", (Box() as to, Box() as source)):
                scopes = (to.tensor.scope, source.tensor.scope)
                bulk = tile.scope == "thread" and tile.dispatch in ("tma_auto", "tma_explicit")
                if scopes == ("shared.dyn", "global") and bulk:
                    return self._load(to, source, tile.config)
                if scopes == ("global", "shared.dyn") and bulk and tile.config.keys() <= _STORE_OPTIONS:
                    return self._store(to, source)
                if scopes == ("local", "tmem") and tile.scope == "warpgroup":
                    return self._read(to, source)
            case ("gemm_async", (Box() as acc, Box() as a, Box() as b, *flags)) if tile.dispatch == "tcgen05":
                return self._mma(acc, a, b, flags, tile.config)
            case ("cast", (Box() as to, Box() as source)):
                return self._move(to, source)
            case ("copy", (Box() as to, Box() as source)):
                if (to.tensor.scope, source.tensor.scope) == ("shared.dyn", "local"):
                    return self._write(to, source, tile.scope)
            case _:
                pass
        scopes = " <- ".join(a.tensor.scope for a in tile.args if isinstance(a, Box))
        raise Unfollowed(f"{tile.op} {scopes} by a {tile.scope} {tile.dispatch}".rstrip())

    def _load(self, to: Box, source: Box, config: dict[str, Expr]) -> list[Effect]:
        unknown = config.keys() - _OPTIONS
        if unknown or "mbar" not in config:
            raise Unfollowed(f"a load with {', '.join(sorted(unknown)) or 'no mbar'}")
        name, (to_row, rows, to_column, columns) = self._smem(to)
        row, height, column, width = self._global(source, name)
        if (rows, columns) != (height, width):
            raise Unfollowed(f"a load of {height} x {width} into {rows} x {columns}")
        at = self._address(config["mbar"])
        group = self._option(config, "cta_group", "1")
        writes, signals = f"1 << {_OWN}", f"1 << {at.rank}"
        if "cta_mask" in config:
            writes = self.terms.text(config["cta_mask"])
            # PTX ISA, cp.async.bulk.tensor: the signal goes to the same offset of each destination CTA, or with
            # cta_group::2 to the CTA of its pair whose parity the barrier's address has.
            signals = f"leaders({writes}, {at.rank})" if group == "2" else writes if at.rank == _OWN else signals
        numbers = (row, column, rows, columns, to_row, to_column, at.slot, writes, signals, group)
        return [Emit("load", (name, at.barrier), numbers)]

    def _store(self, to: Box, source: Box) -> list[Effect]:
        name, (from_row, rows, from_column, columns) = self._smem(source)
        row, height, column, width = self._global(to, name)
        if (rows, columns) != (height, width):
            raise Unfollowed(f"a store of {rows} x {columns} to {height} x {width}")
        return [Emit("store", (), (row, column, rows, columns, from_row, from_column))]

    def _read(self, to: Box, source: Box) -> list[Effect]:
        column, columns = self._tmem(source)
        _whole(to)
        laid_out(to.tensor, f"(128, {columns}):(1 @ Axis.tid_in_wg, 1)")
        first = plus(column, f"-{self.terms.text(to.starts[-1])}")
        return [Emit("read", (), (column, columns)), *self.reads.fill(self.register(to.tensor), first)]

    def _mma(self, acc: Box, a: Box, b: Box, flags: list[Expr], config: dict[str, Expr]) -> list[Effect]:
        column, columns = self._tmem(acc)
        a_name, (a_row, a_rows, a_column, a_depth) = self._smem(a)
        b_name, (b_row, b_rows, b_column, b_depth) = self._smem(b)
        if (a_name, b_name, a_column, b_column, a_depth) != ("A", "B", "0", "0", b_depth):
            raise Unfollowed(f"mma of {a_name} and {b_name}, columns from {a_column} and {b_column}")
        transposed, accumulate = flags[:2], flags[2]
        if len(flags) != 3 or any(number(f) != 0 for f in transposed):
            raise Unfollowed("mma of a transposed operand")
        fresh, group = f"int(not {self.terms.text(accumulate)})", self._option(config, "cta_group", "1")
        return [Emit("mma", (), (a_row, a_rows, b_row, b_rows, a_depth, column, columns, fresh, group))]

    def _move(self, to: Box, source: Box) -> list[Effect]:
        if to.tensor.scope != "local" or source.tensor.scope != "local":
            raise Unfollowed(f"cast {to.tensor.scope} <- {source.tensor.scope}")
        _whole(to)
        _whole(source)
        ahead = plus(self.terms.text(source.starts[-1]), f"-{self.terms.text(to.starts[-1])}")
        return [Assign(self.register(to.tensor), plus(f"v[{self.register(source.tensor)}]", ahead))]

    def _write(self, to: Box, source: Box, scope: str) -> list[Effect]:
        name, (row, rows, column, columns) = self._smem(to)
        if name != "D" or rows != ("1" if scope == "thread" else str(ROWS)):
            raise Unfollowed(f"a write of {rows} rows of {name} by a {scope}")
        if scope != "thread":
            _whole(source)
            laid_out(source.tensor, fragment(int(columns)))
        elif columns != self.terms.text(source.extents[-1]) or len(source.extents) != 1:
            raise Unfollowed(f"a write of other than {columns} registers")
        first = plus(f"v[{self.register(source.tensor)}]", self.terms.text(source.starts[-1]))
        if scope != "thread":
            # A thread's registers hold two columns each of a fragment.
            return [Emit("write", (), (row, column, columns, times(first, 2)))]
        # A row for each thread, counted from where the warpgroup's rows start.
        own = self.terms.text(to.starts[-2])
        base = replace(to, starts=(*to.starts[:-2], Const(0), to.starts[-1]))
        return [Emit("write row", (), (self._smem(base)[1][0], own, column, columns, first))]

    def register(self, tensor: Tensor) -> int:
        """Return the place of what a register array holds: the accumulator column of its first element."""
        place = self.terms.place(self.roots.get(tensor.key, tensor.key))
        self.registers.add(place)
        return place

    def move(self, loop: For) -> list[Effect] | None:
        """Return what a loop does that copies all of a register array, element by element; None for another loop."""
        match loop:
            case For(Var(key), Const(0), Const(count), _, (Set(to, (Var(index),), Read(source, (at,))),)):
                match at:
                    case Call("+", (base, Var(last))):
                        start = self.terms.text(base)
                    case Var(last):
                        start = "0"
                    case _:
                        return None
                if not (key == index == last) or number(to.shape[0]) != count or to.scope != "local":
                    return None
                return [Assign(self.register(to), plus(f"v[{self.register(source)}]", start))]
            case _:
                return self.exchange.sum(loop)

    def _option(self, config: dict[str, Expr], name: str, default: str) -> str:
        return self.terms.text(config[name]) if name in config else default

    def _smem(self, box: Box) -> tuple[str, tuple[str, str, str, str]]:
        """Return the buffer and (first row, rows, first column, columns), rows counted over its whole ring."""
        name = self.places.buffer(box.tensor)
        extents = [number(n) for n in box.extents]
        if None in extents:
            raise Unfollowed(f"a box of {name} without constant extents")
        shape = [number(n) or 0 for n in box.tensor.shape]
        rows, row, single = 1, "0", True
        for place in range(len(shape) - 1):
            extent, size = extents[place] or 0, shape[place]
            if not single and (extent != size or number(box.starts[place]) != 0):
                raise Unfollowed(f"a box of {name} that is in pieces")
            single = single and extent == 1
            rows *= extent
            row = plus(times(row, size), self.terms.text(box.starts[place]))
        return name, (row, str(rows), self.terms.text(box.starts[-1]), str(extents[-1]))

    def _global(self, box: Box, name: str) -> tuple[str, str, str, str]:
        matrix = self.places.matrix(box.tensor)
        if matrix != name:
            raise Unfollowed(f"a copy between {matrix} and the buffer of {name}")
        (row, column), (rows, columns) = (tuple(map(self.terms.text, t)) for t in (box.starts, box.extents))
        return row, rows, column, columns

    def _tmem(self, box: Box) -> tuple[str, str]:
        first = number(box.tensor.columns[0]) if box.tensor.columns else None
        if first is None or len(box.starts) != 2 or number(box.starts[0]) != 0 or number(box.extents[0]) != 128:
            raise Unfollowed("a box of tensor memory that is not of all lanes")
        laid_out(box.tensor, f"(128, {number(box.tensor.shape[-1])}):(1 @ Axis.TLane, 1 @ Axis.TCol)")
        return plus(str(first), self.terms.text(box.starts[1])), self.terms.text(box.extents[1])


def _whole(box: Box) -> None:
    """Check that a box is all of a register array."""
    shape = tuple(map(number, box.tensor.shape))
    if tuple(map(number, box.extents)) != shape or any(number(s) != 0 for s in box.starts):
        raise Unfollowed(f"part of the registers {box.tensor.name}".rstrip())


def plain(verb: str, *names: str) -> Callable[[tuple[Expr, ...], str], list[Effect]]:
    """Return the translation of an instruction without operands."""

    def effect(args: tuple[Expr, ...], group: str) -> list[Effect]:
        return [Emit(verb, names)]

    return effect
