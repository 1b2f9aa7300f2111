"""The error of a debug build whose waits gave up, in the words and the layout of lint's deadlock."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.runtime.waits import At, Stop, Waiting, Waits


class HangError(RuntimeError):
    """A wait of a debug build was not over in time, and the kernel stopped; D holds garbage.

    `kernel`: its name. `waits`: all that gave up in the first cluster where one did. `cycle`: those of them that wait
    for each other in a ring, or the one that nobody will wake. `stop`: all that is known.
    """

    def __init__(self, kernel: str, table: Waits, stop: Stop) -> None:
        super().__init__("\n".join(_lines(kernel, table, stop)))
        self.kernel, self.stop = kernel, stop
        self.waits, self.cycle = stop.waits, stop.cycle


def _lines(kernel: str, table: Waits, stop: Stop) -> Iterator[str]:
    yield f"kernel `{kernel}` stopped: a wait was not over after {table.seconds:g} s"
    waits = [f"{_who(table, w.at)} waits for `{w.barrier}[{w.slot}]`" for w in stop.cycle]
    yield f"hang: {_listed(waits)}"
    yield from _excerpt(table, stop)
    for w in stop.cycle:
        yield f"   = note: {_note(table, w)}"
    for w in stop.waits:
        if w not in stop.cycle:
            yield f"   = note: beside them, {_note(table, w)}"
    for w in stop.waits:
        if not w.agrees:
            yield f"   = note: {_contradiction(w)}"
    if stop.ended:
        yield f"   = note: {_listed([_who(table, at) for at in stop.ended])} had ended"
    more = f", as in {stop.clusters} of {table.clusters} clusters" if stop.clusters > 1 else ""
    ctas = f"CTA {stop.cluster * table.cluster}"
    if table.cluster > 1:
        ctas = f"CTAs {stop.cluster * table.cluster}..{(stop.cluster + 1) * table.cluster - 1}"
    yield f"   = note: this is how cluster {stop.cluster} ({ctas} of the grid) stood{more}; D holds garbage"


def _excerpt(table: Waits, stop: Stop) -> Iterator[str]:
    """Yield the lines of the spec at which the roles of the cycle wait, the first of them underlined by carets."""
    marks: dict[tuple[int, int], tuple[Waiting, list[Waiting]]] = {}
    for w in stop.cycle:
        marks.setdefault((w.site.line, w.site.column), (w, []))[1].append(w)
    first = stop.cycle[0].site
    margin = " " * len(str(max(line for line, _ in marks)))
    yield f"{margin} --> {table.spec}:{first.line}:{first.column}"
    yield f"{margin}  |"
    shown = 0
    for (line, column), (w, here) in sorted(marks.items(), key=lambda mark: mark[0]):
        if line != shown:
            yield f"{line:>{len(margin)}}  | {w.site.text}".replace("\t", " ").rstrip()
        shown = line
        mark = ("^" if w.site == first else "-") * w.site.length
        said = [f"{_who(table, h.at)} waits here for `{h.barrier}[{h.slot}]`" for h in here]
        yield f"{margin}  | {' ' * (column - 1)}{mark} {_listed(said)}"


def _note(table: Waits, w: Waiting) -> str:
    lacks = [f"{w.pending} arrival{'s' if w.pending > 1 else ''}"] if w.pending else []
    if w.bytes:
        lacks.append(f"{w.bytes:,} bytes" if w.bytes > 0 else f"{-w.bytes:,} bytes too many landed")
    made = f"{w.needed - w.pending} of {w.needed} made"
    waited = f"after {w.seconds:.2f} s" if w.expired else f"stopped with the others after {w.seconds:.2f} s"
    return (
        f"{_who(table, w.at)} waits for phase {w.phase} of `{w.barrier}[{w.slot}]` in tile {w.tile}, k tile {w.k}: "
        f"{w.completed} complete, the next lacks {' and '.join(lacks) or 'nothing'} ({made}; {waited})"
    )


def _contradiction(w: Waiting) -> str:
    even = "an odd" if w.parity else "an even"
    return (
        f"`{w.barrier}[{w.slot}]` itself has completed {even} number of phases, which is not what the arrivals come "
        "to: some were lost, or counted in another phase, or bytes did not land"
    )


def _who(table: Waits, at: At) -> str:
    """Return `consumer` 1 of CTA 0, as short as it stays unambiguous."""
    instances = next(role.instances for role in table.roles if role.name == at.role)
    number = f" {at.instance}" if instances > 1 else ""
    return f"`{at.role}`{number}{f' of CTA {at.cta}' if table.cluster > 1 else ''}"


def _listed(texts: list[str]) -> str:
    return " and ".join(texts) if len(texts) < 3 else ", ".join(texts[:-1]) + " and " + texts[-1]
