"""Outcomes as text for a person, and as data for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from gemmspec.protocol.program import Protocol
from gemmspec.protocol.tile import Tiling
from gemmspec.simulate.outcome import LEGEND, Fault, Outcome, Place, Waiting
from gemmspec.source import SourceFile, Span


def text(protocol: Protocol, outcomes: Sequence[Outcome], source: SourceFile) -> str:
    """Return what was found in all schedules: a line of summary, and the first bad schedule in full."""
    return "".join(line + "\n" for line in _lines(protocol, outcomes, source))


def data(outcomes: Sequence[Outcome], source: SourceFile) -> dict[str, Any]:
    """Return the same as plain data; numbers that JSON lacks are None, spans are lines and columns."""
    return {
        "version": 1,
        "path": source.name,
        "ok": all(o.ok for o in outcomes),
        "schedules": [_plain(o, source) for o in outcomes],
    }


def _lines(protocol: Protocol, outcomes: Sequence[Outcome], source: SourceFile) -> Iterator[str]:
    first = outcomes[0]
    m, n, k = first.sizes
    bad = [o for o in outcomes if not o.ok]
    what = f"`{protocol.spec.name}` at M={m} N={n} K={k}"
    if bad:
        yield f"wrong: {what}, under {len(bad)} of {_schedules(outcomes)}: {_seeds(bad)}"
    else:
        yield f"right: {what}, under {_schedules(outcomes)}: {_seeds(outcomes)}"
    idle = first.clusters > first.tiles
    clusters = _count(first.clusters - idle, "cluster") + ", and a cluster without any" * idle
    yield f"  {_count(first.tiles, 'tile')} on {clusters}; {first.steps} steps a schedule"
    if not bad:
        worst = max(o.relative_error for o in outcomes)
        yield f"  relative error {worst:.1e} against {first.reference} in float32"
        return
    yield from _bad(protocol, bad[0], source)


def _bad(protocol: Protocol, outcome: Outcome, source: SourceFile) -> Iterator[str]:
    yield ""
    yield f"seed {outcome.seed}: {outcome.wrong} of {_count(outcome.blocks, 'block')} of D not right" + (
        "" if math.isnan(outcome.relative_error) else f", relative error {outcome.relative_error:.1e}"
    )
    tiling = Tiling.of(protocol.spec)
    yield f"  D, each character {_cell(outcome, tiling)}:"
    for row in outcome.map:
        yield f"    |{row}|"
    used = {c for row in outcome.map for c in row}
    for char, meaning in LEGEND.items():
        if char in used:
            yield f"    {char or ' '} {meaning}"
    shown = outcome.faults[0].cluster if outcome.faults else None
    for fault in outcome.faults:
        if fault.cluster == shown:
            yield ""
            yield from _fault(fault, source)
    more = len({fault.cluster for fault in outcome.faults}) - 1
    if more > 0:
        yield ""
        yield f"faults in {_count(more, 'more cluster')}"


def _cell(outcome: Outcome, tiling: Tiling) -> str:
    rows, columns = -(-outcome.sizes[0] // tiling.block_m), -(-outcome.sizes[1] // tiling.acc_columns)
    size = f"a block of {tiling.block_m} x {tiling.acc_columns} elements"
    joined = (rows, columns) != (len(outcome.map), len(outcome.map[0]))
    return f"the worst of several, each {size}" if joined else size


def _fault(fault: Fault, source: SourceFile) -> Iterator[str]:
    yield f"{fault.kind} in cluster {fault.cluster}: {fault.message}"
    if fault.place:
        yield f"  {_place(fault.place)}{_at(fault.place.span, source)}"
    if fault.other:
        yield f"  changed last by {_place(fault.other)}{_at(fault.other.span, source)}"
    for wait in fault.waits:
        yield f"  {_place(wait.place)} waits for {wait.what}{_at(wait.place.span, source)}"
        if wait.barrier:
            yield f"    {_count(wait.phase or 0, 'phase')} complete; the next lacks {_lacks(wait)}"
    if fault.finished:
        yield f"  finished: {', '.join(fault.finished)}"
    if fault.cycle:
        ring = [*fault.cycle, fault.cycle[0]]
        yield "  cycle: " + ", ".join(f"{a} waits for {b}" for a, b in pairwise(ring))


def _lacks(wait: Waiting) -> str:
    parts = [_count(wait.arrivals or 0, "arrival")]
    if wait.bytes:
        parts.append(f"{wait.bytes} bytes" if wait.bytes > 0 else f"{-wait.bytes} bytes that came and are not expected")
    return " and ".join(parts)


def _place(place: Place) -> str:
    words = f"{place.role} {place.instance} of CTA {place.cta}"
    if place.warps and len(place.warps) < 4:
        words += f", warp{'s' * (len(place.warps) > 1)} {', '.join(map(str, place.warps))}"
    if place.tile is not None:
        row, column = place.coordinates or (0, 0)
        words += f" at tile {place.tile} (row {row}, column {column})"
    return words + (f", k {place.k}" if place.k is not None else "")


def _at(span: Span | None, source: SourceFile) -> str:
    return f"  {source.name}:{source.position(span.start)[0]}" if span else ""


def _schedules(outcomes: Sequence[Outcome]) -> str:
    return _count(len(outcomes), "schedule")


def _seeds(outcomes: Sequence[Outcome]) -> str:
    """Return `seeds 0..3, 7`."""
    runs: list[list[int]] = []
    for seed in (o.seed for o in outcomes):
        if runs and runs[-1][1] == seed - 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    word = "seed" if len(outcomes) == 1 else "seeds"
    return f"{word} {', '.join(str(a) if a == b else f'{a}..{b}' for a, b in runs)}"


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _plain(outcome: Outcome, source: SourceFile) -> dict[str, Any]:
    error = outcome.relative_error
    m, n, k = outcome.sizes
    return {
        "seed": outcome.seed,
        "ok": outcome.ok,
        "sizes": {"M": m, "N": n, "K": k},
        "clusters": outcome.clusters,
        "tiles": outcome.tiles,
        "steps": outcome.steps,
        "relative_error": error if math.isfinite(error) else None,
        "reference": outcome.reference,
        "wrong": outcome.wrong,
        "blocks": outcome.blocks,
        "map": list(outcome.map),
        "faults": [_plain_fault(fault, source) for fault in outcome.faults],
    }


def _plain_fault(fault: Fault, source: SourceFile) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "message": fault.message,
        "cluster": fault.cluster,
        "place": _plain_place(fault.place, source) if fault.place else None,
        "other": _plain_place(fault.other, source) if fault.other else None,
        "waits": [_plain_wait(wait, source) for wait in fault.waits],
        "finished": list(fault.finished),
        "cycle": list(fault.cycle),
    }


def _plain_wait(wait: Waiting, source: SourceFile) -> dict[str, Any]:
    return {
        "place": _plain_place(wait.place, source),
        "what": wait.what,
        "barrier": wait.barrier,
        "slot": wait.slot,
        "parity": wait.parity,
        "phase": wait.phase,
        "arrivals": wait.arrivals,
        "bytes": wait.bytes,
    }


def _plain_place(place: Place, source: SourceFile) -> dict[str, Any]:
    line, column = source.position(place.span.start) if place.span else (None, None)
    return {
        "role": place.role,
        "instance": place.instance,
        "cta": place.cta,
        "warps": list(place.warps),
        "tile": place.tile,
        "tile_row": place.coordinates[0] if place.coordinates else None,
        "tile_column": place.coordinates[1] if place.coordinates else None,
        "k": place.k,
        "line": line,
        "column": column,
    }
