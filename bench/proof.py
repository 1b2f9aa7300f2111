"""In-process times of the proof, and how they grow with the protocol.

    python bench/proof.py [--runs N] [--write]

The specs of `specs/`, and pipelines of growing size: stages, consumers, roles and rings, clusters.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from report import markdown, put

from gemmspec.driver import check
from gemmspec.proof import prove
from gemmspec.proof.agents import Depths, agents_of
from gemmspec.protocol import Protocol
from gemmspec.source import SourceFile

ROOT = Path(__file__).parent.parent


def chain(rings: int, cluster: str, stages: int) -> str:
    """Return a spec with `rings` token barriers around the usual four, among eight roles."""
    roles = [
        "role producer  = tma      on warpgroup 2 warp 3",
        "role consumer0 = mma      on warpgroup 2 warp 0",
        "role consumer1 = mma      on warpgroup 2 warp 1",
        "role writer0   = epilogue on warpgroup 0 chunk 64",
        "role writer1   = epilogue on warpgroup 1 chunk 64",
    ]
    barriers = [
        "barrier full  [stages] producer -> consumer0, consumer1",
        "barrier empty [stages] consumer0, consumer1 -> producer",
        *(f"barrier ready{i} [1] consumer{i} -> writer{i}" for i in (0, 1)),
        *(f"barrier free{i}  [1] writer{i} -> consumer{i}" for i in (0, 1)),
    ]
    barriers += [f"barrier token{i} [{2 + i % 2}] writer{i % 2} -> consumer{i % 2}" for i in range(rings)]
    return "\n".join(
        [
            "kernel chain",
            "target sm_100a",
            "gemm D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16",
            "sizes M = 4096, N = 4096, K = 4096",
            f"cluster {cluster}",
            "block 128 x 128 x 64",
            f"stages {stages}",
            *roles,
            *barriers,
            "",
        ]
    )


def protocol_of(text: str) -> Protocol:
    """Return the protocol of a spec that must be clean."""
    checked = check(SourceFile("bench", text))
    if checked.protocol is None or not checked.report.ok:
        raise SystemExit("\n".join(d.message for d in checked.report.diagnostics))
    return checked.protocol


def statements(protocol: Protocol) -> int:
    """Return the statements of all agents of the cluster."""
    trips = Depths.of(protocol).trips(1)
    return sum(sum(1 for s in a.program.walk()) for a in agents_of(protocol, trips))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cases = [(p.stem, p.read_text(encoding="utf-8")) for p in sorted((ROOT / "specs").glob("*.gemmspec"))]
    cases += [
        (f"5 roles, {6 + r} barriers, cluster {c}, {s} stages", chain(r, c, s))
        for r, c, s in (
            (0, "1 x 1", 4),
            (6, "1 x 1", 4),
            (0, "2 x 1", 4),
            (6, "2 x 1", 4),
            (0, "4 x 1", 4),
            (6, "4 x 1", 4),
        )
    ]
    rows: list[tuple[str, ...]] = []
    for name, text in cases:
        protocol = protocol_of(text)
        times: list[float] = []
        for _ in range(options.runs):
            start = time.perf_counter()
            if prove(protocol):
                raise SystemExit(f"{name}: not clean")
            times.append((time.perf_counter() - start) * 1e3)
        n = statements(protocol)
        median = statistics.median(times)
        rows.append(
            (
                name,
                str(n),
                str(len(Depths.of(protocol).k_counts)),
                f"{median:.1f}",
                f"{min(times):.1f} .. {max(times):.1f}",
                f"{median * 1e3 / n:.0f}",
            )
        )
        print("  ".join(rows[-1]), flush=True)
    if options.write:
        head = ("spec", "statements of all agents", "k counts", "median, ms", "least .. most, ms", "us a statement")
        put("proof", markdown(head, rows))


if __name__ == "__main__":
    main()
