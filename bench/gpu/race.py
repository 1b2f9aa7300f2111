"""Times kernels beside cuBLAS on the shapes that the project answers for, the best kernel for each shape.

    python bench/gpu/race.py [--shapes 4096,128x4096x4096] [--rounds 41] [--finalists 3]

For each shape all kernels of the type are checked, then timed briefly; the fastest go on to the rounds that count.
Writes race.json and race.md. Ends with status 1 where a result is wrong, and 97 where the GPU hangs.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from common import Kernel, Watchdog, kernels, options, pairs, types, watch, write

from gemmspec.runtime import measure
from gemmspec.runtime.card import card, state
from gemmspec.runtime.measure import CUBLAS, Operands, Shape, Timing

SHAPES = (
    "1024,1536x1536x4096,2048,3000x5000x4096,4096,4000x4104x4072,4096x11008x4096,5120x13824x5120,512x8192x8192,8192,"
    "8192x28672x4096,128x4096x4096"
)
GOAL_MEAN, GOAL_LEAST = 1.05, 0.97
_BRIEF = 5


def race(found: dict[str, Kernel], shape: Shape, asked: Any, watchdog: Watchdog) -> dict[str, Any]:
    """Return what came of one shape."""
    operand, result = types(next(iter(found.values())))
    given = Operands(shape, operand, result)
    right: dict[str, Kernel] = {}
    faults: dict[str, str] = {}
    errors: dict[str, float] = {}
    for name, kernel in found.items():
        if measure.fits(kernel, shape):
            watchdog.beat(f"{name} {shape}, check")
            checked = measure.check(kernel, shape, given)
            errors[name] = checked.error
            if checked.ok:
                right[name] = kernel
            else:
                faults[name] = checked.fault
                print(f"WRONG {name} {shape}: {checked.fault}", flush=True)
    del given
    brief = measure.race(right, shape, _BRIEF, watchdog.beat)
    order = sorted((name for name in brief if name != CUBLAS), key=lambda name: brief[name].ms)
    finalists = {name: right[name] for name in order[: asked.finalists]}
    final = measure.race(finalists, shape, asked.rounds, watchdog.beat)
    return {
        "shape": shape,
        "state": state(),
        "faults": faults,
        "errors": errors,
        "brief": {name: _row(timing) for name, timing in brief.items()},
        "final": {name: _row(timing) for name, timing in final.items()},
        "best": min(finalists, key=lambda name: final[name].ms) if finalists else None,
    }


def _row(timing: Timing) -> dict[str, Any]:
    low, high = timing.spread
    return {"ms": timing.ms, "tflops": timing.tflops, "ratio": timing.ratio, "low": low, "high": high}


def line(row: dict[str, Any]) -> str:
    """Return one shape as a row of the table."""
    m, n, k = row["shape"]
    if row["best"] is None:
        return f"| {m} x {n} x {k} | none is right | | | | | |"
    best, cublas = row["final"][row["best"]], row["final"][CUBLAS]
    second = next(
        (f"{name} {v['ratio']:.3f}" for name, v in row["final"].items() if name not in (CUBLAS, row["best"])), ""
    )
    return (
        f"| {m} x {n} x {k} | {row['best']} | {best['ms']:.4f} | {best['tflops']:.0f} | {cublas['tflops']:.0f} | "
        f"{best['ratio']:.3f} ({best['low']:.3f}..{best['high']:.3f}) | {second} |"
    )


def main() -> int:
    """Race; return the exit status."""
    parser = options(__doc__ or "")
    parser.add_argument("--shapes", type=pairs, default=SHAPES)
    parser.add_argument("--type", default="f16", choices=["f16", "bf16"])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--finalists", type=int, default=3)
    asked = parser.parse_args()
    at_hand = card()
    every = kernels(asked.kernels, asked.only, asked.overlap)
    found = {name: kernel for name, kernel in every.items() if types(kernel) == (asked.type, asked.type)}
    watchdog = watch(asked.patience)
    measure.seed_anew()
    table = [
        f"# Beside cuBLAS, {asked.type}: {at_hand['device']}, driver {at_hand.get('driver')}, torch {at_hand['torch']}",
        "",
        f"SM clock up to {at_hand.get('max_sm_mhz')} MHz, {at_hand.get('power_limit_w')} W. Medians of {asked.rounds} "
        "rounds of CUDA graphs, candidates in turn, inputs rotated; the ratio is cuBLAS's time over the kernel's, with "
        "quartiles.",
        "",
        "| M x N x K | kernel | ms | TFLOP/s | cuBLAS | ratio | next |",
        "|---|---|---|---|---|---|---|",
    ]
    rows: list[dict[str, Any]] = []
    for shape in asked.shapes:
        rows.append(race(found, shape, asked, watchdog))
        table.append(line(rows[-1]))
        print(table[-1], flush=True)
        # Written after each shape: a run that is cut short keeps what it has.
        write_quietly(at_hand, rows, table)
    watchdog.stop()
    ratios = {tuple(r["shape"]): r["final"][r["best"]]["ratio"] for r in rows if r["best"]}
    if ratios:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        short = [f"{' x '.join(map(str, s))} ({r:.3f})" for s, r in ratios.items() if r < GOAL_LEAST]
        table += [
            "",
            f"Geometric mean {mean:.3f} (goal {GOAL_MEAN}). Below {GOAL_LEAST}: {', '.join(short) or 'none'}.",
        ]
    write("race" if asked.type == "f16" else f"race_{asked.type}", {"card": at_hand, "rows": rows}, table)
    return 1 if any(row["faults"] for row in rows) else 0


def write_quietly(at_hand: dict[str, Any], rows: list[dict[str, Any]], table: list[str]) -> None:
    """Write what there is so far."""
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        write("race_so_far", {"card": at_hand, "rows": rows}, table)


if __name__ == "__main__":
    sys.exit(main())
