"""Parts of sums that CTAs with a common output tile send each other: who sends, who adds, and into which cells.

A part is known by its tile and its sender. Both operations touch their cells at once: what orders them is what the
barriers between them leave open, and that is searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmspec.protocol.program import Add, Send

from .code import Do

if TYPE_CHECKING:
    from .unroll import Walk


def exchange(walk: Walk, action: Send | Add) -> None:
    """Send the peers their shares, or add theirs to the own one."""
    u, tile = walk.u, walk.at()[0]
    if walk.added == tile:
        walk.out(Do.BAD, "stale", text="the registers hold the whole sum already")
    if not walk.registers:
        walk.out(Do.BAD, "stale", text="nothing was computed into the registers")
    consumer = walk.slot(action.slot) // (u.split - 1)
    sums = tuple((cell, u.sum_of(cell, tile)) for cell in walk.registers)
    peers = [cta for cta in range(u.code.ctas) if cta != walk.cta and (cta - walk.cta) % u.tile_ctas == 0]

    def part(owner: int, sender: int) -> tuple[int, int]:
        return u.cell(f"part of CTA {sender} for consumer {consumer}", owner), tile << 6 | sender + 1

    if isinstance(action, Send):
        walk.out(Do.SEND, tuple(part(peer, walk.cta) for peer in peers), sums, text="send parts")
        return
    walk.added = tile
    walk.out(Do.ADD, tuple(part(walk.cta, peer) for peer in peers), sums, text="add parts")
