"""What might mend a spec, most likely first: whole texts, each with a title in the words of a `help`.

Judges nothing: most candidates are wrong, and `trial` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from gemmspec.driver import Checked
from gemmspec.mend.programs import Line, differences, lines_of
from gemmspec.model.spec import Barrier, Given, Spec
from gemmspec.proof.causes import Lack, gaps
from gemmspec.proof.ways import OneWay, one_ways, slots_between
from gemmspec.protocol import Protocol
from gemmspec.protocol.standard import standard_program
from gemmspec.source import SourceFile

# A barrier of the stages takes part in three statements: a load, an arrival, a wait; two barriers in five.
_MOST_STATEMENTS = 5


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
    for way in one_ways(protocol):
        yield from _missing_barrier(source, spec, way, check)
    for gap in gaps(protocol):
        if gap.what is Lack.WAIT:
            yield _without_barrier(source.text, spec, gap.plan.barrier)


def _programs(text: str, spec: Spec, only: Collection[str] = ()) -> Iterator[Candidate]:
    """Yield the steps of each program towards its role's standard one; with `only`, additions on these barriers."""
    for program in spec.programs:
        role = spec.role(program.role)
        standard = lines_of(spec, standard_program(spec, role))
        for change in differences(text, lines_of(spec, program.body), standard):
            if not only or change.adds in only:
                yield Candidate(f"{change.title} in the program of `{role.name}`", change.text)


def _missing_barrier(
    source: SourceFile, spec: Spec, way: OneWay, check: Callable[[SourceFile], Checked]
) -> Iterator[Candidate]:
    """Yield the spec with the barriers that a ring lacks, and with the statements on them that programs need."""
    taken = {b.name for b in spec.barriers}
    name = _name_of(way, taken)
    own = (way.source,), (way.reader,)
    sides = [(_names(way.given.waiters), _names(way.given.sources)), own] if way.given else [own]
    if not way.forward:
        sides = [(back, there) for there, back in sides]
    slots = slots_between(spec, way)
    for left, right in dict.fromkeys(sides):
        lines = [f"barrier {name} {slots} {', '.join(left)} -> {', '.join(right)}"]
        if way.given is None and way.forward:
            other = replace(way, forward=False)
            lines.append(f"barrier {_name_of(other, taken)} {slots} {way.reader} -> {way.source}")
        yield from _with_lines(source, spec, way, lines, check)


def _with_lines(
    source: SourceFile, spec: Spec, way: OneWay, lines: list[str], check: Callable[[SourceFile], Checked]
) -> Iterator[Candidate]:
    """Yield the spec with lines added beside the barrier of the other direction, then with statements on them."""
    beside = way.given or max(spec.barriers, key=lambda b: b.span, default=None)
    number = source.position(beside.span.start if beside else len(source.text.rstrip()))[0]
    if way.given and way.forward:
        number -= 1
    rows = source.text.split("\n")
    text = "\n".join([*rows[:number], *lines, *rows[number:]])
    title = f"add {' and '.join(f'`{line}`' for line in lines)}"
    names = {line.split()[1] for line in lines}
    for turn in range(_MOST_STATEMENTS + 1):
        yield Candidate(title + (", and the statements on it" if turn else ""), text)
        spec_then = check(SourceFile(source.name, text)).spec
        more = next(_programs(text, spec_then, only=names), None) if spec_then else None
        if more is None:
            return
        text = more.text


def _names(given: tuple[Given[str], ...]) -> tuple[str, ...]:
    return tuple(g.value for g in given)


def _name_of(way: OneWay, taken: set[str]) -> str:
    """Return a free name for the barrier that a ring lacks, after that of the other direction."""
    usual = ("tma2mma", "mma2tma") if way.stages else ("mma2ld", "ld2mma")
    new = usual[0 if way.forward else 1]
    if way.given is not None:
        name = way.given.name
        there_and_back = re.fullmatch(r"(\w+?)2(\w+)", name)
        words = ("empty", "full") if way.forward else ("full", "empty")
        if there_and_back:
            new = f"{there_and_back[2]}2{there_and_back[1]}"
        elif words[0] in name:
            new = name.replace(*words)
    while new in taken:
        new += "_too"
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
