"""Builds, on a machine without a GPU, the kernels of specs that lint rejects, for hang.py and raced.py.

    python bench/gpu/build_faulty.py         # -> build/gpu/faulty

Each of specs/ becomes what `gemmspec compile --force` makes of it. All whose waits may go on for ever are debug builds
(`--debug-waits`), so that they stop; beside each stands NAME.lint.json, what lint says. Two sound specs are built so,
too: their results must be right.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gemmspec import api, cli
from gemmspec.driver import check
from gemmspec.proof.fault import Fault, Kind
from gemmspec.proof.judge import judge
from gemmspec.proof.words import cycle
from gemmspec.protocol import Protocol
from gemmspec.report import text
from gemmspec.source import SourceFile

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "gpu" / "faulty"
SOUND = ("hopper_n256_dynamic", "hopper_n128_cluster_dynamic")
# Every wait of these is met by its own tile's loads or releases, whatever is read too early.
CANNOT_HANG = ("raced_order", "raced_release", "raced_retire")


def expected(source: SourceFile) -> dict[str, Any]:
    """Return what lint says of a spec, and the cycle of a deadlock: who waits for which slot of which barrier."""
    checked = check(source)
    assert checked.protocol is not None, f"{source.name} has no protocol"
    fault = deadlock(checked.protocol)
    edges = [(b.at.role, b.at.instance, b.at.cta, b.barrier, b.slot) for b in cycle(fault)] if fault else []
    codes = [d.code for d in checked.report.errors]
    return {"codes": codes, "cycle": edges, "text": text.render([checked.report])}


def deadlock(protocol: Protocol) -> Fault | None:
    """Return the deadlock that lint tells of, or explains by a cause."""
    verdict = judge(protocol)
    faults = (*(blame.fault for blame in verdict.blames), *verdict.faults)
    return next((fault for fault in faults if fault.kind is Kind.DEADLOCK), None)


def main() -> int:
    """Build; return the exit status."""
    paths = [*sorted((HERE / "specs").glob("*.gemmspec")), *(ROOT / "specs" / f"{name}.gemmspec" for name in SOUND)]
    failed: list[str] = []
    for path in paths:
        words = ["compile", str(path.relative_to(ROOT)), "--out", str(OUT)]
        words += [] if path.stem in SOUND else ["--force"]
        words += [] if path.stem in CANNOT_HANG else ["--debug-waits"]
        print(f"gemmspec {' '.join(words)}", flush=True)
        status = cli.gemmspec.main(words, prog_name="gemmspec", standalone_mode=False)
        built = all((OUT / f"{path.stem}.{end}").is_file() for end in ("cubin", "json"))
        if status or not built:
            failed.append(path.stem)
        elif path.stem not in SOUND:
            told = json.dumps(expected(api.load(path.relative_to(ROOT))), indent=1)
            (OUT / f"{path.stem}.lint.json").write_text(f"{told}\n", encoding="utf-8")
    print(f"not built: {', '.join(failed)}" if failed else "all built")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
