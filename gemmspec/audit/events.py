"""What a thread does, in a form in which the Protocol and the kernel can be compared: one `Event` an operation.

Numbers only, with nothing left to evaluate, so that equal events are equal tuples. `describe` puts one in words.
Rows and columns of shared memory are those of the operand's whole buffer: slot s of A has rows s * block m onward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

FULL = 0xFFFFFFFF
"""All lanes of a warp."""
RECEIVED = 1 << 20
"""From where what registers hold is numbered that comes from the receive buffers, in elements a thread."""


class Event(NamedTuple):
    """An operation of one thread. What `names` and `numbers` hold depends on the verb: see `_WORDS`."""

    verb: str
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


Done = tuple[Event, int]
"""An event and the lanes of a warp that did it, as a bit mask."""


def describe(event: Event) -> str:
    """Return an event in words."""
    words = _WORDS.get(event.verb)
    return (
        words(event.names, event.numbers) if words else " ".join((event.verb, *event.names, *map(str, event.numbers)))
    )


def ranks(mask: int) -> str:
    """Return a bit mask of CTAs in words."""
    members = [str(r) for r in range(mask.bit_length()) if mask >> r & 1]
    return f"CTA{'s' if len(members) > 1 else ''} {', '.join(members) or 'none'}"


def who(lanes: int) -> str:
    """Return a number of threads in words."""
    count = lanes.bit_count()
    return "a whole warp" if lanes == FULL else "one thread" if count == 1 else f"{count} threads of a warp"


def _cells(start: int, count: int) -> str:
    return f"{start}..{start + count - 1}"


_Words = Callable[[tuple[str, ...], tuple[int, ...]], str]


def _arrive(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    counts = [(rank, count) for rank, count in enumerate(n[1:]) if count]
    where = ", ".join(f"{count} in CTA {rank}" for rank, count in counts)
    return f"arrive {names[0]}[{n[0]}]{_scope(names)}: {where}"


def _scope(names: tuple[str, ...]) -> str:
    return f" at {names[1]} scope" if len(names) > 1 else ""


def _add(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    source = (
        f"row {(n[2] - RECEIVED) // 4} of the receive buffers" if n[2] >= RECEIVED else f"registers {_cells(n[2], 4)}"
    )
    return f"{'set' if n[1] else 'add to'} registers {_cells(n[0], 4)}: {source}"


def _load(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    row, column, rows, columns, to_row, to_column, slot, writes, signals, group = n
    source = f"{names[0]}[{_cells(row, rows)}, {_cells(column, columns)}]"
    target = f"rows {_cells(to_row, rows)}, columns {_cells(to_column, columns)} of its buffer in {ranks(writes)}"
    return f"load {source} into {target}, signals {names[1]}[{slot}] in {ranks(signals)} (cta_group {group})"


def _mma(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    a_row, a_rows, b_row, b_rows, depth, column, columns, fresh, group = n
    how = "overwrites" if fresh else "adds to"
    operands = f"A rows {_cells(a_row, a_rows)} by B rows {_cells(b_row, b_rows)}, depth {depth}"
    return f"mma: {operands}, {how} accumulator columns {_cells(column, columns)} (cta_group {group})"


def _wgmma(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    how = "adds to" if n[4] else "overwrites"
    operands = f"A row {n[0]}, column {n[1]} by B row {n[2]}, column {n[3]}"
    return f"wgmma {names[0]}, {how} registers {n[5]} onward: {operands}"


def _store(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    row, column, rows, columns, from_row, from_column = n
    source = f"rows {_cells(from_row, rows)}, columns {_cells(from_column, columns)} of the store buffers"
    return f"store {source} to D[{_cells(row, rows)}, {_cells(column, columns)}]"


def _write(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    row, column, columns, acc = n
    if acc < 0:
        return f"write registers that nothing has been read into to row {row} onward of the store buffers"
    return f"write accumulator columns {_cells(acc, columns)} to row {row} onward, column {column} of the store buffers"


def _wait(names: tuple[str, ...], n: tuple[int, ...]) -> str:
    text = f"wait {names[0]}[{n[0]}] parity {n[1]}{_scope(names)}"
    if len(n) > 2:
        row, site, slot, tile, k, named = n[2:]
        text += f" as row {row}, site {site}, slot {slot}, tile {tile}, k {k}, agreeing at {named}"
    return text


_WORDS: dict[str, _Words] = {
    "init": lambda names, n: f"initialise {names[0]}[{n[0]}] for {n[1]} arrivals",
    "wait": _wait,
    "arrive": _arrive,
    "expect": lambda names, n: f"expect {n[2]} bytes on {names[0]}[{n[0]}] of CTA {n[1]}",
    "commit": lambda names, n: f"commit {names[0]}[{n[0]}] in {ranks(n[1])} (cta_group {n[2]})",
    "load": _load,
    "mma": _mma,
    "wgmma": _wgmma,
    "wgmma fence": lambda names, n: "wgmma.fence",
    "wgmma commit": lambda names, n: "wgmma.commit_group",
    "loop": lambda names, n: f"loop of {n[0]} trips",
    "retire": lambda names, n: f"wgmma.wait_group {n[0]}",
    "read": lambda names, n: f"read accumulator columns {_cells(n[0], n[1])}",
    "read wait": lambda names, n: "tcgen05.wait::ld",
    "send": lambda names, n: f"send registers {_cells(n[2], 4)} to row {n[1]} of the receive buffers of CTA {n[0]}",
    "add": _add,
    "write": _write,
    "store": _store,
    "store commit": lambda names, n: "cp.async.bulk.commit_group",
    "store wait": lambda names, n: f"cp.async.bulk.wait_group {n[0]}",
    "proxy fence": lambda names, n: "fence.proxy.async",
    "init fence": lambda names, n: "fence.mbarrier_init",
    "tcgen05 fence": lambda names, n: f"tcgen05.fence::{names[0]}",
    "warpgroup sync": lambda names, n: f"named barrier {n[0]}, {n[1]} threads",
    "sync": lambda names, n: f"{names[0]} sync",
    "grid": lambda names, n: f"griddepcontrol.{names[0]}",
    "registers": lambda names, n: f"setmaxnreg.{names[0]} {n[0]}",
    "alloc": lambda names, n: f"tcgen05.alloc of {n[0]} columns (cta_group {n[1]})",
    "relinquish": lambda names, n: f"tcgen05.relinquish_alloc_permit (cta_group {n[0]})",
    "dealloc": lambda names, n: f"tcgen05.dealloc of {n[0]} columns (cta_group {n[1]})",
    "unknown": lambda names, n: names[0],
}
