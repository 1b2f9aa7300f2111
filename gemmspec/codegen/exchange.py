"""Parts of sums between the CTAs that share an output tile: sent into the owner's shared memory, and added there.

The barriers of an exchange order generic accesses of different CTAs. PTX ISA, mbarrier.arrive and mbarrier.try_wait:
without `.cluster` both are of scope `.cta`, and would order nothing between CTAs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmspec.codegen.scope import Scope
from gemmspec.codegen.words import total
from gemmspec.codegen.writer import Block
from gemmspec.protocol.program import Add, Arrive, Send, Slot
from gemmspec.protocol.targets import Targets
from gemmspec.vocabulary import Group

if TYPE_CHECKING:
    from gemmspec.codegen.roles import RoleText

_THREAD = "warp_id * 32 + lane_id"
# Of one 16-byte access of each thread of a warpgroup.
_ROW_BYTES = 128 * 16


def send(text: RoleText, statement: Send, block: Block, scope: Scope) -> None:
    """Write the stores of the peers' shares into the peers' receive buffers, 16 bytes at a time."""
    kernel, share = text.kernel, text.ranks.share
    body = block.block("for p in T.unroll(SPLIT)").block(f"if p != {share}")
    slot = _peer(kernel.tiling.split, share, "p", body)
    place = f"{kernel.parts}.ptr_to([{_part(text, statement.slot, slot)}0, tid, 0])"
    _map(text, place, "p", body)
    row, first = "i", "p * PART_REGS + i * 4"
    if kernel.halves > 1:
        # Rows of one wgmma below those of the other, as in the accumulator.
        body = body.block("for h in T.unroll(BLK_M // MMA_M)")
        row, first = "(h * (PART_REGS // 4) + i)", f"h * ACC_REGS + {first}"
    body.block("for i in T.unroll(PART_REGS // 4)").call(
        'T.ptx["st.shared::cluster.v4.f32"]',
        f"peer[0] + T.uint32({row} * {_ROW_BYTES})",
        *(f"acc_reg[{total(first, str(j))}]" for j in range(4)),
    )


def add(text: RoleText, statement: Add, block: Block, scope: Scope) -> None:
    """Write the sum of all parts of the own share, in the order of the shares, into the first registers.

    Each share has a text of its own, so that registers have numbers: an index that is known at run time only would
    put the accumulator into local memory.
    """
    kernel, share = text.kernel, text.ranks.share
    body = block.block("for p in T.unroll(SPLIT)").block(f"if p == {share}")
    row, half = "i", ""
    if kernel.halves > 1:
        body = body.block("for h in T.unroll(BLK_M // MMA_M)")
        row, half = "h * (PART_REGS // 4) + i", "h * ACC_REGS + "
    body = body.block("for i in T.unroll(PART_REGS // 4)").block("for q in T.unroll(SPLIT)")
    own = body.block("if q == p").block("for j in T.unroll(4)")
    own.line(f"part_reg[j] = acc_reg[{half}p * PART_REGS + i * 4 + j]")
    other = body.block("else")
    slot = _peer(kernel.tiling.split, "q", "p", other)
    other.call(
        'T.ptx["ld.shared.v4.f32"]',
        *(f"part_reg[{j}]" for j in range(4)),
        f"{kernel.parts}.ptr_to([{_part(text, statement.slot, slot)}{row}, tid, 0])",
    )
    to = f"acc_reg[{half}i * 4 + j]"
    whole = body.block("for j in T.unroll(4)")
    whole.call(f"{to} = T.Select", "q == 0", "part_reg[j]", f"{to} + part_reg[j]")


def declare(block: Block) -> None:
    """Declare the registers of an exchange."""
    block.first.append('peer = T.alloc_local((1,), "uint32")')
    block.first.append(f"tid = T.meta_var({_THREAD})")
    block.first.append('part_reg = T.alloc_local((4,), "float32")')


def arrive(text: RoleText, statement: Arrive, slot: str, block: Block) -> None:
    """Write the arrivals on a barrier of an exchange, which release what the thread did at cluster scope."""
    kernel, spec = text.kernel, text.kernel.spec
    place = f"{kernel.barriers[statement.barrier]}.ptr_to([{slot}])"
    block = block if statement.threads > 1 else block.block("if (warp_id == 0) & (lane_id == 0)")
    if statement.targets == Targets.group(Group.PEERS, spec.cluster, spec.pair):
        _arrive_at(text, place, "p", block.block("for p in T.unroll(SPLIT)").block(f"if p != {text.ranks.share}"))
        return
    for rank in range(spec.cluster.size):
        where = [r for r in text.ranks.ranks if statement.targets.masks[r] >> rank & 1]
        condition = text.ranks.where(where)
        if where:
            _arrive_at(text, place, None, block.block(f"if {condition}") if condition else block, str(rank))


def wait(text: RoleText, barrier: str, slot: str, parity: str, block: Block) -> None:
    """Write a wait for a barrier of an exchange, which acquires at cluster scope."""
    block.call("T.cuda.mbarrier_wait_acquire_cluster", f"{text.kernel.barriers[barrier]}.ptr_to([{slot}])", parity)


def _arrive_at(text: RoleText, place: str, share: str | None, block: Block, rank: str = "0") -> None:
    _map(text, place, share, block, rank)
    block.call("T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64", "peer[0]")


def _map(text: RoleText, place: str, share: str | None, block: Block, rank: str = "0") -> None:
    """Write the address of a place as the CTA that has a share of the own tile, or that of a rank, has it."""
    to = text.ranks.peer(share) if share is not None else rank
    block.call("here = T.meta_var", place)
    here = "T.cuda.cvta_generic_to_shared(here)"
    block.call("T.ptx.mapa.shared__cluster.u32", "peer[0]", here, f"T.uint32({to})")


def _peer(split: int, share: str, owner: str, block: Block) -> str:
    """Return the place of a CTA among the peers of another (protocol.tile.receive_slot); nothing where there is one."""
    if split == 2:
        return ""
    block.line(f"part = T.meta_var(T.Select({share} > {owner}, {share} - 1, {share}))")
    return "part, "


def _part(text: RoleText, slot: Slot, peer: str) -> str:
    """Return the leading indices of a receive buffer, each with a comma behind it."""
    t = text.kernel.tiling
    consumer = text.part(slot, t.split - 1)
    return (f"{consumer}, " if t.consumers > 1 else "") + peer
