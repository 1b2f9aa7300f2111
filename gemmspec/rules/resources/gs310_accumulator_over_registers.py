"""GS310: the accumulator leaves a thread no register for anything else."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import WARPGROUP_THREADS, Spec
from gemmspec.rules.resources.warps import registers_of, warpgroups
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind


@spec_rule("GS310", "accumulator-over-registers")
def accumulator_over_registers(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    On a target without tensor memory the accumulator lives in the registers of the math warpgroup: block m x block n
    values of 32 bit over 128 threads. That is less than what a thread of the role has.

    ## Why it matters
    An accumulator that does not fit is spilled to local memory between the MMA instructions, and wgmma is serialised:
    the kernel is right, and many times slower.

    ## Limits
    Reports what cannot fit. Addresses and the epilogue need some 30 to 40 registers more, so a spec that is just below
    the limit may spill all the same: read the compiler's report.
    """
    if spec.target.has_tmem:
        return
    need = spec.block.m.value * spec.block.n.value // WARPGROUP_THREADS
    for role in spec.roles_of(RoleKind.MMA):
        have = min(registers_of(spec, role), spec.target.max_registers)
        if need < have:
            continue
        stated = role.registers
        label = Label(stated.span, f"{have} a thread") if stated else Label(
            role.placement.span, f"{have} a thread, an equal share for {warpgroups(spec)} warpgroups"
        )  # fmt: skip
        yield Finding(
            spec.block.m.span.to(spec.block.n.span),
            f"the accumulator takes {need} registers a thread, but role `{role.name}` has {have} for everything",
            labels=(label,),
            helps=() if stated else ("give the role more with `registers`, and the tma role less",),
        )
