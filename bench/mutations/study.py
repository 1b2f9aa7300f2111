"""The mutation study: every mutant of every subject, judged by the engine and by the oracle, and simulated.

    python bench/mutations/study.py [--simulate] [--sweep] [--out FILE] [--jobs N] [--sample FRACTION] [--subject NAME]

Writes a Markdown report, and every judgement beside it (`.tsv`). The engine judges the mutant of the full spec, for
every trip count at once; the oracle judges the same mutant of the scaled-down spec, interleaving by interleaving, for
the trip counts of `trips`. The engine judges the scaled-down one too; where it tells the two apart, the oracle judges
the full one. `--simulate` also runs the scaled-down mutant on numbers, under many schedules. `--sweep` also looks for
false alarms on the unchanged subjects. Status 1: engine and oracle disagree, or simulation shows a fault where the
engine finds none.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests"), str(ROOT)]

from operators import mutants  # noqa: E402
from oracle.explore import Verdict, explore, random_walks  # noqa: E402
from oracle.fences import missing_fences  # noqa: E402
from rows import AGREED, Row, operator_of, report  # noqa: E402
from schedules import simulated  # noqa: E402
from subjects import Subject, protocol_of, protocol_or_none, subjects  # noqa: E402
from texts import text_mutants  # noqa: E402

from gemmspec.protocol import Protocol, derive  # noqa: E402
from gemmspec.protocol.memory import with_stages  # noqa: E402
from gemmspec.report.spec import spec_text  # noqa: E402

STATES = 20_000
WALKS = 30
CHUNK = 12
"""Mutants of one task."""
COUNTS = ("arrivals", "threads", "text arrivals")
"""Operators whose mutants may need many tiles to show."""


Task = tuple[str, tuple[str, ...], bool]
"""A subject, some of its mutants, and whether to simulate them."""


def engine(protocol: Protocol) -> str:
    """Return what gemmspec's proof says: the only place that knows how to ask it."""
    from gemmspec.proof.judge import judge

    try:
        verdict = judge(protocol)
    except Exception:
        return "crash"
    if verdict.ok:
        return "clean"
    return "caught: " + ", ".join(sorted({fault.kind.value for fault in verdict.faults}))


def trips(protocol: Protocol) -> Iterator[tuple[int, int]]:
    """Yield the (K, tiles) that the oracle explores: past two wraps of the deepest ring of stages and accumulators."""
    stages, accumulators = protocol.spec.stages.value, protocol.spec.accumulators.value
    deepest = max([stages, *(c.depth for p in protocol.programs for c in p.cursors)])
    yield from ((1, 0), (1, 1), (1, 2), (2, 2), (stages + 1, 2), (2 * deepest + 1, 3), (2, 2 * accumulators + 3))


def oracle(protocol: Protocol) -> str:
    """Return `clean`, `unknown`, or what the oracle finds and where."""
    missing = missing_fences(protocol)
    if missing:
        return f"fences: {missing[0]}"
    complete = True
    for k, tiles in trips(protocol):
        verdict: Verdict = explore(protocol, k, tiles, limit=STATES, first=True)
        if not verdict.bad and not verdict.complete:
            complete = False
            verdict = random_walks(protocol, k, tiles, WALKS, first=True)
        if verdict.bad:
            kinds = ", ".join(sorted(k for k in verdict.kinds if k != "unbalanced"))
            return f"{kinds} (K {k}, {tiles} tiles)"
    return "clean" if complete else "unknown"


def timed(judge: Callable[[Protocol], str], protocol: Protocol) -> tuple[str, float]:
    start = time.perf_counter()
    said = judge(protocol)
    return said, time.perf_counter() - start


def variants(text: str, wanted: set[str] | None = None) -> dict[str, Protocol]:
    """Return the mutants of a text by name: of its Protocol, and of the text itself with all values filled in."""
    protocol = protocol_of(text)
    found = {n: m for n, m in mutants(protocol) if wanted is None or n in wanted}
    for name, changed in text_mutants(spec_text(protocol)):
        mutant = protocol_or_none(changed) if wanted is None or name in wanted else None
        if mutant is not None:
            found[name] = mutant
    return found


def judge_chunk(task: Task) -> list[Row]:
    """Judge some mutants of one subject."""
    name, names, simulate = task
    subject = next(s for s in subjects() if s.name == name)
    wanted = set(names)
    full, small = (variants(text, wanted) for text in (subject.full, subject.small))
    rows: list[Row] = []
    for n in names:
        reduced = small.get(n, full[n])
        said, seconds = timed(engine, full[n])
        said_small = engine(reduced) if reduced is not full[n] else said
        found, spent = timed(oracle, reduced)
        differs = (said == "clean") != (said_small == "clean")
        in_full = oracle(full[n]) if differs else ""
        miscounted = operator_of(n) in COUNTS
        shown, ran = timed(lambda p, m=miscounted: simulated(p, m), reduced) if simulate else ("", 0.0)
        rows.append(Row(name, n, said, said_small, found, in_full, shown, seconds, spent, ran))
    return rows


def tasks(chosen: Iterable[Subject], sample: float, simulate: bool) -> Iterator[Task]:
    rng = random.Random(0)
    for subject in chosen:
        names = [n for n in variants(subject.full) if rng.random() < sample]
        for i in range(0, len(names), CHUNK):
            yield subject.name, tuple(names[i : i + CHUNK]), simulate


def sweep_one(name: str) -> tuple[str, int, list[str]]:
    """Judge one unchanged subject for 1 to 4 stages, K and tiles; return combinations and alarms."""
    subject = next(s for s in subjects() if s.name == name)
    spec, combinations, alarms = protocol_of(subject.small).spec, 0, list[str]()
    for stages in range(2, 5):
        protocol = derive(with_stages(spec, stages))
        said = engine(protocol)
        if said != "clean":
            alarms.append(f"{name}, {stages} stages: engine says {said}")
        for k in (1, 2, 3, 4, 2 * stages + 1):
            for tiles in (0, 1, 2, 3):
                combinations += 1
                verdict = explore(protocol, k, tiles, limit=STATES)
                if verdict.bad or not verdict.complete:
                    alarms.append(f"{name}, {stages} stages, K {k}, {tiles} tiles: oracle says {verdict}")
    return name, combinations, alarms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sample", type=float, default=1.0, help="fraction of the mutants")
    parser.add_argument("--subject", help="only subjects whose name contains this")
    parser.add_argument("--simulate", action="store_true", help="also run every mutant on numbers")
    parser.add_argument("--sweep", action="store_true", help="also judge the unchanged subjects over many sizes")
    args = parser.parse_args()
    chosen = [s for s in subjects() if not args.subject or args.subject in s.name]
    rows: list[Row] = []
    start = time.perf_counter()
    with ProcessPoolExecutor(args.jobs) as pool, args.out.with_suffix(".tsv").open("w") as log:
        for done in pool.map(judge_chunk, list(tasks(chosen, args.sample, args.simulate))):
            rows += done
            log.writelines("\t".join(map(str, astuple(r))) + "\n" for r in done)
            if len(rows) // 250 > (len(rows) - len(done)) // 250:
                print(f"{len(rows)} mutants, {time.perf_counter() - start:.0f} s", file=sys.stderr)
        lines = [*report(rows, chosen, STATES)]
        if args.sweep:
            swept = list(pool.map(sweep_one, [s.name for s in chosen]))
            alarms = [a for _, _, found in swept for a in found]
            total = sum(n for _, n, _ in swept)
            lines += [
                "",
                "## False alarms",
                "",
                f"{total} combinations of subject, stages, K and tiles: {len(alarms)} alarms.",
            ]
            lines += ["", *(f"- {a}" for a in alarms)]
    args.out.write_text("\n".join(lines).rstrip() + "\n")
    return int(any(r.refuted or r.verdict not in (*AGREED, "unknown") for r in rows))


if __name__ == "__main__":
    sys.exit(main())
