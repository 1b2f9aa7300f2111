"""Sorts the items of a file by what they state, and says which are missing or stand there twice.

Given the `SpecNode`, which holds only what could be read, and the text, from which it takes what the lines that
could not be read were about: such an item is not missing, and the names on its line are not unknown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TypeVar

from gemmspec.diagnostics import Label
from gemmspec.model.findings import Findings, shown
from gemmspec.record import record
from gemmspec.source import SourceFile, Span
from gemmspec.suggest import suggest
from gemmspec.syntax.nodes import (
    BarrierNode,
    BlockNode,
    ClusterNode,
    CountNode,
    GemmNode,
    ItemNode,
    KernelNode,
    ProgramNode,
    RoleNode,
    ScheduleNode,
    SizesNode,
    SpecNode,
    TargetNode,
)

Node = TypeVar("Node", bound=ItemNode)

# What each required item looks like, for the help of GS003, in the order in which specs are written.
REQUIRED = {
    "kernel": "kernel hgemm",
    "target": "target sm_100a",
    "gemm": "gemm D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16",
    "sizes": "sizes M = 4096, N = 4096, K = 4096",
    "block": "block 128 x 128 x 64",
    "stages": "stages 4",
    "role": "role producer = tma on warpgroup 1 warp 3",
    "barrier": "barrier tma2mma [stages] producer -> consumer via tma",
}
KEYWORDS = (*REQUIRED, "cluster", "accumulators", "schedule", "program")
STATEMENT_WORDS = frozenset(
    ("for", "if", "wait", "arrive", "commit", "expect", "load", "mma", "read", "send", "add", "store", "retire", "sync")
)
FIRST_WORD = re.compile(r"^[^\S\n]*([A-Za-z_]\w*)", re.MULTILINE)


@record
class Lost:
    """What the lines that could not be read were about: their keywords, and all names on them."""

    keywords: frozenset[str]
    names: frozenset[str]


@record
class Items:
    """The items of a file, each where it was written first."""

    kernel: KernelNode | None
    target: TargetNode | None
    gemm: GemmNode | None
    sizes: SizesNode | None
    cluster: ClusterNode | None
    block: BlockNode | None
    stages: CountNode | None
    accumulators: CountNode | None
    schedule: ScheduleNode | None
    roles: tuple[RoleNode, ...]
    barriers: tuple[BarrierNode, ...]
    programs: tuple[ProgramNode, ...]
    lost: Lost

    @property
    def title(self) -> Span:
        """Where a finding about the whole spec points: its kernel line, or the start of the file."""
        return self.kernel.span if self.kernel is not None else Span(0, 0)

    def missing(self, findings: Findings, optional: frozenset[str]) -> None:
        """Add a finding for each required item that the file lacks; `optional` ones come from the command line."""
        have = {
            "kernel": self.kernel,
            "target": self.target,
            "gemm": self.gemm,
            "sizes": self.sizes,
            "block": self.block,
            "stages": self.stages,
            "role": self.roles,
            "barrier": self.barriers,
        }
        absent = [word for word, node in have.items() if not node and word not in self.lost.keywords | optional]
        if absent and not self.lost.keywords and not any(have.values()):
            lines = ", ".join(f"`{word}`" for word in REQUIRED)
            findings.error("GS003", "the file states no kernel", self.title, helps=(f"write the lines {lines}",))
            return
        for word in absent:
            helps = (f"add a line such as `{REQUIRED[word]}`",)
            findings.error("GS003", f"the spec has no `{word}` line", self.title, helps=helps)


def sort_items(tree: SpecNode, findings: Findings) -> Items:
    """Return the items by what they state; a second item of a kind that stands once is a finding."""

    def all_of(kind: type[Node]) -> tuple[Node, ...]:
        return tuple(node for node in tree.items if isinstance(node, kind))

    def only(keyword: str, nodes: tuple[Node, ...]) -> Node | None:
        for node in nodes[1:]:
            findings.repeated("GS005", f"`{keyword}`", nodes[0].span, node.span)
        return nodes[0] if nodes else None

    counts = all_of(CountNode)
    return Items(
        kernel=only("kernel", all_of(KernelNode)),
        target=only("target", all_of(TargetNode)),
        gemm=only("gemm", all_of(GemmNode)),
        sizes=only("sizes", all_of(SizesNode)),
        cluster=only("cluster", all_of(ClusterNode)),
        block=only("block", all_of(BlockNode)),
        stages=only("stages", tuple(node for node in counts if node.keyword.text == "stages")),
        accumulators=only("accumulators", tuple(node for node in counts if node.keyword.text == "accumulators")),
        schedule=only("schedule", all_of(ScheduleNode)),
        roles=all_of(RoleNode),
        barriers=all_of(BarrierNode),
        programs=_one_for_each_role(all_of(ProgramNode), findings),
        lost=lost_lines(tree, findings.source),
    )


def _one_for_each_role(programs: tuple[ProgramNode, ...], findings: Findings) -> tuple[ProgramNode, ...]:
    first: dict[str, ProgramNode] = {}
    for node in programs:
        name = node.role.text
        if name in first:
            labels = (Label(first[name].head, "first given here"),)
            message = f"the program of `{shown(name)}` is given twice"
            findings.error("GS005", message, node.head, labels=labels, helps=("keep one of the two",))
        else:
            first[name] = node
    return tuple(first.values())


def lost_lines(tree: SpecNode, source: SourceFile) -> Lost:
    """Return what the lines that are no part of any item were about; a misspelled keyword counts as the right one."""
    spans = sorted(node.span for node in tree.items)
    starts = [span.start for span in spans]
    keywords: set[str] = set()
    for line in FIRST_WORD.finditer(source.text):
        at = bisect_right(starts, line.start(1)) - 1
        if at >= 0 and line.start(1) < spans[at].end:
            continue
        word = line[1]
        if word not in KEYWORDS:
            word = None if word in STATEMENT_WORDS else suggest(word, KEYWORDS)
        if word is not None:
            keywords.add(word)
    return Lost(frozenset(keywords), tree.unread)
