"""GS306: the warpgroups ask for more registers than the CTA started with."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import WARPGROUP_THREADS, Spec
from gemmspec.rules.resources.warps import (
    by_warpgroup,
    launch_registers,
    registers_of,
    warpgroups,
)
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS306", "register-budget")
def register_budget(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    The registers of all warpgroups together are no more than the CTA started with. The sum is taken at one thread
    position: one thread of each warpgroup. A warpgroup none of whose roles states `registers` keeps its equal share.

    ## Why it matters
    setmaxnreg.inc waits until the CTA's pool has enough registers. Where the sum is too large it waits for ever: the
    kernel hangs, and neither the compiler nor the driver says a word.

    ## Limits
    The pool is what the launch gave: an equal share of the register file for each thread, in steps of 8. That is less
    than the whole file where the division leaves a rest (3 warpgroups: 3 x 168 = 504 of 512).
    """
    settable = spec.target.settable_registers
    stated = [role for role in spec.roles if role.registers is not None]
    if not stated:
        return
    claimed = by_warpgroup(spec)
    share = launch_registers(spec)
    each = {w: registers_of(spec, claimed[w][0]) if w in claimed else share for w in range(warpgroups(spec))}
    asked, have = sum(each.values()), share * len(each)
    if asked <= have:
        return
    largest = max(stated, key=lambda role: (role.registers.value if role.registers else 0) * role.instances)
    assert largest.registers is not None
    labels = [
        Label(role.registers.span, f"{role.registers.value} in warpgroup {_warpgroups(role.placement.warpgroups)}")
        for role in stated
        if role is not largest and role.registers is not None
    ]
    first, last = largest.placement.warpgroups
    rest = asked - largest.registers.value * (last - first + 1)
    fit = (have - rest) // (last - first + 1) // settable.step * settable.step
    notes = [f"warpgroups 0..{len(each) - 1}: {' + '.join(str(n) for n in each.values())} = {asked}"]
    threads = len(each) * WARPGROUP_THREADS
    notes.append(f"at launch each of {threads} threads gets {share}: {len(each)} x {share} = {have}")
    yield Finding(
        largest.registers.span,
        f"the warpgroups ask for {asked} registers a thread position, but {have} exist",
        f"{largest.registers.value} in warpgroup{'s' if last > first else ''} {_warpgroups((first, last))}",
        labels=tuple(labels),
        notes=tuple(notes),
        helps=(f"write `registers {fit}`",) if fit >= settable[0] else (),
    )


def _warpgroups(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return str(first) if first == last else f"{first}..{last}"
