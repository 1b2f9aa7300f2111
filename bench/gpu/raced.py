"""Runs kernels that lint rejects for a race, again and again: in which share of the runs is the result wrong?

    python bench/gpu/build_faulty.py         # before, where TVM and nvcc are
    python bench/gpu/raced.py [--repeats 200]

Launches only kernels that cannot hang, and debug builds, which stop. Writes raced.json and raced.md. Ends with status 1
where fewer than three kernels gave a wrong result.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from common import ROOT, Kernel, Watchdog, options, watch, write

from gemmspec.runtime import HangError, load, measure
from gemmspec.runtime.card import card

WANTED = 3


def tried(name: str, kernel: Kernel, repeats: int, watchdog: Watchdog) -> dict[str, Any]:
    """Return how often a kernel was wrong, on the same inputs."""
    m, n, k = (size or 4096 for size in kernel.manifest.sizes.values())
    given = measure.operands_for(kernel, (m, n, k))
    errors: list[float] = []
    stopped, first = 0, ""
    for number in range(repeats):
        watchdog.beat(f"{name}, run {number}")
        try:
            checked = measure.check(kernel, (m, n, k), given)
        except HangError as error:
            stopped, first = stopped + 1, first or str(error)
            continue
        if checked.fault:
            errors.append(checked.error)
            first = first or checked.fault
    return {
        "kernel": name, "shape": [m, n, k], "repeats": repeats, "wrong": len(errors), "stopped": stopped,
        "first": first, "errors": [min(errors), max(errors)] if errors else [],
    }  # fmt: skip


def main() -> int:
    """Run; return the exit status."""
    parser = options(__doc__ or "")
    parser.set_defaults(kernels=ROOT / "build" / "gpu" / "faulty")
    parser.add_argument("--repeats", type=int, default=200)
    asked = parser.parse_args()
    told = {p.name.removesuffix(".lint.json"): json.loads(p.read_text()) for p in asked.kernels.glob("*.lint.json")}
    found = {
        name: load(asked.kernels / name) for name in sorted(told) if not told[name]["cycle"] and asked.only in name
    }
    if not found:
        sys.exit(f"no raced kernel in {asked.kernels}: run bench/gpu/build_faulty.py, and carry that folder")
    at_hand = card()
    watchdog = watch(asked.patience)
    rows: list[dict[str, Any]] = []
    for name, kernel in found.items():
        rows.append({"codes": told[name]["codes"], **tried(name, kernel, asked.repeats, watchdog)})
        row = rows[-1]
        print(f"{name} ({', '.join(row['codes'])}): {row['wrong']} of {row['repeats']} wrong", flush=True)
    watchdog.stop()
    table = [
        f"# Races that show: {at_hand['device']}, driver {at_hand.get('driver')}",
        "",
        "| spec | lint | M x N x K | runs | wrong | stopped | the first one |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        shape, first = " x ".join(map(str, r["shape"])), r["first"].split("\n")[0]
        counts = f"{r['repeats']} | {r['wrong']} | {r['stopped']}"
        table.append(f"| {r['kernel']} | {', '.join(r['codes'])} | {shape} | {counts} | {first} |")
    write("raced", {"card": at_hand, "rows": rows}, table)
    return 0 if sum(row["wrong"] > 0 for row in rows) >= min(WANTED, len(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
