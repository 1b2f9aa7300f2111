"""GS407: an accumulator that no epilogue moves to D."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Role, Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count
from gemmspec.vocabulary import RoleKind


@spec_rule("GS407", "accumulator-without-epilogue", essential=True)
def accumulator_without_epilogue(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    There is one epilogue instance for each mma instance: epilogue instance i stores the accumulator of mma instance i.
    On a target without tensor memory the accumulator is in registers, so each mma role is an epilogue too.

    ## Why it matters
    Rows of D that no instance stores are never written.

    ## Limits
    Not checked where a `program` of an mma or epilogue role says who computes and reads which accumulator.
    """
    mmas, epilogues = spec.roles_of(RoleKind.MMA), spec.roles_of(RoleKind.EPILOGUE)
    if not spec.target.has_tmem:
        for role in (*mmas, *epilogues):
            if not (role.does(RoleKind.MMA) and role.does(RoleKind.EPILOGUE)):
                yield Finding(
                    role.name_span,
                    f"role `{role.name}` is only `{role.kinds[0].value}`, but on {spec.target.name} the accumulator "
                    "stays in the registers of the role that computes it",
                    helps=("write one role of kinds `mma, epilogue`",),
                )
        return
    # An epilogue on single warps has its own finding, and no certain number of instances.
    if any(spec.program(role.name) for role in (*mmas, *epilogues)) or any(r.placement.warps for r in epilogues):
        return
    computed, stored = _instances(mmas), _instances(epilogues)
    if computed == stored or not mmas or not epilogues:
        return
    *others, last = epilogues
    labels = [Label(role.placement.span, count(role.instances, "mma instance")) for role in mmas]
    labels += [Label(role.placement.span, count(role.instances, "epilogue instance")) for role in others]
    yield Finding(
        last.placement.span,
        f"a CTA has {count(computed, 'mma instance')}, but {count(stored, 'epilogue instance')}",
        labels=tuple(labels),
    )


def _instances(roles: tuple[Role, ...]) -> int:
    return sum(role.instances for role in roles)
