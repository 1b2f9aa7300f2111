"""Whole-process times of `gemmspec simulate`: on numbers, and of the timeline at 4096^3.

    python bench/simulate.py [--runs N] [--write]

`--write` puts the table into docs/performance.md. Ends with status 1 where a run is not right.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from cli import COMMAND, once
from report import markdown, put

SPECS = ("v7", "v8", "v9")
CASES = (
    ("M=512 N=512 K=512", ()),
    ("M=512 N=512 K=64", ()),
    ("M=2048 N=1024 K=192", ("--ctas", "4")),
    ("M=300 N=328 K=200", ()),
)
"""K of one tile is 64. With 4 CTAs each cluster takes several tiles of the third. The last is ragged in every way."""


def arguments(spec: str, sizes: str) -> list[str]:
    given = [word for size in sizes.split() for word in ("--size", size)]
    return [COMMAND, "simulate", f"specs/{spec}.gemmspec", *given]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    wrong = 0
    with tempfile.TemporaryDirectory() as out:
        cases = [(f"`{s} {n}{' '.join(('', *more))}`", [*arguments(s, n), *more]) for s in SPECS for n, more in CASES]
        timeline = ["--timeline", str(Path(out) / "v9.svg")]
        cases.append(("`v9 M=4096 N=4096 K=4096 --timeline`", [*arguments("v9", "M=4096 N=4096 K=4096"), *timeline]))
        for name, command in cases:
            results = [once(command) for _ in range(options.runs)]
            wrong += any(status for _, _, status in results)
            times = sorted(t for t, _, _ in results)
            memory = max(m for _, m, _ in results)
            rows.append(
                (name, f"{statistics.median(times):.2f}", f"{times[0]:.2f} .. {times[-1]:.2f}", f"{memory:.0f}")
            )
            print("  ".join(rows[-1]), flush=True)
    if options.write:
        put("simulate", markdown(("`gemmspec simulate`", "median, s", "least .. most, s", "peak MiB"), rows))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
