"""The graph of a spec as SVG: roles as nodes, barriers as edges, and what they go round as rings of slots.

Given a Protocol, lay roles out from left to right along the barriers whose waiters block at first (phase 0: data
comes). Those that let pass at first (phase 1: room is free) lead back, below, so that a pair closes around its slots.
A role that waits for itself has its ring in a room of its own, on its right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmspec.draw.canvas import CHARACTER, Canvas
from gemmspec.draw.palette import FAINT, INK, QUIET, line_of
from gemmspec.protocol.program import BarrierPlan, Program, Protocol
from gemmspec.vocabulary import Group, Via

NODE_W, NODE_H = 196.0, 98.0
APART, BELOW = 300.0, 250.0
MARGIN, HEADER, LEGEND = 24.0, 64.0, 44.0
RISE, STACK = 76.0, 58.0
# A ring of a role with itself: how far it reaches, and how many barriers further out another ring passes by it.
LOOP, PASSING = 320.0, 2
CELL = 17.0
MOST_CELLS = 12
TITLE, NAME, WORDS = 15, 12.5, 11


@dataclass(frozen=True, slots=True)
class _Edge:
    """From one role that arrives to one that waits."""

    plan: BarrierPlan
    source: str
    waiter: str

    @property
    def forward(self) -> bool:
        return self.plan.phase == 0

    @property
    def loop(self) -> bool:
        return self.source == self.waiter


@dataclass(frozen=True, slots=True)
class _Layout:
    places: dict[str, tuple[float, float]]
    """The top left of each role's node."""
    width: float
    height: float


def graph_svg(protocol: Protocol) -> str:
    """Return the picture."""
    spec = protocol.spec
    edges = [
        _Edge(plan, source.value, waiter.value)
        for plan in protocol.barriers
        for source in plan.barrier.sources
        for waiter in plan.barrier.waiters
    ]
    layout = _layout(protocol, edges)
    title = f"{spec.name}: who waits for whom"
    canvas = Canvas(layout.width, layout.height, title)
    canvas.text(title, MARGIN, 30, TITLE, bold=True)
    dims = f"{spec.cluster.m} x {spec.cluster.n}" + (f" x {spec.cluster.split}" if spec.cluster.split > 1 else "")
    cluster = f"cluster of {dims} CTAs" if spec.cluster.size > 1 else "one CTA"
    about = f"{spec.target.name}, {cluster}, {spec.stages.value} stages"
    canvas.text(about, MARGIN, 48, WORDS, fill=QUIET)
    pairs: dict[tuple[str, str], list[_Edge]] = {}
    for edge in edges:
        key = (edge.source, edge.waiter) if edge.forward else (edge.waiter, edge.source)
        pairs.setdefault(key, []).append(edge)
    loops = {edge.source for edge in edges if edge.loop}
    for (left, right), between in pairs.items():
        if left == right:
            _loop(canvas, protocol, layout.places[left], between)
        else:
            _pair(canvas, protocol, layout, left, right, between, PASSING if left in loops else 0)
    for program in protocol.programs:
        _node(canvas, protocol, program, layout.places[program.role.name])
    _legend(canvas, edges, layout.height - LEGEND + 14)
    return canvas.svg()


def _layout(protocol: Protocol, edges: Sequence[_Edge]) -> _Layout:
    layer = {p.role.name: 0 for p in protocol.programs}
    for _ in layer:
        for edge in edges:
            if edge.forward and not edge.loop:
                layer[edge.waiter] = min(max(layer[edge.waiter], layer[edge.source] + 1), len(layer) - 1)
    columns: dict[int, list[str]] = {}
    for role, number in layer.items():
        columns.setdefault(number, []).append(role)
    tallest = max(len(roles) for roles in columns.values())
    last = max(columns)
    loops = {layer[edge.source] for edge in edges if edge.loop}
    passing = PASSING if loops - {last} else 0
    above, below = ((_most(edges, forward) + passing) * STACK + 40 for forward in (True, False))
    height = HEADER + above + (tallest - 1) * BELOW + NODE_H + below + LEGEND
    middle = HEADER + above + ((tallest - 1) * BELOW + NODE_H) / 2
    places: dict[str, tuple[float, float]] = {}
    x, beside = MARGIN, any(layer[e.source] == layer[e.waiter] == last for e in edges)
    for number, roles in sorted(columns.items()):
        top = middle - ((len(roles) - 1) * BELOW + NODE_H) / 2
        for i, role in enumerate(roles):
            places[role] = (x, top + i * BELOW)
        x += NODE_W + (beside if number == last else 1 + (number in loops)) * APART
    width = max(x + MARGIN, 560.0)
    return _Layout(places, width, height)


def _most(edges: Sequence[_Edge], forward: bool) -> int:
    """Return the most barriers that one pair of roles has in one direction."""
    counts: dict[tuple[str, str], int] = {}
    for edge in edges:
        if edge.forward is forward:
            counts[edge.source, edge.waiter] = counts.get((edge.source, edge.waiter), 0) + 1
    return max(counts.values(), default=1)


def _pair(
    canvas: Canvas, protocol: Protocol, layout: _Layout, left: str, right: str, between: Sequence[_Edge], passing: int
) -> None:
    """Draw all barriers of two roles: data above, room below, and the slots that they go round in the middle.

    `passing`: how many barriers' room to leave between.
    """
    (lx, ly), (rx, ry) = layout.places[left], layout.places[right]
    start, end = (lx + NODE_W, ly + NODE_H / 2), (rx, ry + NODE_H / 2)
    if rx <= lx:
        # Roles in one column: out on the right and back in there.
        start, end = (lx + NODE_W, ly + NODE_H / 2), (rx + NODE_W, ry + NODE_H / 2)
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    for forward in (True, False):
        side = -1 if forward else 1
        for i, edge in enumerate([e for e in between if e.forward is forward]):
            lift = side * (RISE + (passing + i) * STACK)
            near = side * (14 + 10 * i)
            a, b = (start[0], start[1] + near), (end[0], end[1] + near)
            if not forward:
                a, b = b, a
            # The head of the arrow ends at the node.
            b = (b[0] - (8 if b[0] > a[0] else -8), b[1] + side * 4)
            reach = (b[0] - a[0]) * 0.3
            bends = (a[0] + reach, a[1] + lift, b[0] - reach, b[1] + lift)
            _arrow(canvas, edge, a, bends, b)
            # The crown of the curve is at three quarters of the lift.
            crown = middle[1] + near + 0.75 * lift
            _label(canvas, protocol, edge, middle[0], crown + (-22 if forward else 20))
    _slots(canvas, between, middle)


def _loop(canvas: Canvas, protocol: Protocol, place: tuple[float, float], between: Sequence[_Edge]) -> None:
    """Draw all barriers of a role with itself, on its right: each leaves near a corner and comes back further in."""
    right, middle = place[0] + NODE_W, place[1] + NODE_H / 2
    for forward in (True, False):
        side = -1 if forward else 1
        for i, edge in enumerate([e for e in between if e.forward is forward]):
            lift = side * (RISE + i * STACK)
            # Those further out go round those further in, and all leave the slots and their words free.
            start, end = middle + side * min(38 + 4 * i, NODE_H / 2), middle + side * max(28 - 3 * i, 22)
            reach = right + LOOP + 20 * min(i, 3)
            _arrow(canvas, edge, (right, start), (reach, start + lift, reach, end), (right + 15, end))
            # The crown of the curve is at 3/10 of its way: Bernstein's weights of start, both bends and end there.
            crown = 0.343 * start + 0.441 * (start + lift) + 0.216 * end
            _label(canvas, protocol, edge, right + APART / 2, crown + (-22 if forward else 20))
    _slots(canvas, between, (right + APART / 2, middle))


def _arrow(
    canvas: Canvas, edge: _Edge, start: tuple[float, float], bends: Sequence[float], end: tuple[float, float]
) -> None:
    tip = f"{edge.plan.name}: {edge.source} -> {edge.waiter}"
    canvas.curve(start, bends, end, line_of(edge.plan.via), dashed=not edge.forward, tip=tip)


def _label(canvas: Canvas, protocol: Protocol, edge: _Edge, x: float, y: float) -> None:
    plan, spec = edge.plan, protocol.spec
    canvas.text(plan.name, x, y, NAME, anchor="middle", bold=True)
    arrivals = f"{plan.arrivals} arrival" + ("s" if plan.arrivals > 1 else "")
    parts = [f"via {plan.via.value}", arrivals, f"phase {plan.phase}"]
    if spec.cluster.size > 1:
        parts.append(_where(protocol, plan))
    canvas.text(", ".join(parts), x, y + 14, WORDS, fill=INK, anchor="middle")


def _where(protocol: Protocol, plan: BarrierPlan) -> str:
    spec = protocol.spec
    group = plan.targets.named(spec.cluster, spec.pair)
    if group is None:
        return "masks " + " ".join(f"{mask:#b}" for mask in plan.targets.masks)
    if group is Group.LEADER:
        return "at cta 0" if spec.cluster.size == spec.pair else "at leader"
    return "at own" if group is Group.OWN else f"multicast {group.value}"


def _slots(canvas: Canvas, between: Sequence[_Edge], middle: tuple[float, float]) -> None:
    """Draw a cell for each slot: those that all barriers of the pair have in common, or the first one's."""
    slots = between[0].plan.slots
    shown = min(slots, MOST_CELLS)
    x, y = middle[0] - shown * CELL / 2, middle[1] - CELL / 2
    for i in range(shown):
        canvas.rect(x + i * CELL, y, CELL, CELL, FAINT, stroke=INK)
        last = i == shown - 1 and shown < slots
        canvas.text("..." if last else str(i), x + (i + 0.5) * CELL, y + 12.5, WORDS - 1, anchor="middle")
    factors = " x ".join(f.text for f in between[0].plan.barrier.factors)
    words = f"{slots} slot" + ("s" if slots > 1 else "")
    words += "" if factors.isdigit() else f" ({factors})"
    canvas.text(words, middle[0], y + CELL + 12, WORDS - 1, fill=QUIET, anchor="middle")


def _node(canvas: Canvas, protocol: Protocol, program: Program, place: tuple[float, float]) -> None:
    x, y = place
    role = program.role
    canvas.rect(x, y, NODE_W, NODE_H, "#fafafa", stroke=INK, radius=8, line=1.6)
    canvas.text(role.name, x + NODE_W / 2, y + 23, NAME + 1.5, anchor="middle", bold=True)
    kinds = ", ".join(kind.value for kind in role.kinds)
    size = "a warpgroup" if program.threads > 1 else "one thread"
    many = f"{program.instances} instances of {size}" if program.instances > 1 else size
    lines = [kinds, many, _placed(program), _ctas(protocol, program)]
    for i, words in enumerate(lines):
        fit = min(WORDS, (NODE_W - 12) / (len(words) * CHARACTER))
        canvas.text(words, x + NODE_W / 2, y + 41 + i * 15, fit, fill=QUIET, anchor="middle")


def _placed(program: Program) -> str:
    placement = program.role.placement
    low, high = placement.warpgroups
    if placement.warps is None:
        return f"warpgroup {low}" if low == high else f"warpgroups {low}..{high}"
    first, last = placement.warps
    warps = f"warp {first}" if first == last else f"warps {first}..{last}"
    return f"warpgroup {low}, {warps}"


def _ctas(protocol: Protocol, program: Program) -> str:
    if protocol.spec.cluster.size == 1:
        return "program as written" if not program.standard else "standard program"
    return "in the even CTA of each pair" if program.leader_only else "in every CTA"


def _legend(canvas: Canvas, edges: Sequence[_Edge], y: float) -> None:
    x = MARGIN
    for via in Via:
        if any(e.plan.via is via for e in edges):
            canvas.line(x, y, x + 26, y, line_of(via), width=2.6)
            canvas.text(f"via {via.value}", x + 32, y + 4, WORDS)
            x += 32 + 26 + (len(via.value) + 4) * WORDS * 0.6
    for words, dashed in (("data is there (phase 0)", False), ("room is free (phase 1)", True)):
        if any(e.forward is not dashed for e in edges):
            for i in range(3 if dashed else 1):
                canvas.line(x + i * 10, y, x + (i * 10 + 6 if dashed else 26), y, QUIET, width=2)
            canvas.text(words, x + 32, y + 4, WORDS, fill=QUIET)
            x += 32 + 26 + len(words) * WORDS * 0.56
