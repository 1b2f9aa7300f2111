"""What the tests of `resolve` share: the v9 kernel, edits of it, and how a finding is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gemmspec.diagnostics import Diagnostic, Fix
from gemmspec.model import Spec, resolve
from gemmspec.model.spec import Act, For, If
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import parse
from gemmspec.targets import Target

V9 = """\
kernel hgemm_v9
target sm_100a

gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes    M = 4096, N = 4096, K = 4096
cluster  2 x 1
block    128 x 128 x 64
stages   4
schedule persistent ctas 148 group 8

role producer  = tma       on warpgroup 2 warp 3
role consumer  = mma       on warpgroup 2 warps 0..1
role writeback = epilogue  on warpgroups 0..1 chunk 64

barrier tma2mma [stages]    producer  -> consumer   via tma      arrivals 1    phase 0  at cta 0
barrier mma2tma [stages]    consumer  -> producer   via commit   arrivals 2    phase 1  multicast 0b11
barrier mma2ld  [consumer]  consumer  -> writeback  via commit   arrivals 1    phase 0  multicast 0b11
barrier ld2mma  [consumer]  writeback -> consumer   via threads  arrivals 256  phase 1  at cta 0
"""


def run(text: str, sizes: Mapping[str, int] = {}, target: Target | None = None) -> tuple[Spec | None, list[Diagnostic]]:
    """Resolve a text that can be parsed."""
    source = SourceFile("spec.gemmspec", text)
    tree, errors = parse(source)
    assert not errors, errors
    spec, found = resolve(tree, source, sizes, target)
    return spec, list(found)


def edited(*edits: tuple[str, str]) -> str:
    """Return V9 with each old text, which stands there once, replaced."""
    text = V9
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def spec_of(text: str, sizes: Mapping[str, int] = {}) -> Spec:
    spec, found = run(text, sizes)
    assert not found, found
    assert spec is not None
    return spec


def program(role: str, body: str, *edits: tuple[str, str]) -> str:
    return edited(*edits) + f"program {role} {{\n{body}\n}}\n"


def tiles(role: str, body: str, *edits: tuple[str, str]) -> str:
    return program(role, f"for tile {{\n{body}\n}}", *edits)


def pointed(text: str, found: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(d.code, text[d.span.start : d.span.end]) for d in found]


def applied(text: str, fix: Fix) -> str:
    for edit in sorted(fix.edits, key=lambda e: e.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def check_style(d: Diagnostic) -> None:
    for line in (d.message, d.label, *d.notes, *d.helps, *(label.text for label in d.labels)):
        assert "\n" not in line and not line.endswith("."), line
    assert d.message[0] in "`" or d.message[0].islower(), d.message


def acts(spec: Spec) -> Iterator[Act]:
    def walk(steps: tuple[For | If | Act, ...]) -> Iterator[Act]:
        for step in steps:
            if isinstance(step, Act):
                yield step
            else:
                yield from walk(step.body)

    for p in spec.programs:
        yield from walk(p.body)
