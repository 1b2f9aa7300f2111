"""The formatter: its layout, and that it changes nothing but white space."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs_text import EVERYTHING, V9

from gemmspec.source import SourceFile
from gemmspec.syntax.format import format_source
from gemmspec.syntax.nodes import without_spans
from gemmspec.syntax.parse import parse


def form(text: str) -> str:
    return format_source(SourceFile("t", text))


def test_the_design_s_example_is_in_the_canonical_layout() -> None:
    assert form(V9) == V9


def test_columns() -> None:
    text = """

kernel a   #k
target b
gemm D[ M,N ]f16=A[M , K]f16@B[N,K] ^ T f16
sizes M=-4,K=1 .. 2
# between
accumulators 2 # two
role a=tma,mma on warpgroup 0 warps 0 ..1 multicast A B  # a

# far
role abc = epilogue on warpgroup 1
role b=mma on warpgroup 2   # b


barrier b [consumer x accumulators] a,b->c phase 0 via tma
barrier b a->c at cta 0
barrier bar [2] a->ccc via tma at cta 0 multicast 0b11 # bar
barrier bar [2] a->ccc via commit phase 1
"""
    assert (
        form(text)
        == """\
kernel a  #k
target b
gemm         D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16
sizes        M = -4, K = 1..2
# between
accumulators 2  # two
role a = tma, mma  on warpgroup 0 warps 0..1 multicast A B  # a

# far
role abc = epilogue  on warpgroup 1
role b   = mma       on warpgroup 2  # b

barrier b   [consumer x accumulators]  a, b -> c    phase 0  via tma
barrier b                              a    -> c                         at cta 0
barrier bar [2]                        a    -> ccc  via tma              at cta 0  multicast 0b11  # bar
barrier bar [2]                        a    -> ccc  via commit  phase 1
"""
    )


def test_programs() -> None:
    text = """program a{for tile{ mma [stage-1,self] into 0 # m
}}#end
program b {   # head

   # only

  for k-1 { #kk


  wait x [ stage + 1 ]
# last

}
for 4{}
    if k==first{retire - 1}

}
"""
    expected = """program a {
  for tile {
    mma [stage - 1, self] into 0  # m
  }
}  #end
program b {  # head
  # only

  for k - 1 {  #kk
    wait x[stage + 1]
    # last
  }
  for 4 {
  }
  if k == first {
    retire -1
  }
}
"""
    assert form(text) == expected


@pytest.mark.parametrize("text", ["kernel\n", "  kernel a\n stages\n", "\0", "program p {"])
def test_a_text_with_errors_stays(text: str) -> None:
    assert form(text) == text


def test_ends() -> None:
    assert form("") == form("\n \n") == ""
    assert form("\ufeffkernel  a") == form(" kernel a\r\n\r\n\r\n") == "kernel a\n"
    assert form("kernel a # b \r\n#c\t\r\n") == "kernel a  # b\n#c\n"


def tokens_of(text: str) -> list[str]:
    """Return comments, words and marks in order, by a splitter that shares nothing with the parser."""
    return re.findall(r"#[^\r\n]*[^\s]|#|\w+|->|==|!=|\.\.|[^\s\w]", text)


ITEMS = [line for text in (V9, EVERYTHING) for line in text.split("program")[0].splitlines() if line.strip()]
PROGRAM = EVERYTHING[EVERYTHING.index("program") :].splitlines()
GAPS = st.sampled_from([" ", "  ", "\t", "   "])
BETWEEN = st.sampled_from(
    ["\n", "\n", "\n\n", "\n\n\n\n", "  # note\n", "\n# note\n", "\n\n   # a # b\n\n", "\r\n", " \n"]
)


@st.composite
def specs(draw: st.DrawFn) -> str:
    """A spec without errors: known lines in any order, with other white space and comments."""
    lines = draw(st.lists(st.sampled_from(ITEMS), max_size=12))
    if draw(st.booleans()):
        lines += PROGRAM
    text = ""
    for line in lines:
        code, hash_, comment = line.partition("#")
        text += draw(st.sampled_from(["", " ", "\t"])) + draw(GAPS).join(code.split()) + hash_ + comment
        text += "\n" if hash_ else draw(BETWEEN)
    return text


@settings(deadline=None, max_examples=300)
@given(specs())
def test_formatting_keeps_meaning_and_comments_and_is_a_fixpoint(text: str) -> None:
    spec, errors = parse(SourceFile("t", text))
    assert errors == ()
    formatted = form(text)
    again, errors = parse(SourceFile("t", formatted))
    assert errors == ()
    assert without_spans(again) == without_spans(spec)
    assert tokens_of(formatted) == tokens_of(text)
    assert form(formatted) == formatted
    assert "\n\n\n" not in formatted and not re.search(r"[ \t]\n", formatted)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*V9.split(), *EVERYTHING.split(), "\n", "\n", "#", "{", "}"]), max_size=40))
def test_formatting_any_text_is_a_fixpoint(words: list[str]) -> None:
    formatted = form(" ".join(words))
    assert form(formatted) == formatted
