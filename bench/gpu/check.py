"""Checks kernels on a GPU: many shapes, fresh inputs, poisoned and fenced outputs; then one shape 1,000 times.

    python bench/gpu/check.py [--shapes 64] [--seed N] [--repeats 1000]

Every kernel that takes a shape runs on it, and is compared with the product in float32. Writes check.json and check.md.
Ends with status 1 where a result is wrong or a repeat differs by a bit, and 97 where the GPU hangs: the next run leaves
out the kernel that was running, which is in hung.txt.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from common import Kernel, Watchdog, kernels, options, types, watch, write

from gemmspec.runtime import measure
from gemmspec.runtime.card import card
from gemmspec.runtime.measure import Operands, Shape

# The edges: one element, one tile, one less and one more, one k tile and less, tall, wide, deep.
EDGES: list[Shape] = [
    (1, 8, 8), (1, 8, 4096), (8, 8, 64), (64, 64, 64), (128, 64, 64), (128, 256, 64), (127, 248, 56), (129, 264, 72),
    (256, 256, 64), (255, 512, 128), (257, 520, 136), (1, 8192, 512), (8192, 8, 512), (128, 4096, 4096), (64, 64, 8192),
    (4096, 4096, 8), (300, 520, 200), (1000, 1000, 1000), (4000, 4104, 4072), (3000, 5000, 4096), (4096, 4096, 4096),
    (8192, 8192, 8192),
]  # fmt: skip


def shapes(count: int, seed: int) -> list[Shape]:
    """Return the edges and random shapes, log-uniform up to 8192."""
    chosen = random.Random(seed)

    def size(step: int) -> int:
        return max(step, round(2 ** chosen.uniform(0, 13) / step) * step)

    found = list(EDGES)
    while len(found) < count:
        found.append((size(1), size(8), size(8)))
    return found


def check_all(found: dict[str, Kernel], wanted: list[Shape], watchdog: Watchdog) -> list[dict[str, Any]]:
    """Return a row for each kernel and shape."""
    rows: list[dict[str, Any]] = []
    for number, shape in enumerate(wanted):
        by_types: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in found.values():
            if measure.fits(kernel, shape):
                by_types.setdefault(types(kernel), []).append(kernel)
        for (operand, result), group in by_types.items():
            given = Operands(shape, operand, result)
            for kernel in group:
                watchdog.beat(f"{kernel.name} {shape}")
                checked = measure.check(kernel, shape, given)
                rows.append(
                    {"shape": shape, "kernel": kernel.name, "types": f"{operand} {result}"}
                    | {"error": checked.error, "fault": checked.fault}
                )
                if checked.fault:
                    print(f"WRONG {kernel.name} {shape}: {checked.fault}", flush=True)
        if number % 10 == 9:
            print(f"{number + 1} of {len(wanted)} shapes", flush=True)
    return rows


def main() -> int:
    """Check; return the exit status."""
    parser = options(__doc__ or "")
    parser.add_argument("--shapes", type=int, default=72)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--largest", type=int, default=8192, help="leave out shapes with a size above this")
    parser.add_argument("--repeats", type=int, default=1000)
    asked = parser.parse_args()
    at_hand = card()
    found = kernels(asked.kernels, asked.only)
    watchdog = watch(asked.patience)
    torch_seed = measure.seed_anew()
    start = time.monotonic()
    wanted = [shape for shape in shapes(asked.shapes, asked.seed) if max(shape) <= asked.largest]
    rows = check_all(found, wanted, watchdog)
    repeats: dict[str, int] = {}
    if asked.repeats:
        for kernel in found.values():
            usual = (min(n, asked.largest // 8 * 8) for n in (1000, 1032, 1000))
            own = [size or other for size, other in zip(kernel.manifest.sizes.values(), usual, strict=True)]
            watchdog.beat(f"{kernel.name}, repeats")
            repeats[kernel.name] = measure.repeats(kernel, (own[0], own[1], own[2]), asked.repeats, watchdog.beat)
    watchdog.stop()
    wrong = [row for row in rows if row["fault"]]
    table = [
        f"# Right or wrong: {at_hand['device']}, driver {at_hand.get('driver')}, torch {at_hand['torch']}",
        "",
        f"{len(rows)} runs: {len(found)} kernels, {len({tuple(r['shape']) for r in rows})} shapes (seed {asked.seed}, "
        f"inputs {torch_seed}), {time.monotonic() - start:.0f} s. {len(wrong)} wrong.",
        "",
        f"| kernel | types of A, B and D | shapes | wrong | largest error | of {asked.repeats} repeats, differ |",
        "|---|---|---|---|---|---|",
    ]
    for name, kernel in found.items():
        mine = [row for row in rows if row["kernel"] == name]
        worst = max((row["error"] for row in mine), default=0.0)
        faults = sum(bool(row["fault"]) for row in mine)
        operand, result = types(kernel)
        table.append(
            f"| {name} | {operand} {result} | {len(mine)} | {faults} | {worst:.1e} | {repeats.get(name, '-')} |"
        )
    table += ["", *(f"- WRONG: {row['kernel']} {row['shape']}: {row['fault']}" for row in wrong[:40])]
    data = {"card": at_hand, "seed": asked.seed, "torch_seed": torch_seed, "rows": rows, "repeats": repeats}
    write("check", data, table)
    return 1 if wrong or any(repeats.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
