"""Given what was written, return the `Spec` it means, or the diagnostics that say why there is none.

Looks up every name and checks every word, number and operand: codes GS003 and GS005 to GS019. Judges no protocol
and no hardware limit: that is `gemmspec.rules`. A wrong value is reported and stands in as a usual one, so that
the rules that do not depend on it still run; a Spec made beside errors must not be lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from gemmspec.diagnostics import Diagnostic
from gemmspec.model.acts import Names
from gemmspec.model.barriers import Counts, resolve_barriers
from gemmspec.model.findings import Findings
from gemmspec.model.gemm import resolve_gemm
from gemmspec.model.items import sort_items
from gemmspec.model.programs import resolve_programs
from gemmspec.model.roles import check_all_kinds, check_names, resolve_roles
from gemmspec.model.shape import (
    MAX_ACCUMULATORS,
    MAX_STAGES,
    as_written,
    resolve_block,
    resolve_cluster,
    resolve_count,
    resolve_schedule,
    resolve_sizes,
    resolve_target,
)
from gemmspec.model.spec import Cluster, SlotFactor, Spec
from gemmspec.source import SourceFile
from gemmspec.syntax.nodes import SpecNode
from gemmspec.targets import Target

NO_SIZES: Mapping[str, int] = MappingProxyType({})


def resolve(
    tree: SpecNode, source: SourceFile, sizes: Mapping[str, int] = NO_SIZES, target: Target | None = None
) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec, None where something it needs is missing, and all that is wrong with it, in text order.

    `sizes` and `target` take the place of those written. Raises `SizeError` for a size that the spec cannot take.
    """
    findings = Findings(source)
    items = sort_items(tree, findings)
    title = items.title

    gemm, axes = resolve_gemm(items.gemm, findings) if items.gemm is not None else (None, None)
    given = {"target"} if target is not None else set[str]()
    if axes is not None and all(name in sizes for name in axes.names):
        given.add("sizes")
    items.missing(findings, frozenset(given))

    on, target_span = resolve_target(items.target, target, title, findings)
    mnk = resolve_sizes(items.sizes, axes, sizes, title, findings)
    lost = items.lost.keywords
    # A cluster line that cannot be read is not a cluster of one CTA: ranks are not judged by that.
    cluster = resolve_cluster(items.cluster, title, findings) if "cluster" not in lost else None
    block = resolve_block(items.block, findings) if items.block is not None else None
    stages = resolve_count(items.stages, MAX_STAGES, title, findings)
    accumulators = resolve_count(items.accumulators, MAX_ACCUMULATORS, title, findings)
    schedule = resolve_schedule(items.schedule, cluster, title, findings)
    if cluster is not None and schedule.split is not None:
        cluster = replace(cluster, split=schedule.split.value)

    operands = (items.gemm.left.name.text, items.gemm.right.name.text) if items.gemm is not None else ("A", "B")
    check_names(items, operands, findings)
    roles = resolve_roles(items, operands, findings)
    check_all_kinds(roles, items.lost, title, findings)
    counts = Counts(
        stages=as_written(items.stages, stages) if items.stages is not None else None,
        accumulators=as_written(items.accumulators, accumulators) if "accumulators" not in lost else None,
    )
    barriers = resolve_barriers(items, roles, counts, cluster if "schedule" not in lost else None, findings)
    ring = SlotFactor("stages", counts.stages, stages.span) if counts.stages is not None else None
    programs = resolve_programs(items, Names(roles, barriers, operands, ring, cluster, findings))

    spec = None
    if (
        items.kernel is not None
        and on is not None
        and gemm is not None
        and mnk is not None
        and block is not None
        and items.stages is not None
        and roles.known
        and roles.sound
    ):
        spec = Spec(
            name=items.kernel.name.text,
            name_span=items.kernel.name.span,
            target=on,
            target_span=target_span,
            gemm=gemm,
            sizes=mnk,
            cluster=cluster or Cluster(1, 1, title, schedule.split.value if schedule.split is not None else 1),
            block=block,
            stages=stages,
            accumulators=accumulators,
            schedule=schedule,
            roles=tuple(roles.known.values()),
            barriers=barriers.complete,
            programs=programs,
        )
    return spec, tuple(sorted(findings.diagnostics, key=lambda d: (d.span, d.code)))
