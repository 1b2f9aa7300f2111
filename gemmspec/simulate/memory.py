"""The memories of one CTA, and the poison in them.

Every buffer starts as NaN. It is NaN again from the moment that its content is dead (its last reader is done) or
about to change (a load is issued), until a new content is complete; an accumulator may be read again, and so keeps
its sum until another takes its place. A reader that needs its source over a span of
time, as every asynchronous operation does, notes the slot's version at the start; if that has changed at the end,
it has read NaN.
"""

from __future__ import annotations

import numpy as np

from gemmspec.simulate.barriers import ProtocolFault
from gemmspec.simulate.outcome import Place
from gemmspec.simulate.problem import Array

NAN = np.float32(np.nan)


def empty(rows: int, columns: int) -> Array:
    """Return an array of NaN."""
    return np.full((rows, columns), NAN, np.float32)


class Slots:
    """Equal slots of rows, one below the other in one array.

    `version` counts what happened to each slot, and `by` says who began to fill it last.
    """

    def __init__(self, name: str, slots: int, rows: int, columns: int) -> None:
        self.name, self.slots, self.rows = name, slots, rows
        self.data = empty(slots * rows, columns)
        self.version = [0] * slots
        self.by: list[Place | None] = [None] * slots

    def of(self, slot: int) -> Array:
        """Return the rows of one slot."""
        self.check(slot, 1)
        return self.data[slot * self.rows : (slot + 1) * self.rows]

    def check(self, first: int, count: int) -> None:
        """Fail if there are no such slots."""
        if first < 0 or first + count > self.slots:
            raise ProtocolFault("range", f"slot {first + count - 1} of buffer {self.name} is used; it has {self.slots}")

    def touched(self, first_row: int, rows: int) -> range:
        """Return the slots that a range of rows meets."""
        return range(first_row // self.rows, (first_row + rows - 1) // self.rows + 1)

    def poison(self) -> None:
        """Make everything NaN."""
        self.data.fill(NAN)
        self.version = [v + 1 for v in self.version]


class Stages(Slots):
    """One operand's tiles in shared memory. `readers`: how many Mma read each fill before it is dead."""

    def __init__(self, name: str, slots: int, rows: int, columns: int, readers: int) -> None:
        super().__init__(name, slots, rows, columns)
        self.readers = readers
        self._reads = [0] * slots

    def begin(self, row: int, rows: int, by: Place) -> None:
        """A load is issued: its rows hold nothing from now on."""
        if row + rows > len(self.data):
            raise ProtocolFault("range", f"a load goes {row + rows - len(self.data)} rows beyond buffer {self.name}")
        self.data[row : row + rows] = NAN
        for slot in self.touched(row, rows):
            self.version[slot] += 1
            self.by[slot] = by
            self._reads[slot] = 0

    def land(self, row: int, values: Array) -> None:
        """Rows of a load are there."""
        rows = values.shape[0]
        self.data[row : row + rows] = values
        for slot in self.touched(row, rows):
            self.version[slot] += 1

    def read(self, slot: int) -> None:
        """An Mma is through with a slot."""
        self._reads[slot] += 1
        if self._reads[slot] == self.readers:
            self.of(slot).fill(NAN)
            self.version[slot] += 1


class Accumulators:
    """float32 accumulators: columns of tensor memory, or registers. Slot i is at columns i * columns."""

    def __init__(self, slots: int, rows: int, columns: int) -> None:
        self.slots, self.columns = slots, columns
        self.data = empty(rows, slots * columns)
        self.version = [0] * slots
        self.by: list[Place | None] = [None] * slots
        self._writers: list[list[object]] = [[] for _ in range(slots)]

    def check(self, slot: int) -> None:
        """Fail if there is no such accumulator."""
        if not 0 <= slot < self.slots:
            raise ProtocolFault("range", f"accumulator {slot} is used; there are {self.slots}")

    def of(self, slot: int) -> Array:
        """Return the rows and columns of one accumulator."""
        return self.data[:, slot * self.columns : (slot + 1) * self.columns]

    def quiet(self, slot: int) -> bool:
        """Return whether no Mma is under way into an accumulator."""
        return not self._writers[slot]

    def begin(self, slot: int, thread: object, by: Place) -> bool:
        """An Mma is issued; return False if it races with that of another thread."""
        alone = all(writer is thread for writer in self._writers[slot])
        self._writers[slot].append(thread)
        self.version[slot] += 1
        self.by[slot] = by
        return alone

    def end(self, slot: int, thread: object) -> None:
        """An Mma is complete."""
        self._writers[slot].remove(thread)
        self.version[slot] += 1

    def poison(self) -> None:
        """Make everything NaN."""
        self.data.fill(NAN)
        self.version = [v + 1 for v in self.version]
