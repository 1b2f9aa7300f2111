"""GS308: a cluster of more CTAs than the target schedules together."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS308", "cluster-size", essential=True)
def cluster_size(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A cluster has no more CTAs than every card of the target schedules together (its portable cluster size). Those that
    share an output tile (`split`) are in one cluster.

    ## Why it matters
    A launch with a larger cluster fails, or needs an opt-in and then fits only on some GPCs of some cards.

    ## Limits
    Non-portable cluster sizes are not supported.
    """
    cluster, most = spec.cluster, spec.target.max_cluster
    if cluster.size > most:
        split = spec.schedule.split
        shared = f", {cluster.split} for each output tile," if cluster.split > 1 else ""
        yield Finding(
            cluster.span if cluster.m * cluster.n > 1 or split is None else split.span,
            f"a cluster of {cluster.m} x {cluster.n}{shared} has {cluster.size} CTAs, but {spec.target.name} has "
            f"clusters of at most {most}",
            labels=(Label(split.span, f"{cluster.split} CTAs for each tile"),)
            if split is not None and cluster.m * cluster.n > 1
            else (),
        )
