"""GS404: chunks that do not cover the accumulator evenly, or that no instruction moves."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.protocol.tile import Tiling, covers
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count
from gemmspec.source import Span
from gemmspec.vocabulary import RoleKind


@spec_rule("GS404", "chunk-does-not-divide")
def chunk_does_not_divide(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A chunk is what the instructions move: on sm_100a a power of two up to 128 columns, on sm_90a a multiple of 8 up to
    256. On sm_100a the columns of an accumulator (block n, times two in a pair) are a whole number of chunks; on sm_90a
    a chunk is at most as wide as the accumulator. Where CTAs share an output tile (`split`), the accumulator is a whole
    number of chunks for each of them. All epilogue roles work with one chunk.

    ## Why it matters
    The epilogue moves the accumulator chunk by chunk through a store buffer of that width. A last chunk that is
    narrower would store columns of the next tile. CTAs that share a tile sum and store as many chunks each.
    tcgen05.ld takes 4, 8, .. 128 columns, and wgmma leaves fragments of 8 columns in the registers: no instruction
    moves a chunk between. On sm_90a, where the accumulator is in registers, the last of chunks that do not divide it is
    moved back so far that it ends with it; the columns that it has in common with the chunk before are stored twice,
    with the same values. Of 152 columns, chunks of 40 store 160.

    Wide chunks mean fewer waits and syncs a tile. A row of a multiple of 128 bytes (64 columns of f16) lies in swizzled
    atoms and is stored one atom at a time. A row of an odd number of 16-byte units (72 columns of f16) lies plain and
    is stored at once. What is between, as 48 or 80 columns of f16, is stored in narrow pieces.

    ## Limits
    None.
    """
    columns = Tiling.of(spec).acc_columns
    first = None
    roles = spec.roles_of(RoleKind.EPILOGUE)
    split = spec.cluster.split
    if split > 1 and not _working(spec, columns, columns) and all(r.chunk is None for r in roles):
        yield _uneven(spec, Tiling.of(spec).chunk, columns, spec.block.n.span)
    for role in roles:
        if role.chunk is None:
            continue
        chunk, first = role.chunk.value, first or role
        covered, divides = covers(spec, columns, chunk), columns % chunk == 0
        if chunk not in spec.target.chunks and (covered or divides):
            yield Finding(
                role.chunk.span,
                f"an epilogue of {spec.target.name} moves {_widths(spec.target.chunks)} columns at a time, not {chunk}",
                helps=_working(spec, columns, chunk),
            )
        elif divides and columns // chunk % spec.cluster.split:
            yield _uneven(spec, chunk, columns, role.chunk.span)
        elif not covered:
            n = spec.block.n.value
            label = f"{n} x 2 CTAs = {columns} columns" if spec.paired else f"{columns} columns"
            yield Finding(
                role.chunk.span,
                f"chunks of {count(chunk, 'column')} {_misfit(spec)} an accumulator of {columns}",
                labels=(Label(spec.block.n.span, label),),
                helps=_working(spec, columns, chunk),
            )
        elif first.chunk is not None and chunk != first.chunk.value:
            yield Finding(
                role.chunk.span,
                f"role `{role.name}` has chunks of {chunk} columns, but role `{first.name}` has {first.chunk.value}",
                labels=(Label(first.chunk.span, f"{first.chunk.value} here"),),
            )


def _misfit(spec: Spec) -> str:
    return "do not divide" if spec.target.has_tmem or spec.cluster.split > 1 else "are wider than"


def _widths(legal: tuple[int, ...]) -> str:
    """Return legal widths in words: the first two tell the step."""
    return f"{legal[0]}, {legal[1]}, .. {legal[-1]}"


def _working(spec: Spec, columns: int, chunk: int) -> tuple[str, ...]:
    """Return the help that names the widest chunk up to the written one that works, or the narrowest above it."""
    working = [c for c in spec.target.chunks if covers(spec, columns, c)]
    below = [c for c in working if c <= chunk]
    return (f"write `chunk {max(below) if below else min(working)}`",) if working else ()


def _uneven(spec: Spec, chunk: int, columns: int, span: Span) -> Finding:
    split, given = spec.cluster.split, spec.schedule.split
    chunks = count(columns // chunk, "chunk")
    return Finding(
        span,
        f"an accumulator of {columns} columns has {chunks}, which {split} CTAs cannot deal out evenly",
        labels=(Label(given.span, f"{split} CTAs for each tile"),) if given is not None else (),
        helps=_working(spec, columns, chunk),
    )
