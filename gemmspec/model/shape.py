"""Resolves the lines that are numbers: sizes, cluster, block, stages, accumulators, schedule; and the target.

Each function reports what is wrong and returns a default in its place, so that rules on other lines still run.
Limits here are those of the language; what the target can do is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gemmspec.diagnostics import Label, SizeError
from gemmspec.model.findings import Findings, backwards, plural, shown, shown_number
from gemmspec.model.gemm import Axes
from gemmspec.model.properties import by_name, choice, number
from gemmspec.model.spec import Block, Cluster, Given, Schedule, Size
from gemmspec.source import Span
from gemmspec.suggest import suggest
from gemmspec.syntax.nodes import (
    BlockNode,
    ClusterNode,
    CountNode,
    Number,
    Property,
    ScheduleNode,
    SizeNode,
    SizesNode,
    TargetNode,
)
from gemmspec.targets import TARGETS, Target

# Generated kernels compute indices in 32-bit signed integers.
MAX_SIZE = 2**31 - 1
MAX_STAGES = 32
MAX_ACCUMULATORS = 16
MAX_BLOCK = 4096
MAX_CLUSTER_DIM = 16
MAX_CTAS = 2**16 - 1
SPLITS = (1, 2, 4, 8)
"""Shares of the k tiles: chunks are dealt out evenly, and a portable cluster has at most 8 CTAs."""
DEFAULT_BLOCK = (128, 128, 64)
USUAL_SIZE = 4096


def resolve_target(
    node: TargetNode | None, override: Target | None, title: Span, findings: Findings
) -> tuple[Target | None, Span]:
    """Return the target and where it is stated; `override` takes the written one's place."""
    span = node.name.span if node is not None else title
    if override is not None:
        return override, span
    if node is None:
        return None, span
    if node.name.text in TARGETS:
        return TARGETS[node.name.text], span
    meant = findings.unknown("GS007", "target", node.name, TARGETS)
    return (TARGETS[meant] if meant is not None else None), span


def resolve_sizes(
    node: SizesNode | None, axes: Axes | None, overrides: Mapping[str, int], title: Span, findings: Findings
) -> tuple[Size, Size, Size] | None:
    """Return the sizes of M, N, K; those of `overrides` take the place of written ones, or raise `SizeError`."""
    span = node.span if node is not None else title
    known = dict(_written(node, axes, findings))
    for name, value in overrides.items():
        known[name] = _given(name, value, axes, known.get(name), span, findings.source.name)
    if axes is None:
        return None
    missing = [name for name in axes.names if name not in known]
    # One defect, one error: a size of an unknown axis is the missing one under a wrong name.
    if node is not None and all(size.name.text in axes.names for size in node.sizes):
        for name in missing:
            helps = (f"add `{shown(name)} = 4096` or `{shown(name)} dynamic`",)
            findings.incomplete("GS003", f"axis `{shown(name)}` has no size", span, span, helps)
    m, n, k = (known.get(name) for name in axes.names)
    return (m, n, k) if m is not None and n is not None and k is not None else None


def _written(node: SizesNode | None, axes: Axes | None, findings: Findings) -> Iterable[tuple[str, Size | None]]:
    """Give each written size once, None for one whose value is wrong."""
    seen: dict[str, Span] = {}
    if node is None:
        return
    for size in node.sizes:
        name = size.name.text
        if name in seen:
            message = f"size `{shown(name)}` is given twice"
            findings.error("GS010", message, size.name.span, labels=(Label(seen[name], "first given here"),))
            continue
        seen[name] = size.name.span
        if axes is not None and name not in axes.names:
            meant = findings.unknown("GS008", "axis", size.name, axes.names)
            if meant is None or any(other.name.text == meant for other in node.sizes):
                continue
            name = meant
        yield name, _size(size, name, node.span, findings)


def _size(node: SizeNode, name: str, line: Span, findings: Findings) -> Size | None:
    what = f"size `{shown(name)}`"
    dynamic = node.dynamic is not None
    if node.value is None:
        if dynamic:
            return Size(name, 1, MAX_SIZE, True, node.span)
        helps = (f"write `{shown(name)} = 4096` or `{shown(name)} dynamic`",)
        findings.incomplete("GS003", f"{what} has no value", node.name.span, line, helps)
        return None
    first, last = node.value.first, node.value.last
    low = findings.in_range(what, first, 1, MAX_SIZE)
    high = low if last is first or last.span == first.span else findings.in_range(what, last, 1, MAX_SIZE)
    if low is None or high is None:
        return Size(name, USUAL_SIZE, USUAL_SIZE, False, node.span)
    if high < low:
        backwards(f"range of {what}", node.value, "GS006", findings)
        low, high = high, low
    if dynamic and low == high:
        return Size(name, 1, MAX_SIZE, True, node.span, typical=low)
    return Size(name, low, high, low != high, node.span)


def _given(name: str, value: int, axes: Axes | None, written: Size | None, line: Span, source: str) -> Size:
    """Return the size that takes a written one's place."""
    words = f"{shown(name)}={shown_number(value)}"
    if axes is not None and name not in axes.names:
        meant = suggest(name, axes.names)
        hint = f"; did you mean {meant}={shown_number(value)}?" if meant is not None else ""
        raise SizeError(f"{words}: {source} has the axes {', '.join(map(shown, axes.names))}{hint}")
    low, high = (written.low, written.high) if written is not None and written.dynamic else (1, MAX_SIZE)
    if not low <= value <= high:
        whose = f"{source} takes" if (low, high) != (1, MAX_SIZE) else "a size lies in"
        raise SizeError(f"{words}: {whose} {low}..{high}")
    return Size(name, value, value, False, line)


def resolve_cluster(node: ClusterNode | None, title: Span, findings: Findings) -> Cluster | None:
    """Return the cluster, 1 x 1 where it is left out; None where it is wrong."""
    if node is None:
        return Cluster(1, 1, title)
    values = _dims(node.dims, "cluster", 2, MAX_CLUSTER_DIM, node.span, findings)
    if values is None:
        return None
    m, n = values
    return Cluster(m, n, node.span) if m is not None and n is not None else None


def resolve_block(node: BlockNode, findings: Findings) -> Block:
    """Return the block; dimensions that are wrong have the usual size."""
    values = _dims(node.dims, "block", 3, MAX_BLOCK, node.span, findings)
    if values is None:
        m, n, k = (Given(size, node.span) for size in DEFAULT_BLOCK)
    else:
        m, n, k = (
            Given(value if value is not None else usual, dim.span)
            for value, usual, dim in zip(values, DEFAULT_BLOCK, node.dims, strict=True)
        )
    return Block(m, n, k, node.span)


def _dims(
    dims: tuple[Number, ...], keyword: str, count: int, most: int, span: Span, findings: Findings
) -> list[int | None] | None:
    """Return each dimension, None for one out of range; None in place of all where their number is wrong."""
    if len(dims) != count:
        numbers = dims[0].span.to(dims[-1].span) if dims else span
        findings.incomplete("GS001", f"`{keyword}` takes {count} numbers, but has {len(dims)}", numbers, span)
        return None
    return [findings.in_range(f"`{keyword}`", dim, 1, most) for dim in dims]


def resolve_count(node: CountNode | None, most: int, title: Span, findings: Findings) -> Given[int]:
    """Return the number of stages or accumulators, 1 where it is left out or wrong."""
    if node is None:
        return Given(1, title)
    value = findings.in_range(f"`{node.keyword.text}`", node.value, 1, most)
    return Given(value if value is not None else 1, node.span)


def as_written(node: CountNode | None, count: Given[int]) -> int | None:
    """Return a count, or None where it stands in for a wrong one: an index is not to be judged by that."""
    return count.value if node is None or node.value.value == count.value else None


def resolve_schedule(node: ScheduleNode | None, cluster: Cluster | None, title: Span, findings: Findings) -> Schedule:
    """Return the schedule. How many CTAs there are by default is for later stages to derive."""
    if node is None:
        return Schedule("persistent", None, None, title)
    choice(node.kind, "schedule", ("persistent",), findings)
    props = by_name(node.properties, ("ctas", "group", "split"), findings)
    split = _split(props.get("split"), findings)
    if cluster is not None and split is not None:
        cluster = replace(cluster, split=split.value)
    ctas = number(props.get("ctas"), 1, MAX_CTAS, findings)
    if ctas is not None and cluster is not None and ctas.value % cluster.size != 0:
        message = f"`ctas` is {ctas.value}, not a multiple of the cluster's {plural(cluster.size, 'CTA')}"
        labels = (Label(cluster.span, f"a cluster has {plural(cluster.size, 'CTA')}"),)
        if split is not None:
            labels += (Label(split.span, f"{plural(split.value, 'CTA')} for each tile"),)
        below = ctas.value - ctas.value % cluster.size
        helps = (f"write `ctas {below or cluster.size}`, or leave it out",)
        findings.error("GS006", message, ctas.span, labels=labels, helps=helps)
        ctas = None
    return Schedule("persistent", ctas, number(props.get("group"), 1, MAX_CTAS, findings), node.span, split)


def _split(prop: Property | None, findings: Findings) -> Given[int] | None:
    """Return how many CTAs share an output tile."""
    split = number(prop, SPLITS[0], SPLITS[-1], findings)
    if prop is None or split is None:
        # Some number is meant: what it is for is not to be judged as if there were none.
        return Given(SPLITS[1], prop.span) if prop is not None else None
    if split.value in SPLITS:
        return split
    message = f"`split` is {split.value}, but takes {', '.join(map(str, SPLITS[:-1]))} or {SPLITS[-1]}"
    findings.error("GS006", message, split.span)
    return Given(SPLITS[1], split.span)
