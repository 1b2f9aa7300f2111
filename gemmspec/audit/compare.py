"""One instance of a role against the warps that run it: the same events, in the same order, by as many threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmspec.audit.events import FULL, Done, Event, describe, who
from gemmspec.audit.expected import Expected
from gemmspec.source import Span

# `cp.async.bulk` groups belong to the thread that commits them.
_OF_ONE_THREAD = {"store", "store commit", "store wait"}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where the two sides part: `place` is the trip, in words."""

    expected: str
    found: str
    place: str
    span: Span | None


def compare(expected: Sequence[Expected], warps: Sequence[Sequence[Done]], alone: bool) -> Mismatch | None:
    """Return the first place where warps do not do what is expected. `alone`: one thread does it all."""
    at = [0] * len(warps)
    thread: tuple[int, int] | None = None
    for e in expected:
        wanted = e.event if e.single else _share(e.event, len(warps))
        heads = [w[i] if i < len(w) else None for w, i in zip(warps, at, strict=True)]
        doers = [i for i, d in enumerate(heads) if d is not None and d.event == wanted]
        if not e.single:
            lazy = next((i for i, d in enumerate(heads) if i not in doers or d is None or d.lanes != FULL), None)
            if lazy is not None:
                return _mismatch(e, heads[lazy])
            at = [i + 1 for i in at]
            continue
        if len(doers) != 1:
            return _mismatch(e, heads[thread[0] if thread else 0], len(doers))
        (doer,) = doers
        done = warps[doer][at[doer]]
        if done.lanes.bit_count() != 1 and done.event.verb != "arrive":
            return _mismatch(e, done)
        if alone or done.event.verb in _OF_ONE_THREAD:
            if thread not in (None, (doer, done.lanes)):
                return _mismatch(e, done, other=True)
            thread = (doer, done.lanes)
        at[doer] += 1
    for done, i in zip(warps, at, strict=True):
        if i < len(done):
            last = expected[-1] if expected else None
            place = f"after {last.place}" if last and last.place else ""
            return Mismatch("nothing more", _found(done[i]), place, last.action.span if last else None)
    return None


def _share(event: Event, warps: int) -> Event:
    """Return what each warp does of an event of all threads."""
    if event.verb != "arrive":
        return event
    slot, *counts = event.numbers
    return Event(event.verb, event.names, (slot, *(n // warps for n in counts)))


def _mismatch(e: Expected, done: Done | None, doers: int = 1, other: bool = False) -> Mismatch:
    expected, found = describe(e.event), "nothing more" if done is None else describe(done.event)
    if expected == found and done is not None:
        expected += ", by one thread" if e.single else ", by each thread"
        found += f", in {doers} warps" if doers > 1 else f", by {who(done.lanes)}"
        found += ", not the one of before" if other else ""
    return Mismatch(expected, found, e.place, e.action.span)


def _found(done: Done) -> str:
    return describe(done.event)
