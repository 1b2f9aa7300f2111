"""Every 0xx code that `resolve` gives, with the exact text that it points at."""

from __future__ import annotations

import pytest
from resolving import applied, check_style, edited, pointed, program, run, tiles

from gemmspec.diagnostics import Diagnostic
from gemmspec.model import resolve
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import parse

# What is changed in V9, and the findings: code and the text that each points at.
LINES: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]] = [
    ([("kernel hgemm_v9\n", "")], [("GS003", "")]),
    ([("stages   4\n", "")], [("GS003", "kernel hgemm_v9")]),
    ([("block    128 x 128 x 64\n", ""), ("target sm_100a\n", "")], [("GS003", "kernel hgemm_v9")] * 2),
    ([(", K = 4096", "")], [("GS003", "sizes    M = 4096, N = 4096")]),
    ([("M = 4096", "M")], [("GS003", "M")]),
    ([("stages   4\n", "stages 4\nstages 5\n")], [("GS005", "stages 5")]),
    ([("cluster  2 x 1", "cluster 2 x 1\ncluster 2 x 1")], [("GS005", "cluster 2 x 1")]),
    ([("M = 4096", "M = 0")], [("GS006", "0")]),
    ([("M = 4096", "M = -5")], [("GS006", "-5")]),
    ([("M = 4096", "M = 2147483648")], [("GS006", "2147483648")]),
    ([("M = 4096", "M = 64..32")], [("GS006", "64..32")]),
    ([("stages   4", "stages 65")], [("GS006", "65")]),
    ([("stages   4", "stages 4\naccumulators 17")], [("GS006", "17")]),
    ([("128 x 128 x 64", "128 x 0 x 4097")], [("GS006", "0"), ("GS006", "4097")]),
    ([("2 x 1", "17 x 1")], [("GS006", "17")]),
    ([("ctas 148", "ctas 149")], [("GS006", "ctas 149")]),
    ([("group 8", "group 0")], [("GS006", "0")]),
    ([("arrivals 256", "arrivals 1048576")], [("GS006", "1048576")]),
    ([("256  phase 1", "256  phase 2")], [("GS006", "2")]),
    ([("256  phase 1  at cta 0", "256  phase 1  at cta 2")], [("GS006", "2")]),
    ([("2    phase 1  multicast 0b11", "2 multicast 0b100")], [("GS006", "0b100")]),
    ([("2    phase 1  multicast 0b11", "2 multicast 0")], [("GS006", "0")]),
    ([("chunk 64", "chunk 0 registers -1 buffers 65")], [("GS006", "0"), ("GS006", "-1"), ("GS006", "65")]),
    ([("[stages]    producer", "[65]    producer")], [("GS006", "65")]),
    ([("sm_100a", "sm_100")], [("GS007", "sm_100")]),
    ([("sm_100a", "h100")], [("GS007", "h100")]),
    ([("= tma ", "= tmaa ")], [("GS008", "tmaa")]),
    ([("= mma ", "= worker ")], [("GS008", "worker")]),
    ([("A[M, K] f16", "A[M, K] fp16")], [("GS008", "fp16")]),
    ([("accumulate f32", "accumulate float")], [("GS008", "float")]),
    ([("via tma ", "via tmq ")], [("GS008", "tmq")]),
    ([("via threads", "via 3")], [("GS008", "3")]),
    ([("persistent", "persistant")], [("GS008", "persistant")]),
    ([("256  phase 1  at cta 0", "256  phase 1  at leadr")], [("GS008", "leadr")]),
    ([("2    phase 1  multicast 0b11", "2 multicast cross")], [("GS008", "cross")]),
    ([("chunk 64", "release after reading")], [("GS008", "reading")]),
    ([("arrivals 256", "arrivals many")], [("GS008", "many")]),
    ([("[stages]    producer", "[stage]    producer")], [("GS008", "stage")]),
    ([("K = 4096", "L = 4096")], [("GS008", "L")]),
    ([("warp 3", "warp 3 multicast C")], [("GS008", "C")]),
    ([("chunk 64", "chnk 64")], [("GS009", "chnk")]),
    ([("warp 3", "warp 3 chunk 64")], [("GS009", "chunk 64")]),
    ([("chunk 64", "chunk 64 multicast A")], [("GS009", "multicast A")]),
    ([("arrivals 256", "chunk 256")], [("GS009", "chunk")]),
    ([("role consumer ", "role producer ")], [("GS010", "producer")]),
    ([("barrier ld2mma ", "barrier mma2ld ")], [("GS010", "mma2ld")]),
    ([("barrier ld2mma ", "barrier stages ")], [("GS010", "stages")]),
    ([("M = 4096", "M = 4096, M = 4096")], [("GS010", "M")]),
    ([("= tma ", "= tma, tma ")], [("GS010", "tma")]),
    ([("A[M, K]", "D[M, K]")], [("GS010", "D")]),
    ([("consumer  -> producer", "consumer  -> producer, producer")], [("GS010", "producer")]),
    ([("warp 3", "warp 3 multicast A A")], [("GS010", "A")]),
    ([("-> producer", "-> prodcer")], [("GS011", "prodcer")]),
    ([("@ B[N, K]^T", "@ B[N, K]")], [("GS013", "B[N, K]")]),
    ([("@ B[N, K]^T", "@ B[K, N]")], [("GS013", "B[K, N]")]),
    ([("A[M, K]", "A[K, M]^T")], [("GS013", "A[K, M]^T")]),
    ([("A[M, K]", "A[K, M]")], [("GS013", "A[K, M]")]),
    ([("B[N, K]^T", "B[N, J]^T")], [("GS013", "J")]),
    ([("D[M, N]", "D[M, M]")], [("GS013", "M")]),
    ([("D[M, N]", "D[M, N, L]")], [("GS013", "M, N, L")]),
    ([("accumulate f32", "accumulate f16")], [("GS013", "f16")]),
    ([("warp 3", "warp 4")], [("GS014", "4")]),
    ([("warps 0..1", "warps 1..0")], [("GS014", "1..0")]),
    ([("warpgroups 0..1", "warpgroups 7..8")], [("GS014", "8")]),
    ([("warpgroup 2 warp 3", "warpgroups 2..3 warp 3")], [("GS014", "2..3")]),
    ([("chunk 64", "chunk 64 chunk 32")], [("GS017", "chunk 32")]),
    ([("arrivals 256", "arrivals 256 arrivals 256")], [("GS017", "arrivals 256")]),
    ([("= epilogue", "= mma"), ("chunk 64", "")], [("GS018", "kernel hgemm_v9")]),
    ([("256  phase 1  at cta 0", "256 at cta")], [("GS001", "at cta")]),
    ([("256  phase 1  at cta 0", "256 at own 3")], [("GS001", "3")]),
    ([("block    128 x 128 x 64", "block 128 x 64")], [("GS001", "128 x 64")]),
]  # fmt: skip

# A role, the body of `for tile` in its program, and the findings.
BODIES: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("producer", "wait nothing", [("GS012", "nothing")]),
    ("producer", "wait mma2tna", [("GS012", "mma2tna")]),
    ("producer", "frobnicate", [("GS008", "frobnicate")]),
    ("producer", "wiat mma2tma", [("GS008", "wiat")]),
    ("producer", "for q {\nwait nothing\n}", [("GS008", "q"), ("GS012", "nothing")]),
    ("producer", "for k {\nif k == 0 {\n}\n}", [("GS008", "0")]),
    ("producer", "sync grid", [("GS008", "grid")]),
    ("producer", "load C tma2mma", [("GS008", "C")]),
    ("consumer", "mma into writeback", [("GS008", "writeback")]),
    ("consumer", "mma from 0", [("GS008", "from")]),
    ("producer", "load A A tma2mma", [("GS010", "A")]),
    ("producer", "expect tma2mma 1048576", [("GS006", "1048576")]),
    ("producer", "for 1025 {\n}", [("GS006", "1025")]),
    ("producer", "for 10 {\nfor 10 {\n}\n}", [("GS006", "10")]),
    ("producer", "for k - 65 {\n}", [("GS006", "- 65")]),
    ("consumer", "retire 8", [("GS006", "8")]),
    ("producer", "mma", [("GS015", "mma")]),
    ("consumer", "store", [("GS015", "store")]),
    ("writeback", "commit mma2ld", [("GS015", "commit")]),
    ("writeback", "wait tma2mma", [("GS015", "tma2mma")]),
    ("consumer", "arrive tma2mma", [("GS015", "tma2mma")]),
    ("producer", "for tile {\n}", [("GS015", "for tile")]),
    ("producer", "for k {\nfor k {\n}\n}", [("GS015", "for k")]),
    ("writeback", "for chunk {\nfor k {\n}\n}", [("GS015", "for k")]),
    ("producer", "for chunk {\n}", [("GS015", "for chunk")]),
    ("writeback", "for chunk - 1 {\n}", [("GS015", "- 1")]),
    ("producer", "if k == first {\n}", [("GS015", "if k == first")]),
    ("producer", "if tile == last {\n}", [("GS015", "if tile == last")]),
    ("producer", "for 1 {\n" * 16 + "}\n" * 16, [("GS015", "for 1")]),
    ("producer", "wait mma2tma[4]", [("GS016", "4")]),
    ("producer", "wait mma2tma[stage - 4]", [("GS016", "stage - 4")]),
    ("producer", "wait mma2tma[stage + 1]", [("GS016", "stage + 1")]),
    ("producer", "wait mma2tma[acc]", [("GS016", "acc")]),
    ("producer", "wait mma2tma[stge]", [("GS016", "stge")]),
    ("producer", "wait mma2tma[0, 1]", [("GS016", "0, 1")]),
    ("producer", "wait mma2tma[1 - 1]", [("GS016", "1 - 1")]),
    ("consumer", "wait ld2mma[self - 1]", [("GS016", "self - 1")]),
    ("consumer", "wait ld2mma[stage]", [("GS016", "stage")]),
    ("consumer", "mma into 2", [("GS016", "2")]),
    ("writeback", "read from 2", [("GS016", "2")]),
    ("producer", "load A[2] tma2mma", [("GS016", "2")]),
    ("producer", "load B[0] tma2mma", [("GS016", "0")]),
    ("producer", "wait mma2tma\nfor k {\nwait mma2tma\n}", [("GS019", "mma2tma")]),
    ("producer", "wait", [("GS001", "wait")]),
    ("producer", "load A B", [("GS001", "load A B")]),
    ("producer", "wait mma2tma 4 5", [("GS001", "4 5")]),
    ("writeback", "store into 0", [("GS001", "into 0")]),
    ("producer", "sync", [("GS001", "sync")]),
]


def check_findings(text: str, expected: list[tuple[str, str]], found: list[Diagnostic]) -> None:
    assert sorted(pointed(text, found)) == sorted(expected), found
    for d in found:
        check_style(d)
        if d.fix is not None:
            # An edit that is offered ends the finding it is offered for.
            source = SourceFile("test", applied(text, d.fix))
            tree, errors = parse(source)
            assert not errors
            _, left = resolve(tree, source)
            assert d.message not in [other.message for other in left], d
            assert len(left) < len(found), (d, left)


@pytest.mark.parametrize(("edits", "expected"), LINES, ids=lambda p: str(p)[:60])
def test_lines(edits: list[tuple[str, str]], expected: list[tuple[str, str]]) -> None:
    text = edited(*edits)
    check_findings(text, expected, run(text)[1])


@pytest.mark.parametrize(("role", "body", "expected"), BODIES, ids=lambda p: str(p)[:40])
def test_bodies(role: str, body: str, expected: list[tuple[str, str]]) -> None:
    text = tiles(role, f"for k {{\n{body}\n}}" if body.startswith(("load", "mma")) else body)
    check_findings(text, expected, run(text)[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (program("producer", "wait mma2tma"), [("GS015", "program producer")]),
        (
            program("producer", "for tile {\n}\nif k == first {\n}"),
            [("GS015", "if k == first"), ("GS015", "if k == first")],
        ),
        (program("producer", "for tile {\n}\nfor tile {\n}"), [("GS015", "for tile")]),
        (program("nobody", ""), [("GS011", "nobody")]),
        (program("consumer", "for tile {\nmma\n}"), [("GS015", "mma")]),
        (program("consumer", "for tile {\nfor k {\nmma\n}\nfor k - 1 {\nmma\n}\n}"), [("GS015", "for k - 1")]),
        (program("producer", "") + "program producer {\n}\n", [("GS005", "program producer")]),
        ("", [("GS003", "")]),
        # Two cursors in one index, and a slot for each of two roles that a role of one instance cannot tell apart.
        (
            tiles("producer", "wait mma2tma", ("[stages]    consumer", "[stages x 2]    consumer")),
            [("GS016", "mma2tma")],
        ),
        (tiles("producer", "wait mma2tma", ("[stages]    consumer", "[consumer]    consumer")), [("GS016", "mma2tma")]),
        (
            tiles("consumer", "commit mma2tma[self]", ("[stages]    consumer", "[producer]    consumer")),
            [("GS016", "self")],
        ),
    ],
)
def test_whole_programs(text: str, expected: list[tuple[str, str]]) -> None:
    check_findings(text, expected, run(text)[1])
