"""The parser: what each construct becomes, what is said of broken text, and that nothing makes it fail."""

from __future__ import annotations

import logging
from pathlib import Path

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs_text import EVERYTHING, V9

from gemmspec.source import SourceFile, Span
from gemmspec.syntax import scan, tables
from gemmspec.syntax.nodes import (
    ActNode,
    BarrierNode,
    BlockNode,
    ClusterNode,
    CountNode,
    ForNode,
    GemmNode,
    IfNode,
    Number,
    ProgramNode,
    RoleNode,
    SizesNode,
    SpecNode,
    Word,
    without_spans,
)
from gemmspec.syntax.parse import decode, parse


def read(text: str) -> SpecNode:
    """Parse a text that has no errors."""
    spec, errors = parse(SourceFile("t", text))
    assert errors == ()
    return spec


def statements(text: str) -> tuple[object, ...]:
    """Return what the lines of a program are read as."""
    (program,) = read(f"program p {{\n{text}\n}}").items
    assert isinstance(program, ProgramNode)
    return program.body


def words(values: object) -> list[str]:
    assert isinstance(values, tuple)
    return [value.text for value in values]


# What each construct becomes.


def test_v9_is_read_whole() -> None:
    kinds = [type(item).__name__ for item in read(V9).items]
    assert kinds == [
        *("KernelNode", "TargetNode", "GemmNode", "SizesNode", "ClusterNode", "BlockNode", "CountNode"),
        *("ScheduleNode", "RoleNode", "RoleNode", "RoleNode"),
        *("BarrierNode", "BarrierNode", "BarrierNode", "BarrierNode", "ProgramNode"),
    ]


def test_spans_cover_what_was_written() -> None:
    source = SourceFile("t", V9)
    barrier = next(item for item in read(V9).items if isinstance(item, BarrierNode))
    assert barrier.slots is not None
    shown = [barrier.name.span, barrier.slots.span, *(prop.span for prop in barrier.properties)]
    assert [source.snippet(span) for span in shown] == [
        *("tma2mma", "[stages]", "via tma", "arrivals 1", "phase 0", "at cta 0"),
    ]
    role = next(item for item in read(V9).items if isinstance(item, RoleNode))
    assert source.snippet(role.placement.span) == "on warpgroup 2 warp 3"
    program = next(item for item in read(V9).items if isinstance(item, ProgramNode))
    assert source.snippet(program.head) == "program consumer"
    assert source.snippet(program.span).endswith("  }\n}")
    loop = program.body[0]
    assert isinstance(loop, ForNode)
    assert source.snippet(loop.head) == "for tile"


def test_every_construct_is_read() -> None:
    items = read(EVERYTHING).items
    sizes = next(item for item in items if isinstance(item, SizesNode)).sizes
    ranges = [(size.value.first.value, size.value.last.value) for size in sizes if size.value is not None]
    assert ranges == [(-4, -4), (64, 16384)]
    assert sizes[2].dynamic is not None
    assert words(next(item for item in items if isinstance(item, ClusterNode)).dims) == ["2"]
    assert words(next(item for item in items if isinstance(item, BlockNode)).dims) == ["128", "0x80", "64", "1"]
    counts = [(item.keyword.text, item.value.value) for item in items if isinstance(item, CountNode)]
    assert counts == [("stages", -1), ("accumulators", 2)]
    load, math = (item for item in items if isinstance(item, RoleNode))
    assert [(p.name.text, words(p.values)) for p in load.properties] == [("multicast", ["A", "B"])]
    assert words(math.kinds) == ["mma", "epilogue"]
    properties = [(p.name.text, words(p.values)) for p in math.properties]
    assert properties == [("release", ["after", "read"]), ("colour", ["3"])]
    full, empty, bare = (item for item in items if isinstance(item, BarrierNode))
    assert full.slots is not None and empty.slots is not None
    assert words(empty.slots.factors) == ["math", "accumulators", "2"]
    assert (words(empty.sources), words(empty.waiters)) == (["math", "load"], ["load", "math"])
    assert bare.slots is None


def test_dynamic_speaks_of_the_bare_names_before_it() -> None:
    (sizes,) = read("sizes L, M = 4, N, K dynamic").items
    assert isinstance(sizes, SizesNode)
    assert [size.dynamic is not None for size in sizes.sizes] == [False, False, True, True]


def test_a_gemm_without_transposition_or_accumulator() -> None:
    (gemm,) = read("gemm D[M, N] f16 = A[M, K] f16 @ B[K, N, T] f16").items
    assert isinstance(gemm, GemmNode)
    assert (words(gemm.right.axes), gemm.right.transposed, gemm.accumulate) == (["K", "N", "T"], False, None)


@pytest.mark.parametrize(
    ("text", "verb", "refs", "index", "numbers", "tail"),
    [
        ("wait a[stage]", "wait", [("a", ["stage"])], None, [], None),
        ("wait a", "wait", [("a", None)], None, [], None),
        ("load A a[stage, self]", "load", [("A", None), ("a", ["stage", "self"])], None, [], None),
        ("load A[1] a[3]", "load", [("A", ["1"]), ("a", ["3"])], None, [], None),
        ("expect a[stage] 49_152", "expect", [("a", ["stage"])], None, [49152], None),
        ("mma", "mma", [], None, [], None),
        ("mma [stage] into 0", "mma", [], ["stage"], [], ("into", "0")),
        ("read from 0", "read", [], None, [], ("from", "0")),
        ("retire -1", "retire", [], None, [-1], None),
        ("sync cluster", "sync", [("cluster", None)], None, [], None),
    ],
)
def test_a_statement(
    text: str, verb: str, refs: object, index: object, numbers: list[int], tail: tuple[str, str] | None
) -> None:
    (act,) = statements(text)
    assert isinstance(act, ActNode)
    bases = [(r.name.text, None if r.index is None else [term.base.text for term in r.index]) for r in act.refs]
    assert (act.verb.text, bases) == (verb, refs)
    assert (None if act.index is None else [term.base.text for term in act.index]) == index
    assert [number.value for number in act.numbers] == numbers
    assert (None if act.tail is None else (act.tail[0].text, act.tail[1].text)) == tail


def test_lags_count_back_and_offsets_forward() -> None:
    loop, act = statements("for k - 1 {\n}\nwait a[stage - 2, self + 1, -3]")
    assert isinstance(loop, ForNode) and isinstance(act, ActNode)
    assert (loop.over.text, loop.offset) == ("k", -1)
    index = act.refs[0].index
    assert index is not None
    assert [(term.base.text, term.lag) for term in index] == [("stage", 2), ("self", -1), ("-3", 0)]


def test_conditions() -> None:
    first, second = statements("if k == first { mma }\nif chunk != 0 { mma }")
    assert isinstance(first, IfNode) and isinstance(second, IfNode)
    assert (first.over.text, first.equal, first.which.text) == ("k", True, "first")
    assert (second.over.text, second.equal, second.which.text) == ("chunk", False, "0")


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1_000", 1000), ("0b1_1", 3), ("0X3f", 63), ("-4", -4), ("- 4", -4), ("007", 7)],
)
def test_a_number(text: str, value: int) -> None:
    (count,) = read(f"stages {text}").items
    assert isinstance(count, CountNode)
    assert count.value == Number(value, text.replace(" ", ""), Span(7, 7 + len(text)))


def test_a_keyword_is_a_name_where_no_keyword_can_stand() -> None:
    role, barrier, _ = read(
        "role role = stages, on on warpgroup 0\n"
        "barrier barrier [x x x] role, NUMBER -> spec\n"
        "program program {\n  sync program if into 0\n}"
    ).items
    assert isinstance(role, RoleNode) and isinstance(barrier, BarrierNode)
    assert (role.name.text, words(role.kinds)) == ("role", ["stages", "on"])
    assert barrier.slots is not None
    assert words(barrier.slots.factors) == ["x", "x"]
    assert words(barrier.sources) == ["role", "NUMBER"]


def test_line_ends_tabs_and_marks_make_no_difference() -> None:
    expected = without_spans(read(V9))
    for text in (V9.replace("\n", "\r\n"), "\ufeff" + V9, V9.rstrip(), V9.replace("  ", "\t"), "\n\n" + V9 + "\n \n"):
        assert without_spans(read(text)) == expected


def test_blocks_may_stand_on_one_line() -> None:
    assert without_spans(read("program p { for k { mma } }")) == without_spans(
        read("program p {\n\n  for k { # once\n    mma\n  }\n}\n")
    )


# Limits: refused or read, but never slowly.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#" * 10_000_000, "text has 10000000 characters, more than the limit of 1048576"),
        ("x " * 500_000, "text has more words and marks than the limit of 262144"),
        ("program p {\n" + "for k {\n" * 10_000 + "}\n" * 10_001, "block is nested 33 deep, more than the limit of 32"),
        ("program p {\n" + "for k {\n" * 10_000, "`{` is not closed before the end of the file"),
        ("program p " + "{\n" * 10_000, "block is nested 33 deep, more than the limit of 32"),
    ],
)
def test_what_no_spec_needs_is_refused(text: str, message: str) -> None:
    assert message in {d.message for d in parse(SourceFile("t", text))[1]}


def test_ten_thousand_barriers_are_read() -> None:
    line = "barrier b{} [stages] producer -> consumer via tma arrivals 1 phase 0 at cta 0\n"
    assert len(read("".join(line.format(i) for i in range(10_000))).items) == 10_000


def test_the_deepest_block_that_is_allowed() -> None:
    depth = scan.MAX_DEPTH - 1
    read("program p {\n" + "for k {\n" * depth + "}\n" * depth + "}")


# Nothing makes the parser fail.

FRAGMENTS = sorted({*V9.split(), *EVERYTHING.split(), "\n", "{", "}", "#", "\0", "é", "0b2", "[", "]", "-", "BROKEN"})


def check_any(text: str) -> None:
    spec, errors = parse(SourceFile("t", text))
    assert isinstance(spec, SpecNode)
    for error in errors:
        for span in (error.span, *(label.span for label in error.labels)):
            assert 0 <= span.start <= span.end <= len(text)
        assert "\n" not in error.message and not error.message.endswith(".")
    for span in spans_in(spec):
        assert 0 <= span.start <= span.end <= len(text)


def spans_in(node: object) -> list[Span]:
    if isinstance(node, Span):
        return [node]
    if isinstance(node, tuple):
        return [span for part in node for span in spans_in(part)]
    slots = getattr(node, "__dataclass_fields__", {})
    return [span for name in slots for span in spans_in(getattr(node, name))]


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_any_text_is_read_or_reported(text: str) -> None:
    check_any(text)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60).map(" ".join))
def test_any_order_of_words_is_read_or_reported(text: str) -> None:
    check_any(text)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_change_of_a_spec_is_read_or_reported(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([V9, EVERYTHING]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        text = text[:start] + data.draw(st.sampled_from(["", *FRAGMENTS])) + text[end:]
    check_any(text)


@settings(deadline=None, max_examples=100)
@given(st.binary())
def test_any_bytes_are_decoded_or_reported(data: bytes) -> None:
    source, errors = decode("t", data)
    assert all(error.span.end <= len(source.text) for error in errors)


# The grammar and its tables.


def test_the_grammar_has_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, lark.logger.name):
        parser = lark.Lark(tables.grammar_text(), parser="lalr", start="spec", debug=True)
    assert [record.message for record in caplog.records if "onflict" in record.message] == []
    parser.parse(V9)
    parser.parse(EVERYTHING)


def test_tables_are_kept_and_a_damaged_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = load_tables()
    (kept,) = (tmp_path / "gemmspec").iterdir()
    content = kept.read_text("utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "compile_grammar", lambda grammar: pytest.fail("the kept tables were not used"))
        assert load_tables() == made
    for damaged in ("", "{}", "\0", content[:-1], content.replace("spec:", "spoc:"), content.replace("12", "21")):
        kept.write_text(damaged, "utf-8")
        # Lark numbers the states anew each time, so that the tables as a whole may differ.
        assert load_tables().starts == made.starts
        assert kept.read_text("utf-8") != damaged
    assert [path.name for path in (tmp_path / "gemmspec").iterdir()] == [kept.name]


def test_a_cache_folder_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gemmspec").write_text("a file", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load_tables().starts == tables.tables().starts
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert tables.cache_folder() is None


def load_tables() -> tables.Tables:
    """Return the tables as a process that starts now would get them."""
    return tables.tables.__wrapped__()


def test_a_name_is_a_word_with_its_place() -> None:
    (kernel,) = read("kernel  k_1").items
    assert kernel.name == Word("k_1", Span(8, 11))  # pyright: ignore[reportAttributeAccessIssue]
