"""Given a spec, return what it comes to as comment lines: tiles and waves, shared memory, tensor memory.

Ranges include both ends, as everywhere in the language.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.protocol.memory import Region, smem_map, tmem_map
from gemmspec.protocol.tile import Tiling, ceil_div


def maps_text(spec: Spec) -> str:
    """Return all maps as comments."""
    return "\n".join(f"# {line}".rstrip() for line in (*_work(spec), *_smem(spec), *_tmem(spec)))


def _work(spec: Spec) -> Iterator[str]:
    t, cluster = Tiling.of(spec), spec.cluster
    dims = f"{cluster.m} x {cluster.n}" + (f" x {cluster.split}" if cluster.split > 1 else "")
    who = "a CTA" if cluster.size == 1 else f"a cluster of {dims} CTAs"
    yield f"{who} computes {t.tile_m} x {t.tile_n} of D at a time; a stage holds {t.stage_bytes} bytes in each CTA"
    m, n, k = (size.fixed for size in spec.sizes)
    if m is None or n is None or k is None:
        return
    rows, columns, clusters = t.m_tiles(m), t.n_tiles(n), t.ctas // cluster.size
    waves = ceil_div(rows * columns, clusters)
    last = rows * columns - (waves - 1) * clusters
    workers = f"{clusters} persistent {'CTAs' if cluster.size == 1 else 'clusters'}"
    depth = f"{t.k_tiles(k)} k tiles" + (f" a CTA, {t.split} CTAs" if t.split > 1 else "")
    yield f"{rows} x {columns} tiles of {depth} each, for {workers}"
    yield f"{waves} wave{'s' if waves > 1 else ''}, the last with {last} tiles"


def _smem(spec: Spec) -> Iterator[str]:
    regions, have = smem_map(spec), spec.target.smem_bytes
    yield f"shared memory of a CTA, in bytes: {regions[-1].end} of {have}"
    yield from _table(regions)


def _tmem(spec: Spec) -> Iterator[str]:
    regions = tmem_map(spec)
    if regions:
        yield f"tensor memory, in columns: {regions[-1].end} of {spec.target.tmem_columns}"
        yield from _table(regions)


def _table(regions: tuple[Region, ...]) -> Iterator[str]:
    width = max(len(r.name) for r in regions)
    for r in regions:
        yield f"  {r.offset:>7} .. {r.end - 1:<7} {r.name:<{width}}  {r.detail}"
