"""What is known of kernels at shapes, as text and JSON: the best of each shape, and the next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gemmspec.runtime.table import Result, Setting, Shape

Known = Mapping[Setting, Sequence[Result]]


def ranked(results: Sequence[Result]) -> list[tuple[Shape, str, list[Result]]]:
    """Return by shape and types the results with a time, the fastest first; shapes in the order of results."""
    groups: dict[tuple[Shape, str], list[Result]] = {}
    for result in results:
        group = groups.setdefault((result.shape, result.types), [])
        if not result.fault:
            group.append(result)
    return [
        (shape, types, sorted(group, key=lambda r: (-(r.ratio or 0.0), r.kernel)))
        for (shape, types), group in groups.items()
    ]


def as_text(known: Known) -> str:
    """Return a table for each setting, and what is wrong below it."""
    return "\n".join(_of_setting(setting, results) for setting, results in known.items())


def _of_setting(setting: Setting, results: Sequence[Result]) -> str:
    clock = f", {setting.mhz} MHz" if setting.mhz else ""
    driver = f", driver {setting.driver}" if setting.driver else ""
    lines = [f"{setting.device} ({setting.sms} SMs{clock}{driver}), {setting.library}"]
    rows = ranked(results)
    kinds = {types for _, types, _ in rows}
    width = max((len(r.kernel) for r in results), default=0)
    head = f"{'M x N x K':>20}  {'':{width}}  {'ms':>9}  {'TFLOP/s':>7}  {'to cuBLAS':>9}  {'quartiles':>13}  next"
    if rows:
        lines.append(head)
    for shape, types, best in rows:
        where = f"{' x '.join(map(str, shape)):>20}"
        of = f"  ({types.replace(' ', ', ')})" if len(kinds) > 1 else ""
        if not best:
            lines.append(f"{where}  no kernel is right{of}")
            continue
        first, m, n, k = best[0], *shape
        assert first.ms and first.ratio and first.low and first.high
        line = f"{where}  {first.kernel:{width}}  {first.ms:9.4f}  {2e-9 * m * n * k / first.ms:7.1f}"
        line += f"  {first.ratio:9.3f}  {first.low:.3f}..{first.high:.3f}  "
        lines.append(line + (f"{best[1].kernel} {best[1].ratio:.3f}" if len(best) > 1 else "-") + of)
    lines += [f"WRONG {r.kernel} at {' x '.join(map(str, r.shape))}: {r.fault}" for r in results if r.fault]
    return "\n".join(lines) + "\n"


def as_json(known: Known, measured: int, before: int) -> str:
    """Return the same for tools: by setting and shape, all results, the fastest first; those with a fault apart."""
    settings: list[dict[str, Any]] = []
    for setting, results in known.items():
        shapes = [
            {"shape": list(shape), "types": types, "results": [asdict(r) for r in best]}
            for shape, types, best in ranked(results)
        ]
        faults = [asdict(r) for r in results if r.fault]
        settings.append({**asdict(setting), "shapes": shapes, "faults": faults})
    return json.dumps({"measured": measured, "known": before, "settings": settings}, indent=2) + "\n"
