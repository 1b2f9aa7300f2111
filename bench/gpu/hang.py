"""Runs kernels that deadlock, as debug builds: do they stop, with the cycle that lint foretold?

    python bench/gpu/build_faulty.py         # before, where TVM and nvcc are
    python bench/gpu/hang.py                 # on the GPU

Sound debug builds run first and last: right results, and a context that outlived the stops. Never launches a kernel
that lint says hangs unless its waits are bounded. Writes hang.json and hang.md. Ends with status 1 where a kernel does
not stop, or tells of another cycle than lint.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from common import ROOT, Kernel, options, watch, write

from gemmspec.runtime import HangError, load, measure
from gemmspec.runtime.card import card

SHAPE = (512, 512, 640)


def sizes_of(kernel: Kernel) -> tuple[int, int, int]:
    """Return a shape that a kernel takes."""
    m, n, k = (size or usual for size, usual in zip(kernel.manifest.sizes.values(), SHAPE, strict=True))
    return m, n, k


def stop(kernel: Kernel) -> HangError | None:
    """Launch a kernel that cannot end; return the error that it stops with."""
    given = measure.operands_for(kernel, sizes_of(kernel))
    try:
        kernel(given.A, given.B, given.D)
    except HangError as error:
        return error
    return None


def tried(name: str, kernel: Kernel, told: dict[str, Any]) -> dict[str, Any]:
    """Return what came of one kernel, launched twice."""
    start = time.monotonic()
    errors = [stop(kernel) for _ in range(2)]
    took = time.monotonic() - start
    cycles = [
        [[w.at.role, w.at.instance, w.at.cta, w.barrier, w.slot] for w in error.cycle] if error else []
        for error in errors
    ]
    same = all(cycle == told["cycle"] for cycle in cycles)
    print(f"\n== {name}: lint\n{told['text']}\n== {name}: the GPU, twice in {took:.2f} s", flush=True)
    print("\n-- again --\n".join(str(error) for error in errors), flush=True)
    print(f"== {name}: {'the same cycle' if same else 'ANOTHER CYCLE'}", flush=True)
    return {
        "kernel": name,
        "codes": told["codes"],
        "lint": told["cycle"],
        "gpu": cycles,
        "same": same,
        "seconds": took,
        "reports": [str(error) for error in errors],
    }


def sound(found: dict[str, Kernel]) -> list[str]:
    """Return what is wrong with the results of sound debug builds."""
    faults: list[str] = []
    for name, kernel in found.items():
        for shape in ((64, 64, 64), sizes_of(kernel), (1000, 1032, 1000), (4096, 4096, 4096)):
            if measure.fits(kernel, shape):
                checked = measure.check(kernel, shape)
                faults += [f"{name} {shape}: {checked.fault}"] if checked.fault else []
    return faults


def main() -> int:
    """Run; return the exit status."""
    parser = options(__doc__ or "")
    parser.set_defaults(kernels=ROOT / "build" / "gpu" / "faulty")
    asked = parser.parse_args()
    folder: Path = asked.kernels
    told = {p.name.removesuffix(".lint.json"): json.loads(p.read_text()) for p in folder.glob("*.lint.json")}
    every = {p.stem: load(p) for p in sorted(folder.glob("*.cubin"))}
    bounded = {name: kernel for name, kernel in every.items() if kernel.manifest.waits is not None}
    hanging = {n: k for n, k in bounded.items() if told.get(n, {}).get("cycle") and asked.only in n}
    if not hanging:
        sys.exit(f"no debug build of a deadlock in {folder}: run bench/gpu/build_faulty.py, and carry that folder")
    at_hand = card()
    watchdog = watch(asked.patience)
    watchdog.beat("sound debug builds")
    right = {name: kernel for name, kernel in bounded.items() if name not in told}
    faults = sound(right)
    rows: list[dict[str, Any]] = []
    for name, kernel in hanging.items():
        watchdog.beat(f"{name} does not stop")
        rows.append(tried(name, kernel, told[name]))
    watchdog.beat("sound debug builds, behind the stops")
    faults += sound(right)
    watchdog.stop()
    table = [
        f"# Deadlocks that stop: {at_hand['device']}, driver {at_hand.get('driver')}",
        "",
        "| spec | lint | cycle | seconds, 2 launches | the GPU's cycle |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cycle = ", ".join(f"{r} {i} of CTA {c} at {b}[{s}]" for r, i, c, b, s in row["lint"])
        same = "the same" if row["same"] else "ANOTHER"
        table.append(f"| {row['kernel']} | {', '.join(row['codes'])} | {cycle} | {row['seconds']:.2f} | {same} |")
    table += ["", f"Sound debug builds, before and behind: {'; '.join(faults) or 'right'}."]
    write("hang", {"card": at_hand, "rows": rows, "faults": faults}, table)
    return 0 if all(row["same"] for row in rows) and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
