"""Who stands where in a CTA, and how many registers each thread there has."""

from __future__ import annotations

from collections import defaultdict

from gemmspec.model.spec import WARPGROUP_THREADS, Role, Spec


def warpgroups(spec: Spec) -> int:
    """Return how many warpgroups are launched: up to the last one that a role stands on."""
    return 1 + max(role.placement.warpgroups[1] for role in spec.roles)


def by_warpgroup(spec: Spec) -> dict[int, list[Role]]:
    """Return the roles of each warpgroup that has any, in order."""
    found: dict[int, list[Role]] = defaultdict(list)
    for role in spec.roles:
        first, last = role.placement.warpgroups
        for warpgroup in range(first, last + 1):
            found[warpgroup].append(role)
    return dict(sorted(found.items()))


def launch_registers(spec: Spec) -> int:
    """Return the registers that each thread starts with where `setmaxnreg` is used."""
    return spec.target.launch_registers(warpgroups(spec) * WARPGROUP_THREADS)


def registers_of(spec: Spec, role: Role) -> int:
    """Return the registers that each thread of a role has: its own word, its warpgroup's, or an equal share."""
    if role.registers is not None:
        return role.registers.value
    first, _ = role.placement.warpgroups
    shared = [r.registers.value for r in by_warpgroup(spec)[first] if r.registers is not None]
    return shared[0] if shared else launch_registers(spec)
