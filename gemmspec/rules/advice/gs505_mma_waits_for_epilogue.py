"""GS505: the MMA stops while the epilogue reads, though tensor memory has room for a second accumulator."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix, Label, Severity
from gemmspec.model.spec import Barrier, Spec
from gemmspec.protocol.standard import per_k
from gemmspec.protocol.tile import Tiling, waves_of
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.source import Span
from gemmspec.vocabulary import RoleKind


@spec_rule("GS505", "mma-waits-for-epilogue", Severity.ADVICE)
def mma_waits_for_epilogue(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    That a pipeline with one accumulator a consumer has no room for two.

    ## Why it matters
    With one accumulator the tensor core idles from the last MMA of a tile until the epilogue has read the
    accumulator: for 256 columns some thousand clocks of every tile. With two it computes the next tile meanwhile,
    and the ring of stages does not run full.

    ## Limits
    Counts columns. Where every cluster has a single tile (fixed sizes), there is no next one, and nothing is said.
    """
    tiling = Tiling.of(spec)
    columns = tiling.consumers * tiling.acc_columns
    if not spec.target.has_tmem or tiling.accumulators > 1 or 2 * columns > spec.target.tmem_columns:
        return
    if waves_of(spec, tiling) == 1:
        return
    rings = [b for b in spec.barriers if not per_k(spec, b) and _joins_accumulator(spec, b)]
    consumers = spec.roles_of(RoleKind.MMA)
    written = spec.name_span not in spec.accumulators.span
    start = Span(spec.stages.span.start, spec.stages.span.start)
    count = Edit(spec.accumulators.span, "accumulators 2") if written else Edit(start, "accumulators 2\n")
    edits = (count, *(_with_accumulators(b) for b in rings))
    slots = " and ".join(f"`{b.name} {e.text.strip()}`" for b, e in zip(rings, edits[1:], strict=True))
    standard = not spec.programs
    yield Finding(
        consumers[0].name_span,
        f"`{consumers[0].name}` waits for the epilogue after every tile, though a second accumulator would fit",
        f"{columns} of {spec.target.tmem_columns} columns of tensor memory are in use",
        labels=tuple(Label(b.name_span, "one accumulator goes round here") for b in rings),
        notes=("from the last MMA of a tile until the accumulator has been read, the tensor core has nothing to do",),
        helps=(f"write `accumulators 2`, and {slots}" if standard else "write `accumulators 2`, and as many slots",),
        fix=Fix("add a second accumulator", edits, safe=False) if standard and rings else None,
    )


def _joins_accumulator(spec: Spec, barrier: Barrier) -> bool:
    kinds = {kind for g in (*barrier.sources, *barrier.waiters) for kind in spec.role(g.value).kinds}
    return {RoleKind.MMA, RoleKind.EPILOGUE} <= kinds


def _with_accumulators(barrier: Barrier) -> Edit:
    factors = [f.text for f in barrier.factors if f.text != "1"]
    slots = f"[{' x '.join([*factors, 'accumulators'])}]"
    if barrier.slots_span == barrier.name_span:
        return Edit(Span(barrier.name_span.end, barrier.name_span.end), " " + slots)
    return Edit(barrier.slots_span, slots)
