"""What might mend a spec, most likely first: whole texts, each with a title in the words of a `help`.

Judges nothing: most candidates are wrong, and `trial` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gemmspec.driver import Checked
from gemmspec.mend.programs import Line, differences, lines_of
from gemmspec.model.spec import Barrier, Spec
from gemmspec.proof.causes import Lack, gaps
from gemmspec.protocol import Protocol
from gemmspec.protocol.standard import standard_program
from gemmspec.source import SourceFile


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may be right, and what was done to the text for it."""

    title: str
    text: str


def candidates(source: SourceFile, protocol: Protocol, check: Callable[[SourceFile], Checked]) -> Iterator[Candidate]:
    """Yield what might mend a spec."""
    spec = protocol.spec
    yield from _programs(source.text, spec)
    for barrier in spec.barriers:
        if barrier.via is not None:
            words = source.snippet(barrier.via.span)
            yield Candidate(f"leave out `{words}`", _without(source.text, barrier.via.span.start, barrier.via.span.end))
    for gap in gaps(protocol):
        if gap.what is Lack.WAY_BACK:
            yield from _way_back(source, spec, gap.plan.barrier, check)
        if gap.what is Lack.WAIT:
            yield _without_barrier(source.text, spec, gap.plan.barrier)


def _programs(text: str, spec: Spec, only: str | None = None) -> Iterator[Candidate]:
    """Yield the steps of each program towards its role's standard one; with `only`, additions on one barrier."""
    for program in spec.programs:
        role = spec.role(program.role)
        standard = lines_of(spec, standard_program(spec, role))
        for change in differences(text, lines_of(spec, program.body), standard):
            if only is None or change.adds == only:
                yield Candidate(f"{change.title} in the program of `{role.name}`", change.text)


def _way_back(
    source: SourceFile, spec: Spec, forward: Barrier, check: Callable[[SourceFile], Checked]
) -> Iterator[Candidate]:
    """Yield the spec with a barrier that brings slots back, and with the statements on it that programs need."""
    name = _name_back(forward.name, {b.name for b in spec.barriers})
    there, back = (", ".join(g.value for g in side) for side in (forward.sources, forward.waiters))
    slots = source.snippet(forward.slots_span)
    slots = f" {slots}" if slots.startswith("[") else ""
    line = f"barrier {name}{slots} {back} -> {there}"
    number, _ = source.position(forward.span.start)
    at = source.line_starts[number - 1] + len(source.line(number))
    title, text = f"add `{line}`", f"{source.text[:at]}\n{line}{source.text[at:]}"
    for _ in range(4):
        yield Candidate(title, text)
        spec_then = check(SourceFile(source.name, text)).spec
        more = next(_programs(text, spec_then, only=name), None) if spec_then else None
        if more is None:
            return
        title, text = f"add `{line}`, and the statements on it", more.text


def _name_back(name: str, taken: set[str]) -> str:
    there_and_back = re.fullmatch(r"(\w+?)2(\w+)", name)
    new = f"{there_and_back[2]}2{there_and_back[1]}" if there_and_back else name.replace("full", "empty")
    while new in taken:
        new += "_back"
    return new


def _without_barrier(text: str, spec: Spec, barrier: Barrier) -> Candidate:
    """Return the spec without a barrier and the statements that name it."""
    spans = [barrier.span]
    for program in spec.programs:
        spans += [line.span for line in lines_of(spec, program.body) if line.barrier == barrier.name and line.span]
    for span in sorted(spans, reverse=True):
        text = Line.cut(text, span) or text
    return Candidate(f"leave out `{barrier.name}`", text)


def _without(text: str, start: int, end: int) -> str:
    """Return the text without some words and the spaces ahead of them."""
    head = text[:start].rstrip(" \t")
    return head + text[end:]
