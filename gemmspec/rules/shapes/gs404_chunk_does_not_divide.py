"""GS404: chunks that do not cover the accumulator evenly."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.protocol.tile import Tiling
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count
from gemmspec.vocabulary import RoleKind


@spec_rule("GS404", "chunk-does-not-divide")
def chunk_does_not_divide(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    The columns of an accumulator (block n, times two in a pair) are a whole number of chunks, and all epilogue roles
    work with one chunk.

    ## Why it matters
    The epilogue moves the accumulator chunk by chunk through a store buffer of that width. A last chunk that is
    narrower would store columns of the next tile.

    ## Limits
    None.
    """
    columns = Tiling.of(spec).acc_columns
    first = None
    for role in spec.roles_of(RoleKind.EPILOGUE):
        if role.chunk is None:
            continue
        chunk, first = role.chunk.value, first or role
        if columns % chunk:
            n = spec.block.n.value
            label = f"{n} x 2 CTAs = {columns} columns" if spec.paired else f"{columns} columns"
            yield Finding(
                role.chunk.span,
                f"chunks of {count(chunk, 'column')} do not divide an accumulator of {columns}",
                labels=(Label(spec.block.n.span, label),),
            )
        elif first.chunk is not None and chunk != first.chunk.value:
            yield Finding(
                role.chunk.span,
                f"role `{role.name}` has chunks of {chunk} columns, but role `{first.name}` has {first.chunk.value}",
                labels=(Label(first.chunk.span, f"{first.chunk.value} here"),),
            )
