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
from gemmspec.proof.agents import agents_of
from gemmspec.proof.depths import Depths
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


def plot(points: list[tuple[int, float, str]], path: Path) -> None:
    """Draw milliseconds over statements."""
    import drawsvg

    width, height, left, bottom = 640, 360, 60, 50
    most_x, most_y = max(p[0] for p in points) * 1.1, max(p[1] for p in points) * 1.1
    d = drawsvg.Drawing(width, height, font_family="sans-serif")
    d.append(drawsvg.Rectangle(0, 0, width, height, fill="white"))

    def at(x: float, y: float) -> tuple[float, float]:
        return left + x / most_x * (width - left - 20), height - bottom - y / most_y * (height - bottom - 20)

    for end in ((most_x, 0), (0, most_y)):
        d.append(drawsvg.Line(*at(0, 0), *at(*end), stroke="black"))
    for i in range(6):
        x, y = most_x * i / 5, most_y * i / 5
        d.append(drawsvg.Text(f"{x:.0f}", 11, at(x, 0)[0], height - bottom + 16, text_anchor="middle"))
        d.append(drawsvg.Text(f"{y:.0f}", 11, left - 8, at(0, y)[1] + 4, text_anchor="end"))
    d.append(drawsvg.Text("statements of all agents", 12, width / 2, height - 12, text_anchor="middle"))
    d.append(drawsvg.Text("median, ms", 12, left, 14, text_anchor="start"))
    for x, y, name in points:
        dot = drawsvg.Circle(*at(x, y), 4, fill="#0072B2", fill_opacity=0.8)
        dot.append_title(f"{name}: {x} statements, {y} ms")
        d.append(dot)
    d.save_svg(str(path))


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
        plot([(int(row[1]), float(row[3]), row[0]) for row in rows], ROOT / "docs" / "proof_time.svg")
        head = ("spec", "statements of all agents", "k counts", "median, ms", "least .. most, ms", "us a statement")
        put("proof", markdown(head, rows))


if __name__ == "__main__":
    main()
