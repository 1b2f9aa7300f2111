"""GS307: warps of one warpgroup ask for different register counts."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.rules.resources.warps import by_warpgroup
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS307", "registers-differ-in-warpgroup")
def registers_differ_in_warpgroup(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    Roles that share a warpgroup state the same `registers`, or only one of them states any (it then holds for all).

    ## Why it matters
    PTX ISA, setmaxnreg: all warps of a warpgroup execute the same setmaxnreg. Anything else is undefined behaviour, and
    is seen to hang.

    ## Limits
    None.
    """
    reported: set[str] = set()
    for warpgroup, roles in by_warpgroup(spec).items():
        first, *others = [role for role in roles if role.registers is not None] or [None]
        for role in others:
            assert first is not None and first.registers is not None and role is not None and role.registers is not None
            if role.registers.value != first.registers.value and role.name not in reported:
                reported.add(role.name)
                yield Finding(
                    role.registers.span,
                    f"role `{role.name}` states {role.registers.value} registers, but role `{first.name}` "
                    f"of the same warpgroup {warpgroup} states {first.registers.value}",
                    labels=(Label(first.registers.span, f"{first.registers.value} here"),),
                )
