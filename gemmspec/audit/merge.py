"""Events that are one operation in several pieces, put together, on either side of the comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gemmspec.audit.events import Done, Event
from gemmspec.audit.expected import Expected


def joined(first: Event, second: Event) -> Event | None:
    """Return the operation of which two events in a row are the halves; None where they are not."""
    if first.verb != second.verb or first.names != second.names:
        return None
    a, b = first.numbers, second.numbers
    match first.verb:
        case "load" | "store":
            box, other, rest = a[:6], b[:6], a[6:]
            whole = _side_by_side(box, other) or _one_below(box, other)
            if whole is not None and rest == b[6:]:
                return Event(first.verb, first.names, (*whole, *rest))
        case "write":
            row, column, columns, held = a
            if b[0] == row and (b[1] - column, b[3] - held) == (columns, columns):
                return Event("write", first.names, (row, column, columns + b[2], held))
        case "arrive" if a[0] == b[0]:
            return Event("arrive", first.names, (a[0], *(x + y for x, y in zip(a[1:], b[1:], strict=True))))
        case _:
            pass
    return None


def _side_by_side(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return two boxes (row, column, rows, columns, and where they go) as one; None where they do not adjoin."""
    row, column, rows, columns, to_row, to_column = a
    if b == (row, column + columns, rows, b[3], to_row, to_column + columns):
        return (row, column, rows, columns + b[3], to_row, to_column)
    return None


def _one_below(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    row, column, rows, columns, to_row, to_column = a
    if b == (row + rows, column, b[2], columns, to_row + rows, to_column):
        return (row, column, rows + b[2], columns, to_row, to_column)
    return None


def merged(done: Iterable[Done], cluster: int) -> list[Done]:
    """Return what a warp did, with copies in pieces as one, and arrivals on a slot as one with a count for each CTA."""
    out: list[Done] = []
    for event, lanes in done:
        if event.verb == "arrive one":
            slot, rank, count = event.numbers
            counts = [0] * cluster
            if 0 <= rank < cluster:
                counts[rank] = count * lanes.bit_count()
            event = Event("arrive", event.names, (slot, *counts))
        if out and (event.verb == "arrive" or out[-1][1] == lanes):
            whole = joined(out[-1][0], event)
            if whole is not None:
                event, lanes = whole, lanes | out.pop()[1]
        out.append((event, lanes))
    return out


def together(expected: Iterable[Expected]) -> list[Expected]:
    """Return the Protocol's events with the same put together."""
    out: list[Expected] = []
    for e in expected:
        whole = joined(out[-1].event, e.event) if out and out[-1].single == e.single else None
        if whole is not None:
            e = replace(out.pop(), event=whole)
        out.append(e)
    return out
