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


def compare(expected: Sequence[Expected], warps: Sequence[Sequence[Done]], of: int, alone: bool) -> Mismatch | None:
    """Return the first place where warps do not do what is expected.

    `warps`: those that are followed, of the `of` warps of the instance. `alone`: one thread does it all.
    """
    at = [0] * len(warps)
    thread: tuple[int, int] | None = None
    for e in expected:
        if not e.single:
            wanted = (_share(e.event, of), FULL)
            for i, warp in enumerate(warps):
                if at[i] >= len(warp) or warp[at[i]] != wanted:
                    return _mismatch(e, warp[at[i] :])
                at[i] += 1
            continue
        doers = [i for i, warp in enumerate(warps) if at[i] < len(warp) and warp[at[i]][0] == e.event]
        if len(doers) != 1:
            i = thread[0] if thread else 0
            return _mismatch(e, warps[i][at[i] :], len(doers))
        (doer,) = doers
        lanes = warps[doer][at[doer]][1]
        if lanes.bit_count() != 1 and e.event.verb != "arrive":
            return _mismatch(e, warps[doer][at[doer] :])
        if alone or e.event.verb in _OF_ONE_THREAD:
            if thread not in (None, (doer, lanes)):
                return _mismatch(e, warps[doer][at[doer] :], other=True)
            thread = (doer, lanes)
        at[doer] += 1
    for warp, i in zip(warps, at, strict=True):
        if i < len(warp):
            last = expected[-1] if expected else None
            place = f"after {last.place}" if last and last.place else ""
            return Mismatch("nothing more", describe(warp[i][0]), place, last.action.span if last else None)
    return None


def _share(event: Event, warps: int) -> Event:
    """Return what each warp does of an event of all threads."""
    if event.verb != "arrive":
        return event
    slot, *counts = event.numbers
    return Event(event.verb, event.names, (slot, *(n // warps for n in counts)))


def _mismatch(e: Expected, found: Sequence[Done], doers: int = 1, other: bool = False) -> Mismatch:
    """Say what is expected, and the first thing that is found instead."""
    if not found:
        return Mismatch(describe(e.event), "nothing more", e.place, e.action.span)
    event, lanes = found[0]
    expected, text = describe(e.event), describe(event)
    if expected == text:
        expected += ", by one thread" if e.single else ", by each thread"
        text += f", in {doers} warps" if doers > 1 else f", by {who(lanes)}"
        text += ", not the one of before" if other else ""
    return Mismatch(expected, text, e.place, e.action.span)
