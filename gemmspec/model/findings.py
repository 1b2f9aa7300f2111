"""Collects what `resolve` finds wrong, so that one run reports all errors of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gemmspec.diagnostics import Diagnostic, Edit, Fix, Label, Severity
from gemmspec.source import SourceFile, Span
from gemmspec.suggest import suggest
from gemmspec.syntax.nodes import Number, Range, Value, Word

LONGEST_SHOWN = 40
LINE_ENDS = re.compile(r"[^\S\n]*([{}#\n]|\Z)")


class Findings:
    """The diagnostics of one run of `resolve`, in the order found."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        label: str = "",
        labels: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        helps: tuple[str, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add an error."""
        self.diagnostics.append(Diagnostic(code, Severity.ERROR, message, span, label, labels, notes, helps, fix))

    def incomplete(self, code: str, message: str, span: Span, written: Span, helps: tuple[str, ...] = ()) -> None:
        """Add an error on what `written` lacks, unless its line goes on with text that could not be read."""
        if LINE_ENDS.match(self.source.text, written.end):
            self.error(code, message, span, helps=helps)

    def unknown(self, code: str, what: str, word: Word, options: Iterable[str]) -> str | None:
        """Add `unknown WHAT`, with the word that was meant where that is certain, and return that word."""
        known = sorted(set(options))
        meant = suggest(word.text, known)
        message = f"unknown {what} `{shown(word.text)}`"
        if meant is None:
            self.error(code, message, word.span, notes=(known_words(known),) if known else ())
            return None
        helps = (f"did you mean `{meant}`?",)
        self.error(code, message, word.span, helps=helps, fix=replacement(word.span, meant))
        return meant

    def in_range(self, what: str, number: Number, low: int, high: int) -> int | None:
        """Return the number, or None and a finding where it lies outside low..high."""
        if low <= number.value <= high:
            return number.value
        self.error("GS006", f"{what} is {shown(number.text)}, out of range {low} to {high}", number.span)
        return None

    def repeated(self, code: str, what: str, first: Span, second: Span) -> None:
        """Add `WHAT is given twice`, at the second place, and point to the first."""
        snippet = self.source.snippet
        same = snippet(first) == snippet(second)
        fix = Fix("delete the second", (Edit(second, ""),)) if same else None
        helps = ("delete the second",) if same else ("keep one of the two",)
        labels = (Label(first, "first given here"),)
        self.error(code, f"{what} is given twice", second, labels=labels, helps=helps, fix=fix)


def replacement(span: Span, text: str) -> Fix:
    """Return the fix that writes `text` in place of a word."""
    return Fix(f"write `{text}`", (Edit(span, text),))


def backwards(what: str, written: Range, code: str, findings: Findings) -> None:
    """Add a finding on a range whose first number is above its last."""
    first, last = shown(written.first.text), shown(written.last.text)
    right = f"{last}..{first}"
    message = f"the {what} runs backwards, from {first} to {last}"
    findings.error(code, message, written.span, helps=(f"write `{right}`",), fix=replacement(written.span, right))


def known_words(words: Iterable[str]) -> str:
    """Return a note that lists the words that may stand in a place."""
    return "known: " + ", ".join(f"`{word}`" for word in words)


def shown(text: str) -> str:
    """Return a written word or number, cut where it would fill the line."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def shown_number(value: int) -> str:
    """Return a number in decimal; a huge one by its length, for Python refuses to write more than 4300 digits."""
    return str(value) if value.bit_length() <= 64 else f"a number of {value.bit_length()} bits"


def shown_value(value: Value) -> str:
    """Return a word or number as written, for a message."""
    return shown(value.text)


def plural(count: int, noun: str) -> str:
    """Return `1 slot` or `4 slots`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
