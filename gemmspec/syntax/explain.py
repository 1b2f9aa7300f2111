"""Says in a user's words why a token cannot stand where it does, and which one was surely meant.

Judges one token against what the grammar expects at its place. Does not decide how parsing goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gemmspec.diagnostics import Diagnostic, Edit, Fix, Severity
from gemmspec.source import Span
from gemmspec.suggest import suggest
from gemmspec.syntax.scan import OTHER, Token, error
from gemmspec.syntax.tables import BROKEN, BROKEN_PROPERTY, END, NAME, NEWLINE, NUMBER, Tables

_MAX_SHOWN = 40
_MAX_LISTED = 5
_WORDS = {
    NAME: "a name",
    NUMBER: "a number",
    NEWLINE: "the end of the line",
    "item": "a line's first keyword",
    "property": "a property",
}
_ENDS = {NEWLINE, END, "}"}


class Place(NamedTuple):
    """The line so far (`before`), the token that does not fit, and the terminals that would."""

    before: Sequence[Token]
    token: Token
    expected: frozenset[str]


def explain(tables: Tables, place: Place) -> tuple[Diagnostic, str | None]:
    """Return the error, and the keyword that the token was surely meant to be."""
    token = place.token
    if token.kind == NAME:
        return _word(tables, place)
    if token.kind == OTHER:
        return _other(tables, place), None
    opener = place.before[0] if place.before else None
    if token.kind == "{" and opener is not None and opener.kind == NAME and opener.text not in tables.keywords:
        meant = suggest(opener.text, _keywords(tables.starts["statement"]))
        return _unknown(opener, "no block starts with", meant, _keywords(tables.starts["statement"])), None
    return _unexpected(tables, place), None


def _word(tables: Tables, place: Place) -> tuple[Diagnostic, str | None]:
    token, expected = place.token, place.expected
    keywords = _keywords(expected)
    meant = suggest(token.text, keywords)
    if expected >= tables.starts["item"] - {BROKEN}:
        return _unknown(token, "no line starts with", meant, keywords), meant
    if meant is not None and token.text not in tables.keywords:
        return _unknown(token, "unknown keyword", meant, keywords), meant
    return _unexpected(tables, place), None


def _unknown(token: Token, words: str, meant: str | None, keywords: Sequence[str]) -> Diagnostic:
    listed = ", ".join(f"`{keyword}`" for keyword in keywords)
    return Diagnostic(
        "GS004",
        Severity.ERROR,
        f"{words} `{_clip(token.text)}`",
        token.span,
        notes=(f"known here: {listed}",) if meant is None else (),
        helps=(f"write `{meant}`",) if meant is not None else (),
        fix=Fix(f"write `{meant}`", (Edit(token.span, meant),)) if meant is not None else None,
    )


def _other(tables: Tables, place: Place) -> Diagnostic:
    text = place.token.text
    span = place.token.span
    if text.isascii() and text.replace("x", "").isdigit() and "x" in text:
        spaced = " ".join(text.replace("x", " x ").split())
        return Diagnostic(
            "GS001",
            Severity.ERROR,
            f"`{_clip(text)}` is not a number",
            span,
            helps=("write spaces around `x`",),
            fix=Fix("write spaces around `x`", (Edit(span, spaced),)),
        )
    if text[0].isdigit() and not (NAME in place.expected and NUMBER not in place.expected):
        what = f"of {len(text)} characters is too long" if text.isdigit() else "is not a number"
        return error("GS001", f"`{_clip(text)}` {what}", span, "a number is written as `12`, `0b11` or `0xff`")
    if len(text) > 1 or text.isalnum():
        return error(
            "GS001",
            f"`{_clip(text)}` is not a name",
            span,
            "a name has letters a to z, digits and `_`, and begins with no digit",
        )
    return _unexpected(tables, place)


def _unexpected(tables: Tables, place: Place) -> Diagnostic:
    token = place.token
    wanted = _wanted(tables, place.expected)
    after = f" after `{_clip(place.before[-1].text)}`" if place.before else " at the start of a line"
    if token.kind in (NEWLINE, END):
        end = place.before[-1].end if place.before else token.start
        found, span = "the line ends", Span(end, end)
    else:
        found, span = f"unexpected {_shown(token.text)}", token.span
    if len(wanted) <= _MAX_LISTED:
        return error("GS001", f"{found}{after}, where {_either(wanted)} should stand", span)
    return error("GS001", f"{found}{after}", span, f"{_either(wanted)} could stand here")


def _wanted(tables: Tables, expected: frozenset[str]) -> list[str]:
    """Return the expected terminals in words, the most telling first."""
    left = set(expected) - {BROKEN, BROKEN_PROPERTY}
    if NUMBER in left or len(left) > 2:
        left -= {"+", "-"}  # allowed nearly everywhere, and never the answer
    if NEWLINE in left:
        left -= _ENDS
        left.add(NEWLINE)
    for group in ("item", "property"):
        members = tables.starts[group] - {BROKEN, BROKEN_PROPERTY}
        if members <= left:
            left = (left - members) | {group}
    order = [NAME, NUMBER, "property", "item"]
    ranked = sorted(left, key=lambda t: (t == NEWLINE, order.index(t) if t in order else len(order), t))
    return [_WORDS.get(terminal, f"`{terminal}`") for terminal in ranked]


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _keywords(expected: frozenset[str]) -> list[str]:
    return sorted(terminal for terminal in expected if terminal[0].isalpha())


def _shown(text: str) -> str:
    return f"`{_clip(text)}`" if text.isprintable() else f"character U+{ord(text[0]):04X}"


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
