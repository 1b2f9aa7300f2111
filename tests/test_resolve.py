"""The Spec that `resolve` makes, of the v9 kernel and others; what each finding points at is tested next door."""

from __future__ import annotations

import random
import re

import pytest
from resolving import V9, acts, check_style, edited, pointed, run, spec_of, tiles

from gemmspec.diagnostics import SizeError
from gemmspec.model import resolve
from gemmspec.model.spec import Act, At, For, Given, If, Mask, Ref, Term
from gemmspec.source import SourceFile, Span
from gemmspec.suggest import suggest
from gemmspec.syntax.nodes import SpecNode
from gemmspec.syntax.parse import parse
from gemmspec.targets import TARGETS
from gemmspec.vocabulary import DType, Group, LoopKind, Operand, Release, RoleKind, Via


def test_v9() -> None:
    spec = spec_of(V9)
    assert (spec.name, spec.target) == ("hgemm_v9", TARGETS["sm_100a"])
    assert [(s.name, s.fixed, s.dynamic) for s in spec.sizes] == [(n, 4096, False) for n in "MNK"]
    assert (spec.gemm.a.value, spec.gemm.accumulate, spec.gemm.names) == (DType.F16, DType.F32, ("D", "A", "B"))
    assert (spec.cluster.m, spec.cluster.n, spec.pair) == (2, 1, 2)
    assert (spec.block.m.value, spec.block.n.value, spec.block.k.value) == (128, 128, 64)
    assert (spec.stages.value, spec.accumulators.value) == (4, 1)
    assert spec.schedule.ctas is not None and spec.schedule.ctas.value == 148
    assert [(r.name, r.kinds, r.instances, r.placement.claimed[0]) for r in spec.roles] == [
        ("producer", (RoleKind.TMA,), 1, (2, 3)),
        ("consumer", (RoleKind.MMA,), 2, (2, 0)),
        ("writeback", (RoleKind.EPILOGUE,), 2, (0, 0)),
    ]
    full, empty, _, free = spec.barriers
    assert (full.name, full.slots) == ("tma2mma", 4)
    at = V9.index("via tma")
    assert full.via == Given(Via.TMA, Span(at, at + len("via tma")))
    assert full.at is not None and full.at.value == At(None, 0)
    assert empty.multicast is not None and empty.multicast.value == Mask(None, 0b11)
    assert free.arrivals is not None and free.arrivals.value == 256
    assert V9[free.arrivals.span.start : free.arrivals.span.end] == "arrivals 256"
    assert [f.text for f in free.factors] == ["consumer"]
    assert free.slots == 2
    assert spec.programs == ()


def test_what_may_be_left_out() -> None:
    text = re.sub(r"\b(via|arrivals|phase|at cta|multicast|group|ctas) +\w+", "", edited(("cluster  2 x 1\n", "")))
    spec = spec_of(text.replace("schedule persistent", "").replace(" accumulate f32", ""))
    assert (spec.cluster.m, spec.cluster.n) == (1, 1)
    assert spec.schedule.kind == "persistent" and spec.schedule.ctas is None and spec.schedule.group is None
    for b in spec.barriers:
        assert (b.via, b.arrivals, b.phase, b.at, b.multicast) == (None,) * 5


def test_sizes() -> None:
    def sizes(line: str, **given: int) -> list[tuple[int, int, bool, int | None]]:
        text = edited(("M = 4096, N = 4096, K = 4096", line))
        return [(s.low, s.high, s.dynamic, s.typical) for s in spec_of(text, given).sizes]

    most = 2**31 - 1
    assert sizes("M, N, K dynamic") == [(1, most, True, None)] * 3
    assert sizes("K = 64..16384, M = 8, N = 16") == [
        (8, 8, False, None),
        (16, 16, False, None),
        (64, 16384, True, None),
    ]
    assert sizes("M = 512 dynamic, N = 16, K = 0x40") == [
        (1, most, True, 512),
        (16, 16, False, None),
        (64, 64, False, None),
    ]
    assert sizes("M, N, K dynamic", M=77)[0] == (77, 77, False, None)
    spec = spec_of(edited(("sizes    M = 4096, N = 4096, K = 4096\n", "")), {"M": 1, "N": 2, "K": 3})
    assert [s.fixed for s in spec.sizes] == [1, 2, 3]


def test_names_of_tensors_and_axes_are_free() -> None:
    text = edited(
        ("D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16", "Y[R, C] f32 = X[R, H] bf16 @ W[C, H]^T bf16"),
        ("M = 4096, N = 4096, K = 4096", "H = 1, R = 2, C = 3"),
        ("warp 3", "warp 3 multicast W, X"),
    )
    spec = spec_of(text + "program producer {\n for tile {\n for k {\n load W tma2mma\n }\n }\n}\n")
    assert [(s.name, s.fixed) for s in spec.sizes] == [("R", 2), ("C", 3), ("H", 1)]
    assert spec.gemm.names == ("Y", "X", "W")
    multicast = spec.role("producer").multicast
    assert multicast is not None and multicast.value == (Operand.B, Operand.A)
    assert next(acts(spec)).operands == (Operand.B,)


def test_properties() -> None:
    spec = spec_of(
        edited(
            ("chunk 64", "chunk 32 buffers 2 registers 200 release after read"),
            ("phase 0  at cta 0", "at leader"),
            ("256  phase 1  at cta 0", "256 at own"),
            ("phase 1  multicast 0b11", "phase 1 multicast column"),
            ("[consumer]  consumer", "[2 x consumer x accumulators]  consumer"),
        )
    )
    role = spec.role("writeback")
    assert [role.chunk, role.buffers, role.registers, role.release] != [None] * 4
    assert role.release is not None and role.release.value is Release.READ
    places = [b.at.value.group for b in spec.barriers if b.at is not None]
    assert places == [Group.LEADER, Group.OWN]
    assert spec.barrier("mma2tma").multicast is not None
    assert spec.barrier("mma2ld").slots == 4


def test_programs() -> None:
    text = tiles(
        "consumer",
        "wait ld2mma\nfor k - 1 {\nwait tma2mma\nmma [stage - 1] into 1\n"
        "if k != first {\ncommit mma2tma[stage - 1]\n}\n}\n"
        "for 2 {\nretire 1\n}\ncommit mma2ld[1]\nsync warpgroup",
    )
    spec = spec_of(text)
    (tile,) = spec.programs[0].body
    assert isinstance(tile, For) and tile.kind is LoopKind.TILE
    _, k, fixed, commit, sync = tile.body
    assert isinstance(k, For) and (k.kind, k.offset, k.count) == (LoopKind.K, -1, None)
    assert isinstance(fixed, For) and (fixed.kind, fixed.count) == (LoopKind.FIXED, 2)
    assert isinstance(commit, Act) and isinstance(sync, Act) and sync.scope == "warpgroup"
    condition = k.body[2]
    assert isinstance(condition, If) and (condition.kind, condition.which, condition.equal) == (
        LoopKind.K,
        "first",
        False,
    )
    refs = [[(t.kind, t.value, t.lag) for t in a.ref.index] for a in acts(spec) if a.ref is not None]
    assert refs == [[("self", 0, 0)], [("cursor", 0, 0)], [("cursor", 0, 1)], [("const", 1, 0)]]
    mma = next(a for a in acts(spec) if a.verb == "mma")
    assert mma.owner == 1 and mma.stage is not None and (mma.stage.kind, mma.stage.lag) == ("cursor", 1)


def test_loads_and_omitted_indices() -> None:
    slots = [
        ("[stages]    producer", "[1 x 2]    producer"),
        ("[consumer]  consumer", "consumer"),
        ("stages   4", "stages 8"),
    ]
    spec = spec_of(
        tiles("producer", "for k {\nload A[1] tma2mma\nload B A tma2mma[0, stage - 1]\nload tma2mma\n}", *slots)
    )
    loads = list(acts(spec))
    assert [(a.operands, a.instance) for a in loads] == [
        ((Operand.A,), 1),
        ((Operand.B, Operand.A), None),
        ((Operand.A, Operand.B), None),
    ]
    assert isinstance(loads[0].ref, Ref)
    assert [t.kind for t in loads[0].ref.index] == ["const", "cursor"]
    assert loads[1].ref is not None and isinstance(loads[1].ref.index[1], Term) and loads[1].ref.index[1].lag == 1


def test_the_command_line() -> None:
    ranged = V9.replace("K = 4096", "K = 64..16384")
    for text, name, value, words in (
        (V9, "M", 0, "M=0: a size lies in 1..2147483647"),
        (V9, "M", -1, "M=-1: a size lies in 1..2147483647"),
        (V9, "M", 2**31, "M=2147483648: a size lies in 1..2147483647"),
        (V9, "M", 10**5000, "a number of 16610 bits: a size lies in 1..2147483647"),
        (V9, "L", 1, "L=1: spec.gemmspec has the axes M, N, K"),
        (V9, "m", 1, "did you mean M=1?"),
        (ranged, "K", 20000, "K=20000: spec.gemmspec takes 64..16384"),
    ):
        with pytest.raises(SizeError, match=re.escape(words)):
            run(text, {name: value})
    spec, found = run(ranged, {"K": 16384})
    assert spec is not None and spec.sizes[2].low == 16384 and not found
    spec, found = run(V9, target=TARGETS["sm_90a"])
    assert spec is not None and spec.target is TARGETS["sm_90a"] and not found


def test_labels_point_to_the_first_definition() -> None:
    text = edited(("barrier ld2mma ", "barrier mma2ld "))
    _, (found,) = run(text)
    (label,) = found.labels
    assert label.span.start == text.index("mma2ld ")


def test_a_wrong_value_leaves_a_spec_for_independent_rules() -> None:
    for old, new in (
        ("stages   4", "stages 65"),
        ("phase 1  multicast 0b11", "phase 7"),
        ("128 x 128 x 64", "128 x 0 x 64"),
    ):
        spec, found = run(V9.replace(old, new, 1))
        assert found and spec is not None
    spec, found = run(edited(("warp 3", "warp 4")))
    assert found and spec is None


def test_lines_that_cannot_be_read_are_not_missing() -> None:
    for old, new in (
        ("role consumer  = mma ", "role consumer  = = mma "),
        ("stages   4", "stages   four"),
        ("barrier mma2ld ", "barrier mma2ld ( "),
        ("cluster  2 x 1", "cluster 2 by 1"),
        ("K = 4096", "K 4096"),
        ("N = 4096, K", "N = 4096 K"),
    ):
        text = edited((old, new)) + "program writeback {\n for tile {\n wait mma2ld\n }\n}\n"
        source = SourceFile("test", text)
        tree, errors = parse(source)
        assert errors
        assert pointed(text, list(resolve(tree, source)[1])) == []
    empty = SourceFile("test", "")
    assert [d.code for d in resolve(SpecNode(()), empty)[1]] == ["GS003"]


def test_suggest() -> None:
    assert suggest("consumr", ["consumer", "producer"]) == "consumer"
    assert suggest("a", ["A", "B"]) == "A"
    assert suggest("C", ["A", "B"]) is None
    assert suggest("consumer3", ["consumer1", "consumer2"]) is None
    assert suggest("", ["x"]) is None and suggest("word", []) is None


def test_never_raises_and_points_into_the_text() -> None:
    body = tiles(
        "consumer", "wait ld2mma[self]\nfor k {\nwait tma2mma\nmma [stage - 1] into 0\ncommit mma2tma\n}\ncommit mma2ld"
    )
    text = body + "program producer {\n for tile {\n for k - 1 {\n load A[0] B tma2mma[stage]\n }\n }\n}\n"
    words = re.findall(r"\w+|\S|\s+", text)
    rng = random.Random(1)
    for _ in range(200):
        mutated = words.copy()
        for _ in range(rng.randint(1, 4)):
            i = rng.randrange(len(mutated))
            mutated[i] = rng.choice(["", rng.choice(words), "0", "-1", "99999999999", "first", "stage", "{", "\n"])
        source = SourceFile("test", "".join(mutated))
        tree, _ = parse(source)
        _, found = resolve(tree, source)
        for d in found:
            check_style(d)
            for at in (d.span, *(label.span for label in d.labels)):
                assert 0 <= at.start <= at.end <= len(source.text)
