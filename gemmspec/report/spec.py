"""Given a Protocol, return its spec in the language with every value filled in, and every role's program written out.

What it returns is a spec again, which says the same and is checked the same. Fills in, does not judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gemmspec.model.spec import Act, For, If, Ref, Role, Size, SlotFactor, Spec, Step, Term
from gemmspec.protocol import Protocol
from gemmspec.protocol.program import BarrierPlan, Expect
from gemmspec.protocol.standard import standard_program
from gemmspec.protocol.tile import Tiling
from gemmspec.vocabulary import LoopKind, Operand, RoleKind


def spec_text(protocol: Protocol) -> str:
    """Return the whole spec as text."""
    spec = protocol.spec
    return "\n".join(
        ["\n".join(_head(spec)), "", *(_role(spec, r) for r in spec.roles), ""]
        + [_barrier(protocol, plan) for plan in protocol.barriers]
        + [f"\n{program_text(protocol, role)}" for role in spec.roles]
    )  # fmt: skip


def program_text(protocol: Protocol, role: Role) -> str:
    """Return the program of a role, standard or not, in the language's own steps."""
    spec = protocol.spec
    written = spec.program(role.name)
    steps = written.body if written else standard_program(spec, role)
    return "\n".join([f"program {role.name} {{", *_steps(protocol, role, steps, "  "), "}"])


def _head(spec: Spec) -> Iterator[str]:
    gemm, block, t = spec.gemm, spec.block, Tiling.of(spec)
    d, a, b = gemm.names
    m, n, k = (size.name for size in spec.sizes)
    yield f"kernel {spec.name}"
    yield f"target {spec.target.name}\n"
    yield (
        f"gemm {d}[{m}, {n}] {gemm.d.value.value} = {a}[{m}, {k}] {gemm.a.value.value} @ "
        f"{b}[{n}, {k}]^T {gemm.b.value.value} accumulate {gemm.accumulate.value}"
    )
    yield f"sizes {', '.join(map(_size, spec.sizes))}"
    yield f"cluster {spec.cluster.m} x {spec.cluster.n}"
    yield f"block {block.m.value} x {block.n.value} x {block.k.value}"
    yield f"stages {t.stages}"
    if spec.target.has_tmem:
        yield f"accumulators {t.accumulators}"
    split = f" split {spec.cluster.split}" if spec.schedule.split else ""
    yield f"schedule {spec.schedule.kind} ctas {t.ctas} group {t.group}{split}"


def _size(size: Size) -> str:
    if size.fixed is not None:
        return f"{size.name} = {size.fixed}"
    if not size.dynamic or (size.low, size.high) != (1, 2**31 - 1):
        return f"{size.name} = {size.low}..{size.high}"
    return f"{size.name} = {size.typical} dynamic" if size.typical is not None else f"{size.name} dynamic"


def _role(spec: Spec, role: Role) -> str:
    t = Tiling.of(spec)
    groups, warps = role.placement.warpgroups, role.placement.warps
    words = ["role", role.name, "=", ", ".join(kind.value for kind in role.kinds), "on", _range("warpgroup", groups)]
    if warps is not None:
        words.append(_range("warp", warps))
    if role.does(RoleKind.EPILOGUE):
        words.append(f"chunk {t.chunk} buffers {t.buffers}")
        if spec.target.has_tmem:
            words.append(f"release after {t.release.value}")
    if role.registers is not None:
        words.append(f"registers {role.registers.value}")
    if role.multicast is not None:
        words.append(f"multicast {', '.join(_operand(spec, o) for o in role.multicast.value)}")
    return " ".join(words)


def _barrier(protocol: Protocol, plan: BarrierPlan) -> str:
    barrier = plan.barrier
    words = ["barrier", plan.name, f"[{' x '.join(f.text for f in barrier.factors)}]"]
    words += [", ".join(g.value for g in barrier.sources), "->", ", ".join(g.value for g in barrier.waiters)]
    words.append(f"via {plan.via.value} arrivals {plan.arrivals} phase {plan.phase}")
    return " ".join([*words, _where(protocol.spec, plan)]).rstrip()


def _where(spec: Spec, plan: BarrierPlan) -> str:
    """Return where arrivals land: as written, else in the one word for it."""
    barrier = plan.barrier
    if barrier.multicast is not None:
        mask = barrier.multicast.value
        return f"multicast {mask.group.value if mask.group is not None else f'{mask.bits or 0:#b}'}"
    if barrier.at is not None and barrier.at.value.cta is not None:
        return f"at cta {barrier.at.value.cta}"
    words = plan.targets.words(spec.cluster, spec.pair)
    if words is None:
        # Left out, they are derived again.
        masks = ", ".join(f"{mask:#b}" for mask in plan.targets.masks)
        return f"# from CTA 0, 1, ... to the CTAs of {masks}"
    return words


def _steps(protocol: Protocol, role: Role, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case For():
                yield f"{indent}for {_over(step)} {{"
                yield from _steps(protocol, role, step.body, indent + "  ")
                yield indent + "}"
            case If():
                yield f"{indent}if {step.kind.value} {'==' if step.equal else '!='} {step.which} {{"
                yield from _steps(protocol, role, step.body, indent + "  ")
                yield indent + "}"
            case Act():
                yield indent + _act(protocol, role, step)
            case _:
                assert_never(step)


def _over(loop: For) -> str:
    word = str(loop.count) if loop.kind is LoopKind.FIXED else loop.kind.value
    return f"{word} {'+' if loop.offset > 0 else '-'} {abs(loop.offset)}" if loop.offset else word


def _act(protocol: Protocol, role: Role, act: Act) -> str:
    spec = protocol.spec
    words = [act.verb]
    if act.verb == "load":
        for operand in act.operands or tuple(Operand):
            index = f"[{act.instance}]" if act.instance is not None and operand is Operand.A else ""
            words.append(_operand(spec, operand) + index)
    if act.ref is not None:
        words.append(_ref(spec, act.ref))
    if act.verb == "expect":
        words.append(str(act.number if act.number is not None else _bytes(protocol, role, act)))
    if act.stage is not None:
        words.append(f"[{_term(act.stage, 'stage')}]")
    if act.verb == "retire":
        words.append(str(act.number or 0))
    if act.scope is not None:
        words.append(act.scope)
    if act.owner is not None:
        words.append(f"{'into' if act.verb == 'mma' else 'from'} {act.owner}")
    return " ".join(words)


def _bytes(protocol: Protocol, role: Role, act: Act) -> int:
    assert act.ref is not None, "the resolver gives every expect its barrier"
    program = protocol.program(role.name)
    return next(s.bytes for s in program.walk() if isinstance(s, Expect) and s.barrier == act.ref.barrier)


def _ref(spec: Spec, ref: Ref) -> str:
    barrier = spec.barrier(ref.barrier)
    pairs = zip(ref.index, barrier.factors, strict=True)
    return f"{ref.barrier}[{', '.join(_term(term, _word(factor)) for term, factor in pairs)}]"


def _term(term: Term, word: str) -> str:
    if term.kind == "self":
        return "self"
    if term.kind == "const":
        return str(term.value)
    return f"{word} - {term.lag}" if term.lag else word


def _word(factor: SlotFactor) -> str:
    return "acc" if factor.text == "accumulators" else "stage"


def _operand(spec: Spec, operand: Operand) -> str:
    _, a, b = spec.gemm.names
    return a if operand is Operand.A else b


def _range(word: str, bounds: tuple[int, int]) -> str:
    first, last = bounds
    return f"{word} {first}" if first == last else f"{word}s {first}..{last}"
