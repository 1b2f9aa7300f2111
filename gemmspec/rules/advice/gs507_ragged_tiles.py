"""GS507: work at the edges that is computed and thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label, Severity
from gemmspec.model.spec import Spec
from gemmspec.protocol.tile import Tiling
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS507", "ragged-tiles", Severity.ADVICE)
def ragged_tiles(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    M and N are multiples of the tile that a cluster computes, and K of the depth of a stage.

    ## Why it matters
    TMA fills what lies outside with zeros and does not store it, so the result is right. But the last tile of a row or
    column costs as much as a whole one.

    ## Limits
    Sizes that are known only at run time are not judged.
    """
    tiling = Tiling.of(spec)
    units = (tiling.tile_m, tiling.tile_n, tiling.block_k)
    words = ("rows of a cluster's tile", "columns of a cluster's tile", "elements of a stage")
    for size, unit, word in zip(spec.sizes, units, words, strict=True):
        if size.fixed is None or size.fixed % unit == 0:
            continue
        whole = -(-size.fixed // unit) * unit
        waste = 100 - size.fixed * 100 // whole
        yield Finding(
            size.span,
            f"{size.name} is {size.fixed}, not a multiple of the {unit} {word}: {waste} % of the work along "
            f"{size.name} is thrown away",
            labels=(Label(spec.block.span, "the tile follows from this, the consumers and the cluster"),),
        )
