"""Predicted against published: prints the tables of docs/timing.md; with --write, puts them there.

Every published time is of the kernel that is predicted, or of a library at the same problem where the text says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmspec.driver import check
from gemmspec.source import SourceFile
from gemmspec.targets.timing import figures
from gemmspec.timing import Prediction, predict
from gemmspec.timing.costs import TIMINGS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "timing.md"
BEGIN, END = "<!-- {}: bench/predict.py --write -->", "<!-- end -->"
# The kernel of our H200 probes: 128 x 256 tiles, two consumer warpgroups, B shared by a cluster of two.
HOPPER = """\
kernel hopper_128x256
target sm_90a
gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16
sizes    M = 4096, N = 4096, K = 4096
cluster  2 x 1
block    64 x 256 x 64
stages   4
schedule persistent ctas 132 group 8

role producer = tma           on warpgroup 0 warp 0 registers 40 multicast B
role math     = mma, epilogue on warpgroups 1..2 chunk 64 registers 232

barrier full  [stages] producer -> math
barrier empty [stages] math     -> producer
"""


@dataclass(frozen=True)
class Published:
    """A time that somebody measured."""

    spec: str
    size: int
    milliseconds: float
    source: str
    fitted: bool = False
    """Whether a figure was chosen so that this comes out."""


PUBLISHED = (
    Published("v7", 4096, 0.230, "TIRx GEMM tutorial, part 2"),
    Published("v8", 4096, 0.104, "TIRx GEMM tutorial, part 2"),
    Published("v9", 4096, 0.094, "TIRx GEMM tutorial, part 2", fitted=True),
    Published("hopper", 4096, 2 * 4096**3 / 790e9, "probes, 790 TFLOP/s"),
    Published("hopper", 8192, 2 * 8192**3 / 790e9, "probes, 790 TFLOP/s", fitted=True),
)


@cache
def predicted(spec: str, size: int) -> Prediction:
    """Return the prediction for a spec of specs/, or for the Hopper kernel."""
    text = HOPPER if spec == "hopper" else (ROOT / "specs" / f"{spec}.gemmspec").read_text(encoding="utf-8")
    sizes = {"M": size, "N": size, "K": size}
    protocol = check(SourceFile(spec, text), sizes).protocol
    assert protocol is not None
    return predict(protocol, sizes)


def comparison() -> Iterator[str]:
    """Yield the table of predicted against published."""
    yield "| kernel | card | size | published | predicted | off by | SM clock | used in the fit |"
    yield "|---|---|---|---|---|---|---|---|"
    for p in PUBLISHED:
        r = predicted(p.spec, p.size)
        off = r.seconds * 1e3 / p.milliseconds - 1
        yield (
            f"| {p.spec} | {r.device} | {p.size}^3 | {p.milliseconds:.3f} ms ({p.source}) | {r.seconds * 1e3:.3f} ms "
            f"| {off:+.1%} | {r.ghz:.2f} GHz | {'yes' if p.fitted else 'no'} |"
        )


def figure_table() -> Iterator[str]:
    """Yield the tables of figures and their sources."""
    for timing in TIMINGS.values():
        yield f"### {timing.device}"
        yield ""
        yield "| figure | value | standing | source |"
        yield "|---|---|---|---|"
        for name, figure in figures(timing):
            yield f"| `{name}` | {float(figure):g} | {figure.standing.value} | {figure.source} |"
        yield ""


def page() -> str:
    """Return docs/timing.md with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("comparison", comparison()), ("figures", figure_table())):
        begin = BEGIN.format(name)
        head, _, rest = text.partition(begin)
        tail = rest[rest.index(END) :]
        text = f"{head}{begin}\n" + "\n".join(lines).rstrip("\n") + f"\n{tail}"
    return text


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print("\n".join(comparison()))
