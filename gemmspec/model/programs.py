"""Resolves `program` blocks: how loops and conditions nest, and which cursors their statements follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from gemmspec.diagnostics import Label
from gemmspec.model.acts import Names, resolve_act
from gemmspec.model.findings import Findings, shown, shown_value
from gemmspec.model.items import Items
from gemmspec.model.roles import find_role
from gemmspec.model.spec import Act, For, If, Program, Ref, Role, Step
from gemmspec.source import Span
from gemmspec.syntax.nodes import ActNode, ForNode, IfNode, Number, ProgramNode, StatementNode, Value, Word
from gemmspec.vocabulary import LoopKind, RoleKind

LOOP_WORDS = ("tile", "k", "chunk")
ITERATIONS = ("first", "last")
MAX_DEPTH = 16
MAX_COUNT = 64
MAX_RUNS = 64
"""How often the body of fixed loops within each other may run: the Protocol has a copy of it for each run."""
MAX_OFFSET = 4
# Stands for the loop that is missing around a misplaced statement, so that the rest of it can be judged.
_TILES = For(LoopKind.TILE, None, 0, (), Span(0, 0), Span(0, 0))


def resolve_programs(items: Items, names: Names) -> tuple[Program, ...]:
    """Return the programs of the roles that exist."""
    programs: list[Program] = []
    for node in items.programs:
        role = find_role(node.role, names.roles, names.findings)
        if role is None:
            continue
        body = _top(node, role, names)
        _check_cursors(body, role, names.findings)
        _check_k_tiles(body, names.findings)
        programs.append(Program(role.name, body, node.head, node.span))
    return tuple(programs)


def _top(program: ProgramNode, role: Role, names: Names) -> tuple[Step, ...]:
    """Resolve the outermost level, where one `for tile` stands and nothing else."""
    findings = names.findings
    tiles = [node for node in program.body if isinstance(node, ForNode) and _loop_kind(node.over) is LoopKind.TILE]
    others = [node for node in program.body if not any(node is tile for tile in tiles)]
    for again in tiles[1:]:
        labels = (Label(tiles[0].head, "the first one"),)
        helps = ("move its statements into the first one",)
        message = "the program has a second loop over the tiles"
        findings.error("GS015", message, again.head, labels=labels, helps=helps)
    if program.body and not tiles:
        message = f"the program of `{shown(role.name)}` has no `for tile` loop"
        helps = ("put all statements into `for tile { ... }`",)
        findings.error("GS015", message, program.head, helps=helps)
    if tiles:
        for node in others:
            span = node.span if isinstance(node, ActNode) else node.head
            message = f"`{shown(findings.source.snippet(span))}` stands outside `for tile`"
            findings.error("GS015", message, span, helps=("move it into the `for tile` loop",))
    _steps(tuple(others), (_TILES,), 0, role, names)
    return _steps(tuple(tiles), (), 0, role, names)[:1]


def _steps(
    nodes: tuple[StatementNode, ...], loops: tuple[For, ...], depth: int, role: Role, names: Names
) -> tuple[Step, ...]:
    """Resolve statements inside `loops`, outermost first (their bodies are not filled in)."""
    steps: list[Step] = []
    for node in nodes:
        if not isinstance(node, ActNode) and depth >= MAX_DEPTH:
            message = f"blocks are nested {depth + 1} deep, more than {MAX_DEPTH}"
            names.findings.error("GS015", message, node.head)
            continue
        match node:
            case ForNode():
                loop = _for(node, loops, role, names.findings)
                body = _steps(node.body, (*loops, loop) if loop is not None else loops, depth + 1, role, names)
                if loop is not None:
                    steps.append(replace(loop, body=body))
            case IfNode():
                condition = _if(node, loops, names.findings)
                body = _steps(node.body, loops, depth + 1, role, names)
                if condition is not None:
                    kind, which = condition
                    steps.append(If(kind, which, node.equal, body, node.head, node.span))
            case ActNode():
                act = resolve_act(node, role, names)
                if act is not None:
                    steps.append(act)
            case _:
                assert_never(node)
    return tuple(steps)


def _for(node: ForNode, loops: tuple[For, ...], role: Role, findings: Findings) -> For | None:
    """Return the loop without its body; None where it is not clear what it counts."""
    kind = _loop_kind(node.over)
    if kind is None and isinstance(node.over, Word):
        meant = findings.unknown("GS008", "loop", node.over, LOOP_WORDS)
        kind = LoopKind(meant) if meant is not None else None
    if kind is None:
        return None
    count = _count(node.over, loops, findings) if isinstance(node.over, Number) else None
    offset = _offset(node, kind, findings)
    _check_nesting(node, kind, loops, role, findings)
    return For(kind, count, offset, (), node.head, node.span)


def _count(written: Number, loops: tuple[For, ...], findings: Findings) -> int:
    count = findings.in_range("the count of a loop", written, 1, MAX_COUNT)
    if count is None:
        return 1
    runs = count
    for loop in loops:
        runs *= loop.count or 1
    if runs > MAX_RUNS:
        message = f"the body of this loop runs {runs} times a tile, more than {MAX_RUNS}"
        labels = tuple(Label(loop.head, "runs it this often") for loop in loops if loop.count is not None)
        findings.error("GS006", message, written.span, labels=labels)
        return 1
    return count


def _offset(node: ForNode, kind: LoopKind, findings: Findings) -> int:
    if node.offset == 0:
        return 0
    written = Span(node.over.span.end, node.head.end)
    text = findings.source.snippet(written)
    span = Span(written.start + len(text) - len(text.lstrip()), written.start + len(text.rstrip()))
    text = shown(findings.source.snippet(span))
    if kind is not LoopKind.K:
        message = f"`for {shown_value(node.over)}` is followed by `{text}`, which only `for k` takes"
        findings.error("GS015", message, span, helps=(f"delete `{text}`",))
        return 0
    if abs(node.offset) > MAX_OFFSET:
        message = f"`{text}` changes the number of k tiles by more than {MAX_OFFSET}"
        findings.error("GS006", message, span)
        return 0
    return node.offset


def _check_nesting(node: ForNode, kind: LoopKind, loops: tuple[For, ...], role: Role, findings: Findings) -> None:
    if kind is LoopKind.CHUNK and role.kinds and not role.does(RoleKind.EPILOGUE):
        have = ", ".join(f"`{k.value}`" for k in role.kinds)
        message = f"`for chunk` is a loop of `epilogue` roles, but `{shown(role.name)}` is of kind {have}"
        labels = (Label(role.name_span, "the role is declared here"),)
        findings.error("GS015", message, node.head, labels=labels)
        return
    match kind:
        case LoopKind.TILE:
            outer = loops
        case LoopKind.K | LoopKind.CHUNK:
            outer = tuple(loop for loop in loops if loop.kind in (LoopKind.K, LoopKind.CHUNK))
        case LoopKind.FIXED:
            outer = ()
        case _:
            assert_never(kind)
    if outer:
        # A misplaced statement has no written `for tile` around it, and none to point to.
        labels = tuple(Label(loop.head, "inside this loop") for loop in outer[-1:] if loop is not _TILES)
        inside = f"`for {outer[-1].kind.value}`"
        helps = (f"move it out of {inside}",)
        findings.error("GS015", f"`for {kind.value}` stands inside {inside}", node.head, labels=labels, helps=helps)


def _if(node: IfNode, loops: tuple[For, ...], findings: Findings) -> tuple[LoopKind, str] | None:
    """Return the loop that a condition asks about, and which of its iterations; None where that is a finding."""
    over = node.over.text if node.over.text in LOOP_WORDS else findings.unknown("GS008", "loop", node.over, LOOP_WORDS)
    which = node.which.text
    if which not in ITERATIONS:
        which = findings.unknown("GS008", "iteration", node.which, ITERATIONS)
    if over is None or which is None:
        return None
    kind = LoopKind(over)
    if kind is LoopKind.TILE and which == "last":
        notes = ("a persistent CTA takes tile after tile, and learns that there is no more only when it asks for one",)
        message = "a condition asks for the last tile, which no CTA knows beforehand"
        findings.error("GS015", message, node.head, notes=notes)
        return None
    if all(loop.kind is not kind for loop in loops):
        message = f"a condition asks about `{over}` outside of `for {over}`"
        findings.error("GS015", message, node.head, helps=(f"move it into a `for {over}` loop",))
        return None
    return kind, which


def _loop_kind(over: Value) -> LoopKind | None:
    if isinstance(over, Number):
        return LoopKind.FIXED
    return LoopKind(over.text) if over.text in LOOP_WORDS else None


def _check_cursors(body: tuple[Step, ...], role: Role, findings: Findings) -> None:
    """Say where a role follows one cursor in a loop and in one around it: when would it advance?"""
    first: dict[str, list[tuple[tuple[For, ...], Ref]]] = {}
    reported: set[str] = set()
    for loops, ref in _cursor_uses(body, ()):
        for others, earlier in first.setdefault(ref.barrier, []):
            inner, outer = (loops, others) if len(loops) > len(others) else (others, loops)
            around = all(a.head == b.head for a, b in zip(inner, outer, strict=False))
            if len(inner) == len(outer) or not around or ref.barrier in reported:
                continue
            reported.add(ref.barrier)
            message = (
                f"`{shown(role.name)}` uses `{shown(ref.barrier)}` in `{_head(outer[-1], findings)}` and in "
                f"`{_head(inner[-1], findings)}` inside it, but its stage advances in one loop only"
            )
            labels = (Label(earlier.span, "also used here"),)
            findings.error("GS019", message, ref.span, labels=labels, helps=("use two barriers, or one of the loops",))
        first[ref.barrier].append((loops, ref))


def _check_k_tiles(body: tuple[Step, ...], findings: Findings) -> None:
    """Say where it is not clear which k tile is loaded or multiplied: the loop over k says, and there is one a tile."""
    loops: list[For] = []
    for around, act in _acts(body, ()):
        if act.verb not in ("load", "mma"):
            continue
        k = next((loop for loop in around if loop.kind is LoopKind.K), None)
        if k is None:
            message = f"`{act.verb}` stands outside `for k`, which says which k tile it means"
            findings.error("GS015", message, act.span, helps=("move it into the `for k` loop",))
        elif all(k.head != seen.head for seen in loops):
            loops.append(k)
    for again in loops[1:]:
        labels = (Label(loops[0].head, "the first one"),)
        message = "a second `for k` starts with the first k tile of the same tile again"
        findings.error("GS015", message, again.head, labels=labels, helps=("use one loop, with `if k == first`",))


def _acts(steps: tuple[Step, ...], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Act]]:
    """Give each action, with the loops around it."""
    for step in steps:
        match step:
            case For():
                yield from _acts(step.body, (*loops, step))
            case If():
                yield from _acts(step.body, loops)
            case Act():
                yield loops, step
            case _:
                assert_never(step)


def _cursor_uses(steps: tuple[Step, ...], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Ref]]:
    """Give each use of a cursor without lag, with the loops around it."""
    for around, act in _acts(steps, loops):
        if act.ref is not None and any(t.kind == "cursor" and t.lag == 0 for t in act.ref.index):
            yield around, act.ref


def _head(loop: For, findings: Findings) -> str:
    return shown(findings.source.snippet(loop.head))
