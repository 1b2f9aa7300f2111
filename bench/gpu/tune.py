"""Tunes the kernels of build/gpu on the GPUs here, is killed half-way, goes on, and then asks the selection.

    python bench/gpu/tune.py [--gpus all] [--rounds 11] [--shapes 128x4096x4096,1024] [--type f16]

Writes tune.sqlite, tune.json (its export) and tune.md into $OUT, or into build/results. Ends with status 1 where a
result is wrong, what was kept is lost or measured again, or the selection does not pick what was measured as the best.
"""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import host
from common import OUT, Kernel, kernels, options, pairs, types
from race import SHAPES

from gemmspec.runtime import Card, TableProblem, measure, select
from gemmspec.runtime.card import count
from gemmspec.runtime.choice import Results, choose
from gemmspec.runtime.gpu import Gpu
from gemmspec.runtime.summary import as_text
from gemmspec.runtime.table import Result, Setting, Table, as_json, read_table
from gemmspec.runtime.tuning import Candidate, tune

DB = OUT / "tune.sqlite"
Key = tuple[Setting, str, tuple[int, int, int]]


def wanted(asked: argparse.Namespace) -> dict[str, Kernel]:
    """Return the kernels that are tuned."""
    found = kernels(asked.kernels, asked.only)
    return {name: kernel for name, kernel in found.items() if types(kernel) == (asked.type, asked.type)}


def run(asked: argparse.Namespace) -> int:
    """Tune, in this process."""
    gpus = range(count()) if asked.gpus == "all" else [int(number) for number in asked.gpus.split(",")]
    table = Table(DB)
    given = [Candidate(kernel, str((asked.kernels / name).absolute())) for name, kernel in wanted(asked).items()]
    start = time.monotonic()
    tuned = tune(given, asked.shapes, table, list(gpus), Gpu, rounds=asked.rounds, patience=asked.patience)
    took = time.monotonic() - start
    print(f"{tuned.measured} measured, {tuned.known} known, {took:.1f} s on {len(gpus)} GPUs", flush=True)
    for note in tuned.notes:
        print(f"NOTE: {note}", flush=True)
    return 1 if tuned.notes else 0


def kept() -> dict[Key, Result]:
    """Return what is in the table."""
    try:
        return {(s, r.content, r.shape): r for s, r in read_table(DB)} if DB.is_file() else {}
    except TableProblem:  # it is being made
        return {}


def killed_half_way(command: list[str], total: int) -> tuple[dict[Key, Result], float]:
    """Start to tune, and kill it when half of the results are there; return those, and the seconds that it took."""
    start = time.monotonic()
    process = subprocess.Popen(command)
    while process.poll() is None and len(kept()) < total // 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return kept(), time.monotonic() - start


def rows_of(shapes: list[tuple[int, int, int]], found: dict[str, Kernel], card: Card) -> tuple[list[str], list[str]]:
    """Return a row for each shape: what was measured, and how far off the model is without that; and what is wrong."""
    every = read_table(DB)
    mine = list(found.values())
    selection = select(mine, DB, card=card)
    rows: list[str] = []
    wrong: list[str] = []
    losses: dict[str, list[float]] = {"model": [], "nearby": []}
    for shape in shapes:
        times = {r.kernel: r.ratio for _, r in every if r.shape == shape and r.ratio and r.kernel in found}
        if not times:
            continue
        best = max(times, key=lambda name: times[name])
        kind = next(iter(found.values())).manifest.tensors[0].dtype
        picked = selection.choose(*shape, operand=kind)
        if times[picked.kernel.name] < times[best]:
            wrong.append(f"{shape}: picked {picked.kernel.name}, and {best} is the best")
        fault = launch(selection, picked.kernel, shape)
        if fault:
            wrong.append(f"{shape}: {picked.kernel.name}: {fault}")
        cells: list[str] = []
        for what, rest in (("model", []), ("nearby", [(s, r) for s, r in every if r.shape != shape])):
            other = choose(mine, Results(rest), shape, picked.kernel.manifest.types, card).kernel.name
            loss = times[best] / times[other] - 1 if other in times else math.nan
            losses[what].append(loss)
            cells.append(f"{other} ({loss:.1%})")
        m, n, k = shape
        rows.append(f"| {m} x {n} x {k} | {picked.kernel.name} | {times[best]:.3f} | {' | '.join(cells)} |")
    for what, of in losses.items():
        if of:
            rows.append(
                f"\n{what}: {sum(of) / len(of):.1%} slower than the best in the mean, {max(of):.1%} at the worst"
            )
    return rows, wrong


def launch(selection: Any, kernel: Kernel, shape: tuple[int, int, int]) -> str:
    """Call the selection; return what is wrong with its result."""
    given = measure.operands_for(kernel, shape)
    given.poison()
    if selection.kernel_for(given.A, given.B, given.D) is not kernel:
        return "the call takes another kernel"
    got = selection(given.A, given.B, given.D).float()
    error = float((got - given.reference).norm() / given.reference.norm())
    return "" if error <= measure.MOST_ERROR[kernel.manifest.tensors[2].dtype] else f"relative error {error:.2e}"


def host_cost(found: dict[str, Kernel], patience: float) -> str:
    """Return what a call costs the host, direct and through the selection."""
    selection = select(list(found.values()), DB)
    kernel = selection.choose(*host.SHAPE, operand=next(iter(found.values())).manifest.tensors[0].dtype).kernel
    given = measure.operands_for(kernel, host.SHAPE)
    direct, selected = (
        min(host.cost(lambda call=call: call(given.A, given.B, given.D), lambda doing: None) for _ in range(3))
        for call in (kernel, selection)
    )
    return f"host cost of a call: {direct:.2f} us direct, {selected:.2f} us through the selection"


def main() -> int:
    """Tune, be killed, go on, ask; return the exit status."""
    parser = options(__doc__ or "")
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--shapes", type=pairs, default=SHAPES)
    parser.add_argument("--type", default="f16", choices=["f16", "bf16"])
    parser.add_argument("--run", action="store_true", help="only tune: what this script starts, and kills")
    asked = parser.parse_args()
    if asked.run:
        return run(asked)
    start = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("tune.sqlite*"):
        old.unlink()
    found = wanted(asked)
    command = [sys.executable, *sys.orig_argv[1:], "--run"]
    total = sum(measure.fits(kernel, shape) for kernel in found.values() for shape in asked.shapes)
    before, first = killed_half_way(command, total)
    print(f"killed after {first:.1f} s with {len(before)} of {total} results", flush=True)
    status = subprocess.run(command, check=False).returncode
    after = kept()
    wrong = [f"{r.kernel} at {r.shape}: {r.fault}" for r in after.values() if r.fault]
    changed = [key for key, result in before.items() if after.get(key) != result]
    if changed or len(after) < total:
        wrong.append(
            f"{len(changed)} of {len(before)} results that were kept have changed; {len(after)} of {total} there"
        )
    (setting,) = {setting for setting, _ in read_table(DB)}
    gpu = Gpu(0)
    card = Card(setting.device, setting.sms, gpu.capability)
    rows, more = rows_of(asked.shapes, found, card)
    wrong += more
    (OUT / "tune.json").write_text(as_json(read_table(DB)), encoding="utf-8")
    table = [
        "# Tuned, killed and taken up again",
        "",
        "```",
        as_text({setting: [r for _, r in read_table(DB)]}).rstrip(),
        "```",
        "",
        f"killed with {len(before)} of {total} results; {len(after) - len(before)} measured after that, none twice",
        host_cost(found, asked.patience),
        "",
        "| M x N x K | picked | to cuBLAS | the model alone picks | with the other shapes measured |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *(f"- WRONG: {line}" for line in wrong),
        f"{time.monotonic() - start:.0f} s in all",
    ]
    Path(OUT / "tune.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table), flush=True)
    return 1 if wrong or status else 0


if __name__ == "__main__":
    sys.exit(main())
