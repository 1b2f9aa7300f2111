"""GS312: a register count that `setmaxnreg` does not take."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix
from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS312", "register-count-not-settable")
def register_count_not_settable(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    `registers` is a multiple of 8 from 24 to 256.

    ## Why it matters
    PTX ISA, setmaxnreg: the count is an immediate of that form; the assembler rejects any other.

    ## Limits
    None.
    """
    settable = spec.target.settable_registers
    for role in spec.roles:
        given = role.registers
        if given is None:
            continue
        n = given.value
        if n in settable:
            continue
        near = min(max(n // settable.step * settable.step, settable[0]), settable[-1])
        yield Finding(
            given.span,
            f"{n} registers cannot be set, only multiples of {settable.step} from {settable[0]} to {settable[-1]}",
            helps=(f"write `registers {near}`",),
            fix=Fix(f"write `registers {near}`", (Edit(given.span, f"registers {near}"),), safe=False),
        )
