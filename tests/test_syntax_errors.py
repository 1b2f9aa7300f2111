"""What the parser says of broken text, where it points, and what it reads all the same."""

from __future__ import annotations

import pytest
from specs_text import V9

from gemmspec.source import SourceFile
from gemmspec.syntax import scan
from gemmspec.syntax.nodes import ActNode, BarrierNode, CountNode, ForNode, ProgramNode, RoleNode
from gemmspec.syntax.parse import decode, parse


def errors_of(text: str) -> list[tuple[int, str, str, str]]:
    """Return the line, code, marked text and message of each error."""
    source = SourceFile("t", text)
    return [(source.position(d.span.start)[0], d.code, source.snippet(d.span), d.message) for d in parse(source)[1]]


def only(text: str) -> tuple[str, str, str]:
    """Return the code, marked text and message of a text with one error."""
    (found,) = errors_of(text)
    return found[1:]


def test_each_broken_line_is_reported_and_all_others_are_read() -> None:
    lines = V9.splitlines()
    lines[8] = "stages four"
    lines[13] = "role writeback = epilogue at warpgroups 0..1"
    lines[24] = "      wait tma2mma[stage"
    text = "\n".join(lines)
    assert [(line, code) for line, code, *_ in errors_of(text)] == [(9, "GS001"), (14, "GS001"), (25, "GS001")]
    spec, _ = parse(SourceFile("t", text))
    whole, _ = parse(SourceFile("t", V9))
    expected = [item for item in whole.items if not isinstance(item, CountNode)]
    assert len(spec.items) == len(expected) - 1
    assert spec.unread >= {"stages", "four", "role", "writeback", "wait", "tma2mma"}
    program = spec.items[-1]
    assert isinstance(program, ProgramNode) and isinstance(program.body[0], ForNode)
    inner = program.body[0].body[1]
    assert isinstance(inner, ForNode)
    assert [act.verb.text for act in inner.body if isinstance(act, ActNode)] == ["mma", "commit"]


@pytest.mark.parametrize(
    ("text", "marked", "message"),
    [
        ("target", "", "the line ends after `target`, where a name should stand"),
        ("stages four", "four", "unexpected `four` after `stages`, where a number should stand"),
        ("stages 4 5", "5", "unexpected `5` after `4`, where the end of the line should stand"),
        ("block 128 x x", "x", "unexpected `x` after `x`, where a number should stand"),
        ("sizes M 4", "4", "unexpected `4` after `M`, where `,`, `=`, `dynamic` or the end of the line should stand"),
        ("barrier b [stages a -> b", "a", "unexpected `a` after `stages`, where `]` or `x` should stand"),
        (
            "role a = tma on warp 3",
            "warp",
            "unexpected `warp` after `on`, where `warpgroup` or `warpgroups` should stand",
        ),
        ("stages 4;", ";", "unexpected `;` after `4`, where the end of the line should stand"),
        ("stages\u00a04", "\u00a0", "unexpected character U+00A0 after `stages`, where a number should stand"),
        ("cluster 2x1", "2x1", "`2x1` is not a number"),
        ("stages 0b12", "0b12", "`0b12` is not a number"),
        ("kernel naïve", "naïve", "`naïve` is not a name"),
        ("stages " + "9" * 5000, "9" * 5000, "`" + "9" * 39 + "…` of 5000 characters is too long"),
        ("program p {}}", "}", "`}` closes no block"),
        ("program p\n{\n}", "", "the line ends after `p`, where `{` should stand"),
        ("program p {\n  if k = first {\n  }\n}", "=", "unexpected `=` after `k`, where `!=` or `==` should stand"),
        (
            "program p {\n  mma\n} else {\n}",
            "else",
            "unexpected `else` after `}`, where the end of the line should stand",
        ),
    ],
)
def test_unexpected_text(text: str, marked: str, message: str) -> None:
    assert only(text) == ("GS001", marked, message)


@pytest.mark.parametrize(
    ("text", "marked", "meant"),
    [
        ("barier b a -> b", "barier", "barrier"),
        ("Stages 4", "Stages", "stages"),
        ("progam p {\n}", "progam", "program"),
        ("role a = tma on warpgroop 2", "warpgroop", "warpgroup"),
        ("gemm D[M] f16 = A[M] f16 @ B[M] f16 acumulate f32", "acumulate", "accumulate"),
        ("program p {\n  fro k {\n    mma\n  }\n}", "fro", "for"),
    ],
)
def test_a_misspelled_keyword_has_a_fix(text: str, marked: str, meant: str) -> None:
    (found,) = parse(SourceFile("t", text))[1]
    assert found.code == "GS004"
    assert found.fix is not None
    (edit,) = found.fix.edits
    assert (text[edit.span.start : edit.span.end], edit.text) == (marked, meant)
    assert parse(SourceFile("t", text[: edit.span.start] + edit.text + text[edit.span.end :]))[1] == ()


def test_a_misspelled_keyword_does_not_lose_its_line() -> None:
    spec, _ = parse(SourceFile("t", "rol a = tma on warpgroup 0 wrap 3\n"))
    assert isinstance(spec.items[0], RoleNode)


def test_a_line_keeps_what_stands_before_its_error() -> None:
    spec, errors = parse(SourceFile("t", "barrier b [2] a -> c via tma arrivals @ phase 0\n"))
    (barrier,) = spec.items
    assert isinstance(barrier, BarrierNode)
    assert [prop.name.text for prop in barrier.properties] == ["via"]
    assert len(errors) == 1


def test_the_open_brace_without_partner_is_found_by_the_indentation() -> None:
    text = "program p {\n  for tile {\n    for k {\n      mma\n  }\n}\n"
    source = SourceFile("t", text)
    (found,) = parse(source)[1]
    assert (source.position(found.span.start), source.snippet(found.span)) == ((3, 11), "{")


def test_an_item_ends_the_blocks_that_are_still_open() -> None:
    spec, (found,) = parse(SourceFile("t", "program p {\n  for k {\n    mma\nprogram q {\n  mma\n}\n"))
    assert [item.role.text for item in spec.items if isinstance(item, ProgramNode)] == ["p", "q"]
    assert found.message == "`{` is not closed before `program`"


def test_a_broken_head_takes_its_block_along() -> None:
    spec, errors = parse(
        SourceFile("t", "program p {\n  for - {\n    mma\n  }\n  mma\n}\nstages 4 {\n  mma\n}\nstages 5")
    )
    program, first, second = spec.items
    assert isinstance(program, ProgramNode) and isinstance(first, CountNode) and isinstance(second, CountNode)
    assert len(program.body) == 1
    assert [d.code for d in errors] == ["GS001", "GS001"]


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\u202e", "\ud800", "\r"])
def test_characters_that_no_one_can_see(character: str) -> None:
    code, marked, message = only(f"kernel a # {character} {character}x\nstages 4")
    assert (code, marked) == ("GS002", character)
    assert f"U+{ord(character):04X}" in message


def test_too_many_errors_end_in_one_that_says_so() -> None:
    found = errors_of("stages\n" * 1000)
    assert len(found) == scan.MAX_ERRORS + 1
    assert found[-1][3] == "text has more than 50 errors, the rest is not shown"
    assert len(errors_of("}\n" * 1000)) == scan.MAX_ERRORS + 1


def test_bytes_that_are_no_utf_8() -> None:
    source, (found,) = decode("t", b"kernel \xc3\xa9\xff\n")
    assert found.message == "byte 0xff at offset 9 is not UTF-8"
    assert source.snippet(found.span) == "\ufffd"
    for encoding in ("utf-16-le", "utf-16-be", "utf-16"):
        _, (found,) = decode("t", V9.encode(encoding))
        assert found.code == "GS002" and "UTF-16-" in found.message
    for data in (V9.encode(), V9.encode("utf-8-sig")):
        assert decode("t", data) == (SourceFile("t", V9), ())
