"""GS308: a cluster of more CTAs than the target schedules together."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS308", "cluster-size", essential=True)
def cluster_size(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A cluster has no more CTAs than every card of the target schedules together (its portable cluster size).

    ## Why it matters
    A launch with a larger cluster fails, or needs an opt-in and then fits only on some GPCs of some cards.

    ## Limits
    Non-portable cluster sizes are not supported.
    """
    cluster, most = spec.cluster, spec.target.max_cluster
    if cluster.size > most:
        yield Finding(
            cluster.span,
            f"a cluster of {cluster.m} x {cluster.n} has {cluster.size} CTAs, but {spec.target.name} has clusters of "
            f"at most {most}",
        )
