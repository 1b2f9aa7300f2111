"""GS402: a tile that cannot be cut into the boxes that TMA moves."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.protocol.tile import Tiling
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import Operand, RoleKind

# A 128-byte swizzle atom is 8 rows high (PTX ISA, tensor swizzling modes): a slice begins on a whole atom.
ATOM_ROWS = 8


@spec_rule("GS402", "tma-box")
def tma_box(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    - With `multicast`, each CTA of the group loads an equal slice of the tile: its rows divide by the number of CTAs,
      into slices of whole swizzle atoms (8 rows).
    - One row of the store buffer, `chunk` columns, is a multiple of 16 bytes.

    ## Why it matters
    A TMA box has one fixed size. With an uneven slice some rows are loaded twice or never; a box row that is no
    multiple of 16 bytes is refused when the tensor map is made, at the first launch.

    ## Limits
    Boxes larger than TMA's 256 elements along a dimension are cut in several by the generator, and are not reported.
    """
    tiling, align = Tiling.of(spec), spec.target.tma_alignment
    cuts = {Operand.A: (spec.block.m, tiling.a_parts), Operand.B: (spec.block.n, tiling.b_parts)}
    for role in spec.roles_of(RoleKind.TMA):
        for operand in role.multicast.value if role.multicast else ():
            rows, parts = cuts[operand]
            if rows.value % (parts * ATOM_ROWS):
                assert role.multicast is not None
                yield Finding(
                    rows.span,
                    f"{rows.value} rows of {operand.value} do not divide into {parts} slices of whole swizzle atoms, "
                    f"{ATOM_ROWS} rows each",
                    labels=(
                        Label(spec.cluster.span, f"{parts} CTAs share each tile of {operand.value}"),
                        Label(role.multicast.span, "each of them loads one slice for all"),
                    ),
                )
    d = spec.gemm.d.value
    for role in spec.roles_of(RoleKind.EPILOGUE):
        # Of a chunk that no instruction moves, GS404 speaks.
        movable = role.chunk is not None and role.chunk.value in spec.target.chunks
        if role.chunk and movable and role.chunk.value * d.bytes % align:
            yield Finding(
                role.chunk.span,
                f"a row of {role.chunk.value} {d.value} is {role.chunk.value * d.bytes} bytes, but TMA moves multiples "
                f"of {align}",
                helps=(f"write a multiple of {align // d.bytes}",),
            )
