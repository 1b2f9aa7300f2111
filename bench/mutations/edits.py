"""Edits of a Protocol's programs: statements are found by path, and replaced without touching anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gemmspec.protocol.program import (
    Arrive,
    Branch,
    Commit,
    Expect,
    Loop,
    Program,
    Protocol,
    Statement,
    Wait,
)

Path = tuple[int, ...]


def places(program: Program) -> Iterator[tuple[Path, Statement]]:
    def walk(body: tuple[Statement, ...], path: Path) -> Iterator[tuple[Path, Statement]]:
        for i, s in enumerate(body):
            yield (*path, i), s
            if isinstance(s, Loop | Branch):
                yield from walk(s.body, (*path, i))

    yield from walk(program.body, ())


def loop_around(program: Program, path: Path) -> Loop | None:
    """Return the innermost loop around the statement at a path."""
    found, body = None, program.body
    for i in path[:-1]:
        inner = body[i]
        assert isinstance(inner, Loop | Branch)
        found, body = inner if isinstance(inner, Loop) else found, inner.body
    return found


def edited(
    body: tuple[Statement, ...], path: Path, edit: Callable[[tuple[Statement, ...], int], tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """Return a body whose innermost list on the path has been edited at the path's last index."""
    if len(path) == 1:
        return edit(body, path[0])
    inner = body[path[0]]
    assert isinstance(inner, Loop | Branch)
    new = replace(inner, body=edited(inner.body, path[1:], edit))
    return (*body[: path[0]], new, *body[path[0] + 1 :])


def with_body(p: Protocol, program: Program, body: tuple[Statement, ...]) -> Protocol:
    return replace(p, programs=tuple(replace(q, body=body) if q is program else q for q in p.programs))


def replaced(p: Protocol, program: Program, path: Path, *new: Statement) -> Protocol:
    """Return the protocol with the statement at a path replaced by others."""
    return with_body(p, program, edited(program.body, path, lambda b, i: (*b[:i], *new, *b[i + 1 :])))


def label(s: Statement) -> str:
    """Return a statement's name for people."""
    of = (
        getattr(s, "barrier", "")
        if isinstance(s, Wait | Arrive | Commit | Expect)
        else getattr(getattr(s, "operand", None), "value", "")
    )
    return f"{type(s).__name__} {of}".strip()


def named(verb: str, program: Program, path: Path, s: Statement, more: str = "") -> str:
    return f"{verb} {label(s)} at {program.role.name}/{'.'.join(map(str, path))}{more and ' ' + more}"


def statements(p: Protocol) -> Iterator[tuple[Program, Path, Statement]]:
    for program in p.programs:
        for path, s in places(program):
            yield program, path, s
