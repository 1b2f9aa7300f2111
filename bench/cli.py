"""Whole-process times and peak memory of the commands: medians over repeated runs.

    python bench/cli.py [--runs N] [--write]

`--write` puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import markdown, put

ROOT = Path(__file__).parent.parent
COMMAND = str(Path(sys.executable).parent / "gemmspec")


def once(arguments: list[str]) -> tuple[float, float, int]:
    """Run a command; return its wall time in seconds, its peak resident memory in MiB, and its status (0 or 1)."""
    start = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, process.returncode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        cases = [
            ("`lint specs/v9.gemmspec`", [COMMAND, "lint", "specs/v9.gemmspec"], options.runs),
            ("`lint specs` (all)", [COMMAND, "lint", "specs"], options.runs),
            ("`show specs/v9.gemmspec`", [COMMAND, "show", "specs/v9.gemmspec"], options.runs),
            ("`fmt --check specs/v9.gemmspec`", [COMMAND, "fmt", "--check", "specs/v9.gemmspec"], options.runs),
            (
                "`compile specs/v9.gemmspec --emit tirx,cuda`",
                [COMMAND, "compile", "specs/v9.gemmspec", "--emit", "tirx,cuda", "--out", out],
                max(options.runs // 2, 3),
            ),
            (
                "`compile specs/v9.gemmspec` (with nvcc)",
                [COMMAND, "compile", "specs/v9.gemmspec", "--out", out],
                max(options.runs // 4, 3),
            ),
            ("`python -c pass`, to compare", [sys.executable, "-c", "pass"], options.runs),
        ]
        rows: list[tuple[str, ...]] = []
        for name, arguments, runs in cases:
            once(arguments)
            results = [once(arguments) for _ in range(runs)]
            times = sorted(t for t, _, _ in results)
            median = statistics.median(times)
            memory = max(m for _, m, _ in results)
            rows.append((name, f"{median:.3f}", f"{times[0]:.3f} .. {times[-1]:.3f}", f"{memory:.0f}", str(runs)))
            print("  ".join(rows[-1]), flush=True)
    if options.write:
        put("cli", markdown(("command", "median, s", "least .. most, s", "peak MiB", "runs"), rows))


if __name__ == "__main__":
    main()
