"""GS312: a register count that `setmaxnreg` does not take."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix
from gemmspec.model.spec import Spec
from gemmspec.rules.resources.warps import LEAST_REGISTERS, MOST_REGISTERS, REGISTER_STEP
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
    for role in spec.roles:
        given = role.registers
        if given is None:
            continue
        n = given.value
        if n % REGISTER_STEP == 0 and LEAST_REGISTERS <= n <= MOST_REGISTERS:
            continue
        near = min(max(n // REGISTER_STEP * REGISTER_STEP, LEAST_REGISTERS), MOST_REGISTERS)
        yield Finding(
            given.span,
            f"{n} registers cannot be set, only multiples of {REGISTER_STEP} from {LEAST_REGISTERS} to "
            f"{MOST_REGISTERS}",
            helps=(f"write `registers {near}`",),
            fix=Fix(f"write `registers {near}`", (Edit(given.span, f"registers {near}"),), safe=False),
        )
