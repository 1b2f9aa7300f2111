"""Reads hardware counters of kernels and of cuBLAS, one launch each, with Nsight Compute (`ncu`).

    python bench/gpu/counters.py --only hopper_n64_dynamic,n160 [--shapes 128x4096x4096,1536x1536x4096]

Caches are flushed before each launch, clocks left as they are. Writes counters.json and counters.md. Percentages are of
the sustained peak over the whole duration, so a multiprocessor without a tile counts as idle.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from typing import Any

from common import kernels, options, pairs, types, write

from gemmspec.runtime import measure

SHAPES = "1024,1536x1536x4096,2048,3000x5000x4096,4000x4104x4072,512x8192x8192,128x4096x4096"
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "LaunchStats", "Occupancy")
# What the table shows, and the names under which versions of ncu report it.
COLUMNS = {
    "us": ("gpu__time_duration.sum", "gpu__time_duration.avg"),
    "SM GHz": ("gpc__cycles_elapsed.avg.per_second",),
    "tensor %": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",),
    "L2 %": ("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    "DRAM %": (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "L2 hit %": ("lts__t_sector_hit_rate.pct",),
    "CTAs": ("launch__grid_size",),
    "threads": ("launch__block_size",),
    "registers": ("launch__registers_per_thread",),
    "SMEM KiB": ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block"),
}


def launch(asked: Any) -> None:
    """Launch cuBLAS and each kernel once a shape, warm, between the marks that ncu heeds."""
    import torch

    found = kernels(asked.kernels, asked.only)
    for shape in asked.shapes:
        for name, kernel in found.items():
            if not measure.fits(kernel, shape):
                continue
            given = measure.Operands(shape, *types(kernel))
            calls = [(name, kernel.bind(given.A, given.B, given.D))]
            if name == next(iter(found)):
                calls.insert(0, ("cublas", lambda g=given: torch.matmul(g.A, g.B.t(), out=g.D)))
            for label, call in calls:
                for _ in range(2):
                    call()
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
                call()
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()
                print(f"LAUNCHED {label} {'x'.join(map(str, shape))}", flush=True)


def profile(asked: Any) -> tuple[list[str], list[dict[str, str]]]:
    """Run `launch` under ncu; return the labels in order, and a row of metrics for each kernel launched."""
    words = [word for section in SECTIONS for word in ("--section", section)]
    shapes = ",".join("x".join(map(str, shape)) for shape in asked.shapes)
    command = ["ncu", "--csv", "--page", "raw", "--profile-from-start", "off", "--clock-control", "none", *words]
    inner = [sys.executable, __file__, "--launch", "--kernels", str(asked.kernels), "--only", asked.only]
    ended = subprocess.run([*command, *inner, "--shapes", shapes], capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"ncu ended with {ended.returncode}:\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}")
    lines = ended.stdout.splitlines()
    labels = [line.removeprefix("LAUNCHED ") for line in lines if line.startswith("LAUNCHED ")]
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    table = [line for line in lines[start:] if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(table))))
    units = rows.pop(0)  # the second line holds the units
    return labels, [{**row, **{f"{name} unit": unit for name, unit in units.items()}} for row in rows]


def value(row: dict[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these metrics that was read, with its unit where that is not in the heading."""
    for name in names:
        if row.get(name):
            unit = row.get(f"{name} unit", "")
            return f"{row[name]} {unit}".strip() if unit not in ("%", "") else row[name]
    return ""


def main() -> int:
    """Profile; return the exit status."""
    parser = options(__doc__ or "")
    parser.add_argument("--shapes", type=pairs, default=SHAPES)
    parser.add_argument("--launch", action="store_true", help="only launch: what runs under ncu")
    asked = parser.parse_args()
    if asked.launch:
        launch(asked)
        return 0
    labels, rows = profile(asked)
    # cuBLAS may launch more than one kernel for a product: its rows are those whose name is not ours.
    heads = list(COLUMNS)
    table = [f"| shape | candidate | kernel | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 3)}"]
    left, names = list(labels), frozenset(label.split()[0] for label in labels)
    for row in rows:
        name = row["Kernel Name"]
        while left and not _same(left[0], name, names):
            left.pop(0)
        label, shape = left[0].split() if left else ("?", "?")
        cells = " | ".join(value(row, names) for names in COLUMNS.values())
        table.append(f"| {shape} | {label} | {name[:60]} | {cells} |")
    write("counters", {"labels": labels, "rows": rows}, table)
    return 0


def _same(label: str, kernel: str, names: frozenset[str]) -> bool:
    candidate = label.split()[0]
    ours = kernel.split("(")[0].removesuffix("_kernel")
    return ours not in names if candidate == "cublas" else ours == candidate


if __name__ == "__main__":
    sys.exit(main())
