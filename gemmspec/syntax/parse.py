"""Given a `SourceFile`, return the `SpecNode` of all that can be read, and a diagnostic for each line that cannot.

Does not look up names or check values: that is `gemmspec.model`. Never raises, whatever the text.

The loop is a plain LALR automaton over the tables that Lark makes of the grammar. What cannot be read is replaced as
yacc does it: the stack goes back to where a line may start, and a BROKEN token takes the place of the line. So
nothing before or after the line is lost, and the time is linear in the text.
"""

from __future__ import annotations

import gc
from dataclasses import replace

from gemmspec.diagnostics import Diagnostic
from gemmspec.source import SourceFile, Span
from gemmspec.syntax.build import BUILDERS, parse_number
from gemmspec.syntax.explain import Place, explain
from gemmspec.syntax.nodes import Number, SpecNode, Word
from gemmspec.syntax.scan import MAX_ERRORS, Token, balance, decode, error, overfull, oversize, tokens, unreadable
from gemmspec.syntax.tables import BROKEN, BROKEN_PROPERTY, END, NAME, NEWLINE, NUMBER, Tables, tables

__all__ = ["MAX_ERRORS", "decode", "parse"]


def parse(source: SourceFile) -> tuple[SpecNode, tuple[Diagnostic, ...]]:
    """Return what was read, and what was wrong in the order of the text.

    After `MAX_ERRORS` errors comes one that says that there are more.
    """
    collecting = gc.isenabled()
    gc.disable()  # no node refers to one above it, so there is nothing to find, and looking takes a third of the time
    try:
        return _parse(source.text)
    finally:
        if collecting:
            gc.enable()


def _parse(text: str) -> tuple[SpecNode, tuple[Diagnostic, ...]]:
    refused = oversize(text)
    if refused is not None:
        return SpecNode(()), (refused,)
    table = tables()
    scanned = tokens(table, text)
    refused = overfull(scanned)
    if refused is not None:
        return SpecNode(()), (refused,)
    found, errors = balance(table, scanned)
    parser = _Parser(table, found)
    spec = parser.run()
    errors += [*parser.errors, *unreadable(text)]
    errors.sort(key=lambda d: (d.span, d.code))
    if len(errors) > MAX_ERRORS:
        message = f"text has more than {MAX_ERRORS} errors, the rest is not shown"
        errors[MAX_ERRORS:] = [error("GS001", message, errors[MAX_ERRORS].span)]
    return spec, tuple(errors)


class _Many(list[object]):
    """What a repetition has made so far."""


class _Parser:
    """The automaton, its stacks, and its place in the tokens (`at`). `spans` are those of the symbols on the stack.

    `told`: index of the token that ends the last line with an error: a line has one error at most.
    """

    def __init__(self, tables: Tables, tokens: list[Token]) -> None:
        self.tables = tables
        self.tokens = tokens
        self.at = 0
        self.told = -1
        self.states: list[int] = [tables.start]
        self.values: list[object] = []
        self.spans: list[tuple[int, int]] = []
        self.errors: list[Diagnostic] = []
        self.unread: set[str] = set()

    def run(self) -> SpecNode:
        """Parse all the tokens. One flat loop: 10,000 lines go half a million times round it."""
        actions, gotos, end = self.tables.actions, self.tables.gotos, self.tables.end
        rules = [(name, size, keep, BUILDERS.get(name)) for name, size, keep in self.tables.rules]
        states, values, spans, tokens = self.states, self.values, self.spans, self.tokens
        while True:
            kind, text, start, stop = token = tokens[self.at]
            choices = actions[states[-1]]
            action = choices.get(text if kind == NAME and text in choices else kind)
            if action is None:
                self._recover(token)
                continue
            if action >= 0:
                states.append(action)
                values.append(_value(token))
                spans.append((start, stop))
                self.at += 1
                continue
            name, size, keep, build = rules[~action]
            if build is None and size == 1:
                states[-1] = gotos[states[-2]][name]
                continue
            children = _Many()
            base = len(values) - size
            for offset in keep:
                value = values[base + offset]
                if not isinstance(value, _Many):
                    children.append(value)
                elif children:
                    children.extend(value)
                else:
                    children = value  # a repetition's list grows in place: a copy a turn would be quadratic
            if size:
                start, stop = spans[base][0], spans[-1][1]
                del states[-size:], values[base:], spans[base:]
            values.append(build(children, Span(start, stop)) if build is not None else children)
            spans.append((start, stop))
            states.append(gotos[states[-1]][name])
            if states[-1] == end:
                break
        (spec,) = values
        assert isinstance(spec, SpecNode)
        return replace(spec, unread=frozenset(self.unread))

    def _recover(self, token: Token) -> None:
        """Report the token that does not fit, and make the stack and the place such that parsing can go on."""
        if self.at > self.told:
            meant = self._tell(token)
            if meant is not None:
                self.tokens[self.at] = token._replace(text=meant)
                return
            self.told = self._find(_LINE_ENDS)
            self.unread.update(t.text for t in self.tokens[self._line() : self.told] if t.kind == NAME)
        stop = self._find(_STOPS)
        opens = self.tokens[stop].kind == "{"
        if token.kind == NEWLINE and self._accepts("{"):
            brace = next(i for i in range(self.at, len(self.tokens)) if self.tokens[i].kind != NEWLINE)
            if self.tokens[brace].kind == "{":
                self.at = brace  # the brace stands on a line of its own
                return
        skipped = token.start, self.tokens[max(self.at, stop - 1)].end
        self.at = stop
        if self._accepts(NEWLINE) and not (opens and self._accepts(BROKEN)):
            # The line is complete but for what follows it.
            if opens:
                # The block belongs to no line that can be read. The tokens that are overwritten have been used.
                self.at -= 2
                self.tokens[self.at] = Token(NEWLINE, "", *skipped)
                self.tokens[self.at + 1] = Token(BROKEN, "", *skipped)
            return
        while True:
            choices = self.tables.actions[self.states[-1]]
            action = choices.get(BROKEN, -1)
            if action < 0 and not opens:
                action = choices.get(BROKEN_PROPERTY, -1)
            if action >= 0:
                break
            del self.states[-1], self.values[-1], self.spans[-1]
        self.states.append(action)
        self.values.append(None)
        self.spans.append(skipped)

    def _tell(self, token: Token) -> str | None:
        if len(self.errors) > MAX_ERRORS:
            return None
        expected = frozenset(terminal for terminal in self.tables.actions[self.states[-1]] if self._accepts(terminal))
        found, meant = explain(self.tables, Place(self.tokens[self._line() : self.at], token, expected))
        self.errors.append(found)
        return meant

    def _line(self) -> int:
        """Return the index of the first token of this line."""
        index = self.at
        while index and self.tokens[index - 1].kind != NEWLINE:
            index -= 1
        return index

    def _find(self, kinds: frozenset[str]) -> int:
        """Return the index of the next token of these kinds. (The last token is an `END`.)"""
        index = self.at
        while self.tokens[index].kind not in kinds:
            index += 1
        return index

    def _accepts(self, terminal: str) -> bool:
        """Whether the terminal can be shifted now: a reduction that an LALR table allows may lead nowhere."""
        states = self.states.copy()
        while True:
            action = self.tables.actions[states[-1]].get(terminal)
            if action is None:
                return False
            if action >= 0:
                return True
            name, size, _ = self.tables.rules[~action]
            if size:
                del states[-size:]
            if name == "spec":
                return terminal == END
            states.append(self.tables.gotos[states[-1]][name])


_LINE_ENDS = frozenset({NEWLINE, END})
_STOPS = frozenset({NEWLINE, END, "{", "}"})


def _value(token: Token) -> object:
    """Return what a token is on the stack."""
    if token.kind == NUMBER:
        return Number(parse_number(token.text), token.text, Span(token.start, token.end))
    if token.kind == NAME:
        return Word(token.text, Span(token.start, token.end))
    return token.text
