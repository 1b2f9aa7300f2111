"""Mutation operators: a Protocol -> every small change of it, each with a name that does not depend on sizes.

Names are stable under other numbers of stages or chunks, so a mutant of a small variant can be matched with that of
the full one. Derived values (`derived`, `shares`) are left as they were: a mutant is a kernel with a bug, not a spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from edits import Path, edited, label, loop_around, named, replaced, statements, with_body

from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Add,
    Arrive,
    Branch,
    Commit,
    Expect,
    Load,
    Loop,
    Mma,
    Program,
    Protocol,
    ProxyFence,
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreWait,
    Targets,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.vocabulary import Group, LoopKind

Mutant = tuple[str, Protocol]

FENCES = (TcgenFence, ProxyFence)
"""What has no effect on the order of role instances: only the engine's typed edges can judge these."""
SYNCHRONISING = (
    Wait,
    Arrive,
    Commit,
    Expect,
    TcgenFence,
    ProxyFence,
    AccReadWait,
    WarpgroupSync,
    StoreWait,
    StoreCommit,
    Retire,
    Send,
    Add,
)
MOVED = (Wait, Arrive, Commit, Expect, TcgenFence, ProxyFence, AccReadWait, StoreWait, Retire, Send, Add)


def mutants(protocol: Protocol) -> Iterator[Mutant]:
    """Yield every mutant, names unique, none equal to another or to the original."""
    names: set[str] = set()
    seen = {_content(protocol)}
    for operator in OPERATORS:
        for name, mutant in operator(protocol):
            content = _content(mutant)
            if content not in seen and name not in names:
                names.add(name)
                seen.add(content)
                yield name, mutant


def _content(p: Protocol) -> tuple[object, ...]:
    return p.barriers, p.buffers, p.programs, p.start_sync, p.end_sync


def drop(p: Protocol) -> Iterator[Mutant]:
    """Leave a synchronising statement, or a load, out."""
    for program, path, s in statements(p):
        if isinstance(s, (*SYNCHRONISING, Load)):
            yield named("drop", program, path, s), replaced(p, program, path)


def duplicate(p: Protocol) -> Iterator[Mutant]:
    """Run a synchronising statement twice."""
    for program, path, s in statements(p):
        if isinstance(s, SYNCHRONISING):
            yield named("duplicate", program, path, s), replaced(p, program, path, s, s)


def move(p: Protocol) -> Iterator[Mutant]:
    """Move a statement past a neighbour, to either end of its body, out of its loop, or into the next one."""

    def put(at: int) -> Callable[[tuple[Statement, ...], int], tuple[Statement, ...]]:
        def edit(body: tuple[Statement, ...], i: int) -> tuple[Statement, ...]:
            rest = (*body[:i], *body[i + 1 :])
            j = max(0, min(len(rest), {-2: 0, -1: i - 1, 1: i + 1, 2: len(rest)}[at]))
            return (*rest[:j], body[i], *rest[j:])

        return edit

    for program, path, s in statements(p):
        if not isinstance(s, MOVED):
            continue
        for at, word in ((-1, "earlier"), (1, "later"), (-2, "first"), (2, "last")):
            yield named("move", program, path, s, word), with_body(p, program, edited(program.body, path, put(at)))
        if len(path) > 1:
            without = replaced(p, program, path)
            stripped = next(q for q in without.programs if q.role.name == program.role.name)
            for after, word in ((0, "before its loop"), (1, "behind its loop")):
                body = edited(stripped.body, path[:-1], lambda b, i, a=after, s=s: (*b[: i + a], s, *b[i + a :]))
                yield named("move", program, path, s, word), with_body(without, stripped, body)
        for step, word in ((1, "into the next loop"), (-1, "into the loop before")):
            moved = edited(program.body, path, lambda b, i, d=step: _into(b, i, d))
            yield named("move", program, path, s, word), with_body(p, program, moved)


def _into(body: tuple[Statement, ...], i: int, step: int) -> tuple[Statement, ...]:
    """Move the statement at `i` to the near end of the next loop in that direction."""
    j = i + step
    while 0 <= j < len(body) and not isinstance(body[j], Loop):
        j += step
    if not 0 <= j < len(body):
        return body
    loop = body[j]
    assert isinstance(loop, Loop)
    inner = (body[i], *loop.body) if step > 0 else (*loop.body, body[i])
    out = [*body]
    out[j] = replace(loop, body=inner)
    del out[i]
    return tuple(out)


def swap(p: Protocol) -> Iterator[Mutant]:
    """Exchange two statements of one body that are not neighbours (`move` does those)."""
    for program, path, s in statements(p):
        if not isinstance(s, MOVED):
            continue

        def edit(body: tuple[Statement, ...], i: int, j: int) -> tuple[Statement, ...]:
            out = [*body]
            out[i], out[j] = out[j], out[i]
            return tuple(out)

        def siblings(body: tuple[Statement, ...], at: Path = path) -> tuple[Statement, ...]:
            for i in at[:-1]:
                inner = body[i]
                assert isinstance(inner, Loop | Branch)
                body = inner.body
            return body

        for j, other in enumerate(siblings(program.body)):
            if j > path[-1] + 1 and not isinstance(other, Loop | Branch | WarpgroupSync):
                name = named("swap", program, path, s, f"with {label(other)} {j}")
                yield name, with_body(p, program, edited(program.body, path, lambda b, i, j=j: edit(b, i, j)))


def retarget(p: Protocol) -> Iterator[Mutant]:
    """Name another barrier, another CTA's barrier or memory, or another instance's accumulator."""
    cluster, pair = p.spec.cluster, p.spec.pair
    groups = {g.value: Targets.group(g, cluster, pair) for g in Group} if cluster.size > 1 else {}
    groups |= {f"CTA {c}": Targets((1 << c,) * cluster.size) for c in range(cluster.size)} if cluster.size > 1 else {}
    for program, path, s in statements(p):
        if isinstance(s, Wait | Arrive | Commit | Expect):
            for other in p.barriers:
                if other.name != s.barrier:
                    name = named("retarget", program, path, s, f"to {other.name}")
                    yield name, replaced(p, program, path, replace(s, barrier=other.name))
        if isinstance(s, Arrive | Commit):
            for word, targets in groups.items():
                yield (
                    named("retarget", program, path, s, f"to {word}"),
                    replaced(p, program, path, replace(s, targets=targets)),
                )
        if isinstance(s, Load):
            for other in p.barriers:
                if other.name != s.barrier:
                    name = named("retarget", program, path, s, f"signals {other.name}")
                    yield name, replaced(p, program, path, replace(s, barrier=other.name))
            for word, targets in groups.items():
                name = named("retarget", program, path, s, f"signals {word}")
                yield name, replaced(p, program, path, replace(s, signals=targets))
                name = named("retarget", program, path, s, f"writes {word}")
                yield name, replaced(p, program, path, replace(s, writes=targets))
        if isinstance(s, Mma | AccRead) and s.acc.self_stride:
            other_slot = replace(s.acc, self_stride=0)
            yield (
                named("retarget", program, path, s, "accumulator 0"),
                replaced(p, program, path, replace(s, acc=other_slot)),
            )
        if isinstance(s, Wait | Arrive | Commit) and s.slot.self_stride:
            same = replace(s.slot, self_stride=0)
            yield (
                named("retarget", program, path, s, "slot of instance 0"),
                replaced(p, program, path, replace(s, slot=same)),
            )


def counts(p: Protocol) -> Iterator[Mutant]:
    """Change how many arrivals complete a phase, or how many threads arrive."""
    for plan in p.barriers:
        for word, n in _numbers(plan.arrivals):
            new = tuple(replace(b, arrivals=n) if b is plan else b for b in p.barriers)
            yield f"arrivals {plan.name} {word}", replace(p, barriers=new)
    for program, path, s in statements(p):
        if isinstance(s, Arrive):
            for word, n in _numbers(s.threads):
                yield named("threads", program, path, s, word), replaced(p, program, path, replace(s, threads=n))
        if isinstance(s, StoreWait | Retire):
            for word, n in (("+1", s.pending + 1), ("-1", s.pending - 1)):
                if n >= 0:
                    yield named("pending", program, path, s, word), replaced(p, program, path, replace(s, pending=n))


def _numbers(n: int) -> Iterator[tuple[str, int]]:
    for word, new in (("x2", 2 * n), ("/2", n // 2), ("+1", n + 1), ("-1", n - 1)):
        if new > 0:
            yield word, new


def phases(p: Protocol) -> Iterator[Mutant]:
    """Start a wait, or all waits on a barrier, with the other parity."""
    for program, path, s in statements(p):
        if isinstance(s, Wait):
            yield named("flip phase", program, path, s), replaced(p, program, path, replace(s, phase=1 - s.phase))


def sizes(p: Protocol) -> Iterator[Mutant]:
    """Expect other bytes than those that land."""
    loads = [s for _, _, s in statements(p) if isinstance(s, Load)]
    for program, path, s in statements(p):
        if isinstance(s, Expect):
            changes = [("x2", 2 * s.bytes), ("/2", s.bytes // 2), ("+16", s.bytes + 16), ("-16", s.bytes - 16)]
            changes += [(f"without {x.operand.value} of consumer {x.first}", s.bytes - x.bytes) for x in loads]
            for word, n in changes:
                yield named("bytes", program, path, s, word), replaced(p, program, path, replace(s, bytes=n))


def masks(p: Protocol) -> Iterator[Mutant]:
    """Drop a CTA from a mask, add one, or name one outside the pair or the cluster."""
    n = p.spec.cluster.size
    for program, path, s in statements(p):
        if isinstance(s, Arrive | Commit):
            for word, masks in _changed(s.targets, n):
                yield named("mask", program, path, s, word), replaced(p, program, path, replace(s, targets=masks))
        if isinstance(s, Load):
            for field in ("writes", "signals"):
                for word, masks in _changed(getattr(s, field), n):
                    yield (
                        named("mask", program, path, s, f"{field} {word}"),
                        replaced(p, program, path, replace(s, **{field: masks})),
                    )
    for plan in p.barriers:
        if any(isinstance(s, Expect) and s.barrier == plan.name for _, _, s in statements(p)):
            for word, masks in _changed(plan.targets, n):
                if "outside" not in word:
                    new = tuple(replace(b, targets=masks) if b is plan else b for b in p.barriers)
                    yield f"mask expect {plan.name} {word}", replace(p, barriers=new)


def _changed(targets: Targets, n: int) -> Iterator[tuple[str, Targets]]:
    for c in range(n):
        dropped = tuple(m & ~(1 << c) for m in targets.masks)
        if dropped != targets.masks:
            yield f"without CTA {c}", Targets(dropped)
        added = tuple(m | 1 << c for m in targets.masks)
        if added != targets.masks:
            yield f"with CTA {c}", Targets(added)
    for c in range(n):
        one = tuple(m ^ (1 << (c ^ 1)) if r == c else m for r, m in enumerate(targets.masks))
        if n > 1:
            yield f"CTA {c} and its neighbour", Targets(one)
    yield "outside the cluster", Targets(tuple(m | 1 << n for m in targets.masks))


def slots(p: Protocol) -> Iterator[Mutant]:
    """Use the slot of the iteration before or after."""
    for program, path, s in statements(p):
        if isinstance(s, Loop | Branch):
            continue
        for f in fields(s):
            slot = getattr(s, f.name)
            if isinstance(slot, Slot) and slot.cursor is not None:
                for d, word in ((1, "one back"), (-1, "one ahead")):
                    new = replace(s, **{f.name: replace(slot, lag=slot.lag + d)})
                    yield named("slot", program, path, s, f"{f.name} {word}"), replaced(p, program, path, new)


def depths(p: Protocol) -> Iterator[Mutant]:
    """Make a ring of barriers, or one role's view of it, deeper or shallower than the others."""
    for plan in p.barriers:
        for word, n in _numbers(plan.slots):
            if word != "/2":
                resized = _resized(plan.barrier.factors, n)
                new = tuple(
                    replace(b, barrier=replace(b.barrier, factors=resized)) if b is plan else b for b in p.barriers
                )
                yield f"depth {plan.name} {word}", replace(p, barriers=new)
    for program in p.programs:
        for cursor in program.cursors:
            if cursor.id not in _of_barriers(program):
                continue
            for word, n in _numbers(cursor.depth):
                if word != "/2":
                    new = tuple(replace(c, depth=n) if c is cursor else c for c in program.cursors)
                    programs = tuple(replace(q, cursors=new) if q is program else q for q in p.programs)
                    yield (
                        f"depth of cursor {cursor.id} ({cursor.word}) of {program.role.name} {word}",
                        replace(p, programs=programs),
                    )


def _of_barriers(program: Program) -> set[int | None]:
    """Return the cursors that a user can make disagree: those of barrier slots."""
    return {s.slot.cursor for s in program.walk() if isinstance(s, Wait | Arrive | Expect | Commit)}


def _resized(factors: tuple, n: int) -> tuple:
    """Return one factor of `n` slots (slot numbers are already worked out)."""
    return (replace(factors[0], value=n), *(replace(f, value=1) for f in factors[1:]))


def bounds(p: Protocol) -> Iterator[Mutant]:
    """Run a loop over k tiles once less or more, or a fixed number of times; take the other branch."""
    for program, path, s in statements(p):
        where = f"{program.role.name}/{'.'.join(map(str, path))}"
        if isinstance(s, Loop) and s.kind is LoopKind.K:
            for d, word in ((1, "+1"), (-1, "-1")):
                yield f"loop k {word} at {where}", replaced(p, program, path, replace(s, offset=s.offset + d))
            fixed = replace(s, kind=LoopKind.FIXED, count=4, offset=0)
            yield f"loop k fixed 4 at {where}", replaced(p, program, path, fixed)
        if isinstance(s, Loop) and s.advances:
            for c in s.advances:
                rest = tuple(x for x in s.advances if x != c)
                yield (
                    f"loop {s.kind.value} at {where} forgets cursor {c}",
                    replaced(p, program, path, replace(s, advances=rest)),
                )
        if isinstance(s, Branch):
            for name, new in (
                ("negated", replace(s, equal=not s.equal)),
                ("other end", replace(s, which="last" if s.which == "first" else "first")),
            ):
                yield f"branch {name} at {where}", replaced(p, program, path, new)
            yield f"branch always at {where}", replaced(p, program, path, *s.body)


def conditions(p: Protocol) -> Iterator[Mutant]:
    """Run a statement in the first or last iteration of its loop only, or in all others."""
    for program, path, s in statements(p):
        loop = loop_around(program, path)
        if loop is None or loop.kind is LoopKind.FIXED or not isinstance(s, (*MOVED, Load, Mma)):
            continue
        for which in ("first",) if loop.kind is LoopKind.TILE else ("first", "last"):
            for equal in (True, False):
                inside = Branch(loop.kind, which, equal, (s,), s.span)
                more = f"if {loop.kind.value} {'==' if equal else '!='} {which}"
                yield named("condition", program, path, s, more), replaced(p, program, path, inside)


def ends(p: Protocol) -> Iterator[Mutant]:
    """Weaken the syncs at start and end (no generator leaves out the sync of one CTA at its start)."""
    order = ("cluster", "cta", "none")
    for word in order[order.index(p.start_sync) + 1 : -1]:
        yield f"start sync {word}", replace(p, start_sync=word)
    for word in order[order.index(p.end_sync) + 1 :]:
        yield f"end sync {word}", replace(p, end_sync=word)


OPERATORS = (
    drop,
    duplicate,
    move,
    swap,
    retarget,
    counts,
    phases,
    sizes,
    masks,
    slots,
    depths,
    bounds,
    conditions,
    ends,
)
