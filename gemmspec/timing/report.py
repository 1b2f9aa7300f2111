"""A prediction in words, and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gemmspec.timing.outcome import Prediction


def text(p: Prediction) -> str:
    """Return the report that `simulate --timeline` prints."""
    return "\n".join(_lines(p)) + "\n"


def _lines(p: Prediction) -> Iterator[str]:
    m, n, k = p.sizes
    yield f"predicted: `{p.kernel}` at M={m} N={n} K={k} takes {p.seconds * 1e3:.4f} ms on one {p.device}"
    yield f"  {p.tflops:.0f} TFLOP/s with the launch, which is {p.launch * 1e6:.1f} us"
    yield f"  {p.cycles:.0f} cycles at {p.ghz:.2f} GHz, which the power cap leaves"
    yield f"  used: tensor cores {p.utilisation:.1%}, L2 {p.l2:.1%}, device memory {p.dram:.1%}"
    part = "all replayed" if p.replayed == p.waves else f"{p.replayed} of them replayed"
    yield f"  {p.clusters} clusters at once, {p.waves} tile{'s' * (p.waves > 1)} each at most, {part}"
    yield ""
    yield "tensor cores of this cluster are idle for"
    for what, idle in p.stalls:
        if idle >= 0.0005:
            yield f"  {idle:6.1%}  {what}"
    if p.without_tile >= 0.0005:
        yield f"and {p.without_tile:.1%} of the chip has no tile, on average"
    yield ""
    width = max([len(w.role) for w in p.waits] + [4])
    yield f"{'role':{width}}  instances   busy  waits for"
    for w in p.waits:
        by = ", ".join(f"{what} {waited:.1%}" for what, waited in w.by if waited >= 0.0005)
        yield f"{w.role:{width}}  {w.instances:9}  {w.busy:5.1%}  {by or '-'}"


def data(p: Prediction) -> dict[str, Any]:
    """Return the prediction as JSON data, without the timeline."""
    m, n, k = p.sizes
    return {
        "kernel": p.kernel,
        "device": p.device,
        "sizes": {"M": m, "N": n, "K": k},
        "milliseconds": p.seconds * 1e3,
        "tflops": p.tflops,
        "cycles": p.cycles,
        "ghz": p.ghz,
        "utilisation": p.utilisation,
        "l2": p.l2,
        "dram": p.dram,
        "clusters": p.clusters,
        "waves": p.waves,
        "replayed": p.replayed,
        "without_tile": p.without_tile,
        "stalls": dict(p.stalls),
        "waits": [{"role": w.role, "instances": w.instances, "busy": w.busy, "by": dict(w.by)} for w in p.waits],
    }
