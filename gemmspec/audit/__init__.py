"""The read-back audit: a lowered PrimFunc against the Protocol that it was made from.

Given a PrimFunc and a Protocol, return where they differ. Both sides are run, for a few sizes and clusters, into what
each thread does; the lists must be equal. Shares no code with the generator, so that a fault there shows here.
"""

from __future__ import annotations

from gemmspec.audit.difference import Difference
from gemmspec.audit.ends import end, prologue
from gemmspec.audit.image import Image
from gemmspec.audit.read import read
from gemmspec.audit.roles import Roles
from gemmspec.audit.structure import structure
from gemmspec.audit.terms import Unfollowed
from gemmspec.protocol.program import Protocol
from gemmspec.waits import Waits

__all__ = ["Difference", "audit"]


def audit(prim_func: object, protocol: Protocol, waits: Waits | None = None) -> tuple[Difference, ...]:
    """Return the differences between a kernel and its Protocol, all that are found. `waits`: how they are bounded."""
    try:
        image = Image(read(prim_func), protocol, waits)
    except Unfollowed as error:
        return (Difference("kernel", "only what the audit knows", str(error), None),)
    out = structure(image)
    if len(image.syncs) != (1 if protocol.end_sync == "none" else 2):
        return tuple(out)
    roles = Roles(image)
    for rank, warps in enumerate(roles.done):
        out += prologue(protocol, rank, warps)
        out += end(protocol, rank, warps)
    out += roles.differences()
    return tuple(out)
