"""What is known of one mutant, and the pages made of all of them. Plain data in, Markdown out."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from schedules import CRASH, LONG, RIGHT, SEEDS
from subjects import Subject


@dataclass(frozen=True)
class Row:
    """One mutant. `small`: of the scaled-down spec. `oracle_full`: asked only where the engine tells the two apart.

    `simulated`: what simulation of the scaled-down one shows; empty if it was not asked.
    """

    subject: str
    name: str
    engine: str
    engine_small: str
    oracle_small: str
    oracle_full: str
    simulated: str
    engine_seconds: float
    oracle_seconds: float
    simulated_seconds: float

    @property
    def operator(self) -> str:
        return operator_of(self.name)

    @property
    def verdict(self) -> str:
        """Return the row's class in the table: the first pair of judgements that differ decides."""
        pairs = [(self.engine_small, self.oracle_small)]
        pairs.append((self.engine, self.oracle_full or self.oracle_small))
        for said, found in pairs:
            if said == "crash":
                return "engine crashed"
            if found != "unknown" and (said == "clean") != (found == "clean"):
                return "only the engine" if found == "clean" else "only the oracle"
        if "unknown" in (found for _, found in pairs):
            return "unknown"
        return "harmless by both" if self.engine == "clean" else "caught by both"

    @property
    def shown(self) -> str:
        """How simulation shows the fault: its kind; `right` where it shows none."""
        return self.simulated.partition(" (")[0]

    @property
    def refuted(self) -> bool:
        """Whether simulation shows a fault where the engine finds none, or can't run."""
        return self.shown == CRASH or (self.engine_small == "clean" and self.shown not in ("", RIGHT))


AGREED = ("caught by both", "harmless by both")
CLASSES = (*AGREED, "unknown", "only the oracle", "only the engine", "engine crashed")
STOPPED = ("over-arrival", "bytes", "uninitialised", "exited", "range", "impossible")
"""What stops a simulated cluster, but for a hang."""


def operator_of(name: str) -> str:
    """Return the operator in a mutant's name."""
    words = name.replace(":", "").split()
    return " ".join(words[: 1 + (words[0] == "text")])


def report(rows: list[Row], chosen: Iterable[Subject], states: int) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Mutation study"
    yield ""
    yield (
        f"`python bench/mutations/study.py --simulate --sweep`: {len({r.subject for r in rows})} correct specs, every "
        "applicable mutation of their protocols and texts.\nEach mutant is judged by the proof (full spec, every trip "
        "count at once) and by the oracle in `tests/oracle`, which shares no code with it\n(the same mutant of the "
        f"scaled-down spec, every interleaving, up to {states} states for each trip count). Times are medians."
    )
    yield ""
    yield "| subject | mutants | " + " | ".join(CLASSES) + " | engine ms | oracle ms | oracle runs on |"
    yield "|---|" + "--:|" * (len(CLASSES) + 3) + "---|"
    for subject in (*chosen, None):
        mine = [r for r in rows if subject is None or r.subject == subject.name]
        if mine:
            yield _line(subject.name if subject else "all", mine, subject.scaled if subject else "")
    yield ""
    yield "| operator | mutants | " + " | ".join(CLASSES) + " |"
    yield "|---|" + "--:|" * (len(CLASSES) + 1)
    for operator in sorted({r.operator for r in rows}):
        mine = [r for r in rows if r.operator == operator]
        count = Counter(r.verdict for r in mine)
        yield f"| {operator} | {len(mine)} | " + " | ".join(str(count[c]) for c in CLASSES) + " |"
    for title in CLASSES[2:]:
        mine = [r for r in rows if r.verdict == title]
        if mine:
            yield ""
            yield f"## {title[0].upper()}{title[1:]}"
            yield ""
            yield from map(_item, mine)
    asked = [r for r in rows if r.simulated]
    if asked:
        yield from _simulation(asked)


def _simulation(rows: list[Row]) -> Iterator[str]:
    clean = [r for r in rows if r.engine_small == "clean"]
    refuted = [r for r in rows if r.refuted]
    yield ""
    yield "## Simulation"
    yield ""
    yield (
        "Each mutant of the scaled-down specs also runs on numbers (`gemmspec simulate`), until a schedule shows a "
        f"fault: seeds 0 to {SEEDS - 1}, in turn at\nK of stages + 1 tiles and 3 output tiles on one cluster; K of one "
        "tile and 2 * accumulators + 3; K of 2 * deepest ring + 1 and 2 side by side;\nK of one tile and one output "
        f"tile for two clusters, so that one has none. Where a count was changed, {LONG} tiles with K of one come last."
    )
    yield ""
    yield (
        f"Of {len(clean)} mutants that the proof calls clean, {sum(r.refuted for r in clean)} show a fault. "
        f"Of {len(rows) - len(clean)} that it rejects:"
    )
    yield ""
    yield "| operator | rejected | hang | NaN or a hazard | wrong numbers | stopped | right | shown |"
    yield "|---|" + "--:|" * 7
    rejected = [r for r in rows if r.engine_small != "clean"]
    for operator in (*sorted({r.operator for r in rejected}), None):
        mine = [r for r in rejected if operator is None or r.operator == operator]
        count = Counter(r.shown for r in mine)
        stopped = sum(count[kind] for kind in STOPPED)
        cells = (count["hang"], count["hazard"], count["wrong numbers"], stopped, count[RIGHT])
        share = f"{100 * (1 - count[RIGHT] / len(mine)):.1f} %"
        yield f"| {operator or 'all'} | {len(mine)} | " + " | ".join(map(str, cells)) + f" | {share} |"
    yield ""
    first = sum(r.simulated.endswith("seed 0)") for r in rejected)
    yield (
        f"Seed 0 alone shows {100 * first / max(1, len(rejected)):.1f} %. "
        f"Median time of a mutant: {1000 * statistics.median(r.simulated_seconds for r in rejected):.0f} ms."
    )
    if refuted:
        yield ""
        yield from (f"- {r.subject}: {r.name}. Engine: {r.engine_small}. Simulation: {r.simulated}." for r in refuted)
    hidden = Counter(_changed(r.name) for r in rejected if r.shown == RIGHT)
    if hidden:
        yield ""
        yield "Rejected, and right in every schedule, by what was changed:"
        yield ""
        yield from (f"- {what}: {n}" for what, n in hidden.most_common())


def _changed(name: str) -> str:
    """Return the operator and the statement, without its place."""
    return name.partition(" at ")[0].partition(" in ")[0]


def _item(r: Row) -> str:
    scaled = "" if r.engine_small == r.engine else f", scaled down: {r.engine_small}"
    full = f", in full: {r.oracle_full}" if r.oracle_full else ""
    return f"- {r.subject}: {r.name}. Engine: {r.engine}{scaled}. Oracle: {r.oracle_small}{full}."


def _line(name: str, rows: list[Row], scaled: str) -> str:
    count = Counter(r.verdict for r in rows)
    times = (statistics.median(r.engine_seconds for r in rows), statistics.median(r.oracle_seconds for r in rows))
    numbers = " | ".join(str(count[c]) for c in CLASSES)
    return f"| {name} | {len(rows)} | {numbers} | " + " | ".join(f"{1000 * t:.1f}" for t in times) + f" | {scaled} |"
