"""GS506: the last wave of tiles keeps only some of the CTAs busy."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label, Severity
from gemmspec.model.spec import Spec
from gemmspec.protocol.tile import Tiling, waves_of
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count

LEAST_PERCENT = 5


@spec_rule("GS506", "idle-ctas-in-last-wave", Severity.ADVICE)
def idle_ctas_in_last_wave(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    For fixed sizes, that the output tiles spread over the persistent clusters so that less than 5 % of all CTA time
    is spent idle in the last wave.

    ## Why it matters
    All tiles take the same time, so the kernel ends when the last wave does. 75 tiles on 74 clusters take as
    long as 148: half of the machine waits for one tile.

    ## Limits
    Sizes that are known only at run time are not judged. Other kernels that could use idle multiprocessors are
    not known.
    """
    tiling = Tiling.of(spec)
    waves = waves_of(spec, tiling)
    m, n, _ = (size.fixed for size in spec.sizes)
    if waves is None or m is None or n is None:
        return
    clusters = tiling.ctas // spec.cluster.size
    tiles = tiling.m_tiles(m) * tiling.n_tiles(n)
    last = tiles - (waves - 1) * clusters
    idle = 100 * (waves * clusters - tiles) // (waves * clusters)
    if idle < LEAST_PERCENT:
        return
    enough = -(-tiles // waves) * spec.cluster.size
    notes = [
        f"{tiling.m_tiles(m)} x {tiling.n_tiles(n)} tiles of {tiling.tile_m} x {tiling.tile_n} on "
        f"{count(clusters, 'cluster')}: {count(waves, 'wave')}, the last with {last}",
    ]
    if enough < tiling.ctas:
        notes.append(f"{enough} CTAs take as many waves as {tiling.ctas} do")
    ctas = spec.schedule.ctas
    yield Finding(
        spec.sizes[0].span.to(spec.sizes[1].span),
        f"{count(tiles, 'tile')} on {count(clusters, 'cluster')}: {clusters - last} have nothing to do in the last "
        f"of {count(waves, 'wave')}, {idle} % of all CTA time",
        labels=(
            *([Label(ctas.span, f"{count(clusters, 'cluster')} of {count(spec.cluster.size, 'CTA')}")] if ctas else []),
            Label(spec.block.span, f"a cluster computes {tiling.tile_m} x {tiling.tile_n} at a time"),
        ),
        notes=tuple(notes),
    )
