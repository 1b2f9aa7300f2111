"""The asynchronous operations: what each does when it is issued, and what when it ends.

Every operation needs its sources unchanged from issue to end. That is the widest window that the PTX ISA allows,
so what stays right here stays right wherever in the window the hardware looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gemmspec.protocol.program import AccRead, Commit, Load, Mma, StoreIssue
from gemmspec.protocol.tile import b_row_of, chunk_of, column_of, depth_of, row_of
from gemmspec.simulate.barriers import ProtocolFault
from gemmspec.simulate.machine import Cta, Lane, Machine
from gemmspec.simulate.memory import NAN, Slots, Stages, empty
from gemmspec.simulate.outcome import Place
from gemmspec.simulate.problem import Array, multiply
from gemmspec.vocabulary import Operand

if TYPE_CHECKING:
    from gemmspec.simulate.warp import Warp


def box(matrix: Array, row: int, column: int, rows: int, columns: int) -> Array:
    """Return what a bulk tensor load reads: zeros where the box leaves the matrix."""
    inside = matrix[row : row + rows, column : column + columns]
    if inside.shape == (rows, columns):
        return inside
    out = np.zeros((rows, columns), np.float32)
    out[: inside.shape[0], : inside.shape[1]] = inside
    return out


def load(warp: Warp, statement: Load) -> None:
    """Issue a bulk tensor load. It lands in one or two pieces in each CTA; bytes are counted as they land."""
    machine, rank = warp.machine, warp.cta.rank
    spec, tiling = machine.spec, machine.tiling
    row_index, column_index = warp.tile
    if statement.operand is Operand.A:
        matrix = machine.problem.a
        row = row_of(spec, tiling, row_index, rank, statement.first)
    else:
        matrix = machine.problem.b
        row = b_row_of(spec, tiling, column_index, rank)
    sharing = statement.writes.of(rank)
    offset = sharing.index(rank) * statement.rows if statement.parts > 1 and rank in sharing else 0
    depth = warp.next_load(statement.operand, statement.first)
    column = depth_of(spec, tiling, machine.problem.k, rank, depth)
    values = box(matrix, row + offset, column, statement.rows, tiling.block_k)
    slot, barrier_slot = warp.at(statement.slot), warp.at(statement.barrier_slot)
    place = warp.place(statement.span)
    for target in statement.writes.of(rank):
        cta = machine.cta(target)
        cta.alive()
        stages = cta.a if statement.operand is Operand.A else cta.b
        stages.check(slot, statement.count)
        first = slot * stages.rows + offset
        stages.begin(first, statement.rows, place)
        cut = machine.adversary.below(statement.rows)
        for low, high in ((0, cut), (cut, statement.rows)):
            if low < high:
                size = statement.bytes * high // statement.rows - statement.bytes * low // statement.rows
                _land(machine, statement, place, cta, stages, first + low, values[low:high], barrier_slot, size)


def _land(
    machine: Machine,
    statement: Load,
    place: Place,
    cta: Cta,
    stages: Stages,
    row: int,
    values: Array,
    barrier_slot: int,
    size: int,
) -> None:
    signals = statement.signals.of(cta.rank)
    if len(signals) > 1:
        # PTX ISA, cp.async.bulk.tensor: the instruction has one mbarrier operand for what it writes to a CTA.
        raise ProtocolFault("impossible", f"what a load lands in CTA {cta.rank} counts on {len(signals)} barriers")

    def end() -> None:
        cta.alive()
        stages.land(row, values)
        for signalled in signals:
            machine.cta(signalled).barrier(statement.barrier, barrier_slot).complete(size)

    machine.lane("load", cta).push(end, place)


class Multiply:
    """One Mma statement under way: in a pair, both CTAs' rows; on Hopper, issued by four warps together."""

    def __init__(self, warp: Warp, statement: Mma, fresh: bool) -> None:
        self.done = False
        self.issued = 0
        self.warps: list[Warp] = []
        self.place = warp.place(statement.span)
        self._machine = warp.machine
        self._thread = warp.team
        self._fresh = fresh
        self._ctas = warp.machine.pair(warp.cta.rank)
        self._a, self._b, self._acc = warp.at(statement.a), warp.at(statement.b), warp.at(statement.acc)
        self._sources: list[tuple[Slots, int, int]] = []
        self._spoilt = warp.unordered
        if warp.unordered:
            self._machine.hazard("its MMA may go ahead of a wait, as no tcgen05 fence follows that", self.place)
        for cta in self._ctas:
            cta.alive()
            for slots, slot in ((cta.a, self._a), (cta.b, self._b)):
                slots.check(slot, 1)
                self._sources.append((slots, slot, slots.version[slot]))
            cta.acc.check(self._acc)
            other = cta.acc.by[self._acc]
            if not cta.acc.begin(self._acc, self._thread, self.place):
                self._spoilt = True
                self._machine.hazard("its MMA and that of another thread change one accumulator", self.place, other)

    def end(self) -> None:
        """Multiply and accumulate; then the stages have been read."""
        whole = [self._whole(*source) for source in self._sources]
        for cta, a_whole in zip(self._ctas, whole[::2], strict=True):
            cta.alive()
            acc = cta.acc.of(self._acc)
            a = cta.a.of(self._a)
            n = cta.b.rows
            for i, (peer, b_whole) in enumerate(zip(self._ctas, whole[1::2], strict=True)):
                part = acc[:, i * n : (i + 1) * n]
                if self._spoilt or not (a_whole and b_whole):
                    part.fill(NAN)
                elif self._fresh:
                    multiply(a, peer.b.of(self._b), part)
                else:
                    term = np.empty(part.shape, np.float32)
                    multiply(a, peer.b.of(self._b), term)
                    part += term
        for cta in self._ctas:
            cta.acc.end(self._acc, self._thread)
            cta.a.read(self._a)
            cta.b.read(self._b)
        self.done = True
        for warp in self.warps:
            warp.wake()

    def _whole(self, slots: Slots, slot: int, version: int) -> bool:
        """Return whether a source holds what it held at issue; data that are NaN make the product so by themselves."""
        machine, name = self._machine, f"{slots.name}[{slot}]"
        if slots.version[slot] != version:
            machine.hazard(f"{name} changes while its MMA reads it", self.place, slots.by[slot])
            return False
        if machine.first_hazard is None and np.isnan(slots.of(slot)).any():
            machine.hazard(f"its MMA reads {name}, which holds no data", self.place, slots.by[slot])
        return True


def mma(warp: Warp, statement: Mma) -> None:
    """Issue an Mma. Those of one thread, or of one warpgroup, end in the order of issue."""
    team = warp.team
    fresh = warp.begin_accumulating(warp.at(statement.acc))
    if warp.machine.spec.target.has_tmem:
        operation = Multiply(warp, statement, fresh)
        team.multiplies.push(operation.end, operation.place)
        return
    # wgmma is of a whole warpgroup: the four warps come at different times, and it can end after the last.
    if warp.issued == len(team.together):
        team.together.append(Multiply(warp, statement, fresh))
    operation = team.together[warp.issued]
    warp.issued += 1
    operation.issued += 1
    operation.warps.append(warp)
    warp.unretired.append(operation)
    if operation.issued == len(team.warps):
        team.multiplies.push(operation.end, operation.place)


def commit(warp: Warp, statement: Commit) -> None:
    """Issue a commit: behind the Mma of the thread, one arrival on each target, in any order of targets.

    Arrivals of earlier commits of the thread come before those of later ones.
    """
    machine, team = warp.machine, warp.team
    slot, place = warp.at(statement.slot), warp.place(statement.span)
    targets = list(statement.targets.of(warp.cta.rank))

    def deliver(target: int) -> None:
        machine.cta(target).barrier(statement.barrier, slot).arrive(1)

    def end() -> None:
        while targets:
            target = targets.pop(machine.adversary.below(len(targets)))
            team.arrivals.push(lambda target=target: deliver(target), place)

    team.multiplies.push(end, place)


def read(warp: Warp, statement: AccRead) -> None:
    """Issue `tcgen05.ld` of one chunk of columns by one warp, which reaches its quarter of the lanes."""
    machine, cta = warp.machine, warp.cta
    tiling, acc = machine.tiling, cta.acc
    slot, chunk = warp.at(statement.acc), warp.chunk
    acc.check(slot)
    columns = slice(chunk * tiling.chunk, min((chunk + 1) * tiling.chunk, acc.columns))
    version = acc.version[slot]
    place, other, steady = warp.place(statement.span), acc.by[slot], acc.quiet(slot)
    if warp.unordered:
        machine.hazard("its read of the accumulator may go ahead of a wait, as no tcgen05 fence follows that", place)
        steady = False
    # Until the end, and where the chunk is wider than what is left of the accumulator, registers hold nothing.
    registers = empty(warp.rows.stop - warp.rows.start, tiling.chunk)
    warp.registers[chunk] = (registers, slot // tiling.accumulators)
    warp.reading += 1

    def end() -> None:
        cta.alive()
        source = acc.of(slot)[warp.rows, columns]
        if steady and acc.version[slot] == version:
            registers[:, : source.shape[1]] = source
            if machine.first_hazard is None and np.isnan(source).any():
                machine.hazard(f"it reads accumulator {slot}, which holds no data", place, other)
        else:
            machine.hazard(f"accumulator {slot} changes while it is read", place, acc.by[slot])
        warp.reading -= 1
        warp.wake()

    machine.lane("read", cta).push(end, place)


class Store:
    """One bulk tensor store under way."""

    def __init__(self) -> None:
        self.done = False


def store(warp: Warp, statement: StoreIssue) -> Store:
    """Issue a bulk tensor store of a buffer to D; what leaves D is dropped."""
    machine, cta = warp.machine, warp.cta
    spec, tiling = machine.spec, machine.tiling
    slot = warp.at(statement.buffer)
    cta.d.check(slot, 1)
    version = cta.d.version[slot]
    row = row_of(spec, tiling, warp.tile[0], cta.rank, warp.consumer)
    first = tiling.chunk_column(chunk_of(spec, tiling, cta.rank, warp.chunk))
    column = column_of(spec, tiling, warp.tile[1], cta.rank) + first
    twice = np.isin(np.arange(first, first + tiling.chunk), tiling.shared_columns)
    operation, place = Store(), warp.place(statement.span)

    def end() -> None:
        source = cta.d.of(slot)
        same = cta.d.version[slot] == version
        if not same:
            machine.hazard(f"D[{slot}] changes while its store reads it", place, cta.d.by[slot])
        elif machine.first_hazard is None and np.isnan(source).any():
            machine.hazard(f"its store reads D[{slot}], which does not hold all data", place, cta.d.by[slot])
        _write(machine, place, row, column, source if same else np.full_like(source, NAN), twice)
        if same:
            source.fill(NAN)
        operation.done = True
        warp.wake()

    machine.lane("store", cta).push(end, place)
    return operation


def _write(machine: Machine, place: Place, row: int, column: int, values: Array, twice: NDArray[np.bool_]) -> None:
    """Put values into D. `twice`: for each column, whether another chunk stores it, too, with the same values."""
    output = machine.output
    rows, columns = slice(row, row + values.shape[0]), slice(column, column + values.shape[1])
    target, written = output.d[rows, columns], output.written[rows, columns]
    given = values[: target.shape[0], : target.shape[1]]
    # Two stores of one element are in no order, whichever clusters they come from.
    again = written & ~(twice[: target.shape[1]] & (target == given))
    fresh = int(np.count_nonzero(~written))
    target[...] = given
    if again.any():
        machine.hazard("its store writes elements of the output that were stored before", place)
        target[again] = NAN
    written[...] = True
    output.stored(fresh)


class Team:
    """One role instance in one CTA: its warps, and the engines that keep their order."""

    def __init__(self, machine: Machine, cta: Cta) -> None:
        self.warps: list[Warp] = []
        self.multiplies: Lane = machine.lane("mma", cta)
        self.arrivals: Lane = machine.lane("commit", cta)
        self.together: list[Multiply] = []
