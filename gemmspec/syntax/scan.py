"""Splits text into tokens, and settles what must be settled before parsing: encoding, odd characters, braces.

What it returns has balanced braces, nested at most `MAX_DEPTH` deep; what was wrong with them is a diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gemmspec.diagnostics import Diagnostic, Label, Severity
from gemmspec.source import SourceFile, Span
from gemmspec.syntax.tables import COMMENT, END, NAME, NEWLINE, NUMBER, SPACE, Tables

MAX_CHARACTERS = 1 << 20
MAX_TOKENS = 1 << 18
MAX_DEPTH = 32
MAX_ERRORS = 50
MAX_NUMBER = 80  # characters of one number: 64 binary digits with separators fit

MARK = "<MARK>"
OTHER = "<OTHER>"

_SAVE = ("save the file as UTF-8",)

# Controls but tab and line ends; marks that reorder what is shown (UAX 9); halves of surrogate pairs.
_UNREADABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")


class Token(NamedTuple):
    """`kind` is the terminal of the grammar, but a keyword has the kind of a name: the parser tells them apart."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


def error(code: str, message: str, span: Span, *notes: str, helps: tuple[str, ...] = ()) -> Diagnostic:
    """Return an error without labels."""
    return Diagnostic(code, Severity.ERROR, message, span, notes=notes, helps=helps)


def decode(name: str, data: bytes) -> tuple[SourceFile, tuple[Diagnostic, ...]]:
    """Return the text of a file; bytes that are not UTF-8 are an error, and stand as U+FFFD in the text."""
    wide = _utf16(data[:256])
    if wide is not None:
        text = data.decode(wide, "replace").removeprefix("\ufeff")
        message = f"file is {wide.upper()}, not UTF-8"
        return SourceFile(name, text), (error("GS002", message, Span(0, 0), helps=_SAVE),)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return SourceFile(name, data.decode("utf-8")), ()
    except UnicodeDecodeError as failure:
        place = len(data[: failure.start].decode("utf-8"))
        message = f"byte 0x{data[failure.start]:02x} at offset {failure.start} is not UTF-8"
        found = error("GS002", message, Span(place, place + 1), helps=_SAVE)
        return SourceFile(name, data.decode("utf-8", "replace")), (found,)


def _utf16(head: bytes) -> str | None:
    """Return the UTF-16 that a file's first bytes are surely in: by its mark, or by every other byte being NUL."""
    low, high = head[1::2], head[::2]
    if head.startswith(b"\xff\xfe") or low.count(0) * 2 > len(low):
        return "utf-16-le"
    if head.startswith(b"\xfe\xff") or high.count(0) * 2 > len(high):
        return "utf-16-be"
    return None


def oversize(text: str) -> Diagnostic | None:
    """Return the error on a text that is too long to be a spec."""
    if len(text) <= MAX_CHARACTERS:
        return None
    return error("GS002", f"text has {len(text)} characters, more than the limit of {MAX_CHARACTERS}", Span(0, 0))


def overfull(found: list[Token]) -> Diagnostic | None:
    """Return the error on a text that has too many tokens to be a spec."""
    if len(found) <= MAX_TOKENS:
        return None
    return error("GS002", f"text has more words and marks than the limit of {MAX_TOKENS}", found[-1].span)


def unreadable(text: str) -> Iterator[Diagnostic]:
    """Yield an error on the first character that no editor shows as it is, if there is one."""
    first = _UNREADABLE.search(text)
    if first is None:
        return
    count = sum(1 for _ in _UNREADABLE.finditer(text))
    what = "lone carriage return" if first[0] == "\r" else "control character"
    notes = (f"the text has {count} such characters",) if count > 1 else ()
    yield error("GS002", f"{what} U+{ord(first[0]):04X} in the text", Span(*first.span()), *notes, helps=("delete it",))


def tokens(tables: Tables, text: str) -> list[Token]:
    """Return all tokens but white space, comments included. Ends in an `END` token. Stops after `MAX_TOKENS`."""
    found: list[Token] = []
    kinds: dict[str | None, str] = {group: f"<{group}>" for group in tables.pattern.groupindex}
    for match in tables.pattern.finditer(text, 1 if text.startswith("\ufeff") else 0):
        kind = kinds[match.lastgroup]
        if kind == SPACE:
            continue
        word = match[0]
        if kind == MARK:
            kind = word
        elif kind == NUMBER and len(word) > MAX_NUMBER:
            kind = OTHER
        elif kind == OTHER and _UNREADABLE.match(word):
            continue  # has its own error
        found.append(Token(kind, word, *match.span()))
        if len(found) > MAX_TOKENS:
            break
    found.append(Token(END, "", len(text), len(text)))
    return found


def balance(tables: Tables, found: list[Token]) -> tuple[list[Token], list[Diagnostic]]:
    """Return the tokens without comments and with balanced braces, and what was wrong with the braces.

    A block that is still open where an item starts ends there. What is nested too deep is left out.
    """
    out: list[Token] = []
    errors: list[Diagnostic] = []
    opened: list[tuple[Token, int]] = []  # each open brace, and the indentation of its line
    suspect: Token | None = None  # the brace whose partner is missing, to judge by the indentation
    deepest = 0
    line = indent = 0
    first = True
    items = tables.starts["item"]
    for token in found:
        kind = token.kind
        if kind == COMMENT:
            continue
        if opened and (kind == END or (first and kind == NAME and token.text in items)):
            errors.append(_unclosed(suspect or opened[-1][0], token))
            ends = [Token("}", "", token.start, token.start)] * min(len(opened), MAX_DEPTH + 1)
            out.extend((*ends, Token(NEWLINE, "", token.start, token.start)))
            opened, suspect = [], None
        if kind == NEWLINE:
            line, first = token.end, True
        elif first:
            indent, first = token.start - line, False
            if kind == "}" and opened and indent < opened[-1][1]:
                suspect = suspect or opened[-1][0]
        depth = len(opened)
        if kind == "{":
            if depth == MAX_DEPTH and deepest <= MAX_DEPTH:
                message = f"block is nested {depth + 1} deep, more than the limit of {MAX_DEPTH}"
                errors.append(error("GS002", message, token.span))
            opened.append((token, indent))
            deepest = max(deepest, depth + 1)
        elif kind == "}":
            if not opened:
                if len(errors) <= MAX_ERRORS:
                    errors.append(error("GS001", "`}` closes no block", token.span, helps=("delete it",)))
                continue
            opened.pop()
            depth -= 1
        if depth <= MAX_DEPTH:
            out.append(token)
    return out, errors


def _unclosed(brace: Token, at: Token) -> Diagnostic:
    end = at.kind == END
    return Diagnostic(
        "GS001",
        Severity.ERROR,
        f"`{{` is not closed before {'the end of the file' if end else f'`{at.text}`'}",
        brace.span,
        labels=() if end else (Label(at.span, "cannot stand in a block"),),
        helps=("write `}` where the block ends",),
    )
