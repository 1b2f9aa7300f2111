"""Bulk tensor copies: loads of A and B into a stage, stores of a chunk of D."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmspec.codegen.scope import Inside, Scope
from gemmspec.codegen.words import bare, product, span, total
from gemmspec.codegen.writer import Block
from gemmspec.protocol.program import Load, Slot, StoreIssue
from gemmspec.vocabulary import LoopKind, Operand

if TYPE_CHECKING:
    from gemmspec.codegen.roles import RoleText


def load(text: RoleText, loads: list[Load], block: Block, scope: Scope) -> None:
    """Write one load, or those of consumers in a row as a loop over them."""
    kernel, first = text.kernel, loads[0]
    consumer = str(first.first)
    if len(loads) > 1:
        index = scope.free_index()
        trips = "CONSUMERS" if len(loads) == kernel.tiling.consumers else str(len(loads))
        block = block.block(f"for {index} in T.unroll({trips})")
        scope = scope.enter(Inside(LoopKind.FIXED, index, trips, block))
        consumer = total(index, consumer)
    if first.operand is Operand.A:
        buffer, matrix, rows = kernel.a_smem, kernel.a, product(_consumers(text, first.count), "BLK_M")
        start = total(scope.name("m_st", kernel.rows()), product(consumer, kernel.row_stride()))
    else:
        buffer, matrix, rows = kernel.b_smem, kernel.b, "BLK_N"
        start = scope.name("n_st", kernel.b_rows())
    part = "0"
    if first.parts > 1:
        rows = f"{first.operand.value}_PART"
        place = text.ranks.index([first.writes.of(r).index(r) for r in range(kernel.spec.cluster.size)])
        part = scope.name(rows.lower(), product(place, rows))
    start = scope.name(f"{first.operand.value.lower()}_st", total(start, part))
    own = product(text.ranks.share, "K_TILES")
    k_st = scope.name("k_st", product(total(own, scope.index(LoopKind.K)), "BLK_K"))
    copies = kernel.split(first.operand, not _whole(text, first))
    inner, width, k_inner, k_outer = _split(copies, "ATOM_K", "BLK_K", k_st, block, scope)
    stage = text.cursors.position(first.slot, scope)
    target = _stage_of(text, first, stage, consumer, part, rows, span(k_inner, width) if k_inner != "0" else ":")
    mask = scope.name("peers", text.ranks.mask(first.writes.masks)) if first.parts > 1 else None
    slot = text.slot(first.barrier, first.barrier_slot, scope)
    inner.call(
        "Tx.copy_async",
        f"{buffer}[{target}]",
        f"{matrix}[{span(start, rows)}, {span(k_outer, width)}]",
        f"mbar={kernel.view(first.barrier, first.signals.masks)}.ptr_to([{slot}])",
        *([f"cta_mask={mask}"] if mask else []),
        "**load",
    )


def store_issue(text: RoleText, issue: StoreIssue, block: Block, scope: Scope) -> None:
    """Write the store of one chunk from its store buffer to D."""
    kernel = text.kernel
    m_st = scope.name("m_st", kernel.rows(text.held))
    n_st = scope.name("n_st", kernel.columns())
    own = product(text.ranks.share, kernel.count(kernel.tiling.chunks, "CHUNKS"))
    start = kernel.chunk_start(total(own, scope.index(LoopKind.CHUNK)))
    d_st = scope.name("d_st", total(n_st, start if kernel.even else scope.name("c_st", start)))
    inner, width, n_inner, n_outer = _split(kernel.split(None), "ATOM_N", "CHUNK_N", d_st, block, scope)
    row = span(n_inner, width) if n_inner != "0" else ":"
    inner.call(
        "Tx.copy_async",
        f"{kernel.d}[{span(m_st, 'BLK_M')}, {span(n_outer, width)}]",
        f"{kernel.d_smem}[{store_buffer(text, issue.buffer, scope)}:, {row}]",
        "**tma",
    )


def store_buffer(text: RoleText, slot: Slot, scope: Scope) -> str:
    """Return the leading indices of a store buffer, each with a comma behind it."""
    t = text.kernel.tiling
    writer = bare(text.part(slot, t.buffers))
    buffer = total(text.cursors.position(slot, scope), str(slot.const % t.buffers))
    return "".join(f"{i}, " for i, extent in ((writer, t.writers), (buffer, t.buffers)) if extent > 1)


def stage_index(text: RoleText, slot: Slot, scope: Scope) -> str:
    """Return the leading index of a stage with a comma behind it; nothing where there is one stage."""
    return f"{text.cursors.position(slot, scope)}, " if text.kernel.tiling.stages > 1 else ""


def _stage_of(text: RoleText, load: Load, stage: str, consumer: str, part: str, rows: str, depth: str) -> str:
    """Return the index of the part of a stage that a load fills."""
    kernel, t = text.kernel, text.kernel.tiling
    indices = [stage] if t.stages > 1 else []
    below = "0"
    if load.operand is Operand.A:
        if kernel.merged:
            below = product(consumer, "BLK_M")
        elif t.consumers > 1:
            indices.append(consumer)
    indices.append(":" if _whole(text, load) else span(total(below, part), rows))
    return ", ".join([*indices, depth])


def _whole(text: RoleText, load: Load) -> bool:
    """Whether a load fills all rows of its part of the stage."""
    some = load.operand is Operand.A and text.kernel.merged and load.count < text.kernel.tiling.consumers
    return load.parts == 1 and not some


def _consumers(text: RoleText, count: int) -> str:
    return "CONSUMERS" if count == text.kernel.tiling.consumers > 1 else str(count)


def _split(copies: int, atom: str, whole: str, start: str, block: Block, scope: Scope) -> tuple[Block, str, str, str]:
    """Return where a copy goes, its width, and where it starts within the row of the buffer and of the matrix."""
    if copies == 1:
        return block, whole, "0", start
    body = block.block(f"for h in T.unroll({whole} // {atom})")
    scope = scope.enter(Inside(LoopKind.FIXED, "h", str(copies), body))
    inner = scope.name("atom_st", f"h * {atom}")
    return body, atom, inner, scope.name("col_st", total(start, inner))
