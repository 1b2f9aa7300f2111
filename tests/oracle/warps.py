"""Which warps of a CTA have something to do."""

from __future__ import annotations

from gemmspec.protocol.program import Protocol


def has_idle_warps(protocol: Protocol, cta: int) -> bool:
    """Return whether a warp of a CTA runs no role there."""
    here = [q for q in protocol.programs if not q.leader_only or cta % protocol.spec.pair == 0]
    busy = {w for q in here for w in q.role.placement.claimed}
    return len(busy) < 4 * (1 + max(q.role.placement.warpgroups[1] for q in protocol.programs))
