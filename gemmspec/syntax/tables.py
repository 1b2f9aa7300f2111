"""Turns the grammar file into parse tables, and keeps them in the user's cache folder.

Lark compiles the grammar; it is imported only when the cache does not hold the tables of this very grammar, since
that import alone takes a third of lint's time budget. Does not parse specs: that is `gemmspec.syntax.parse`.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

NAME = "<NAME>"
NUMBER = "<NUMBER>"
NEWLINE = "<_NEWLINE>"
COMMENT = "<COMMENT>"
SPACE = "<SPACE>"
BROKEN = "<BROKEN>"
BROKEN_PROPERTY = "<BROKEN_PROPERTY>"
END = "$END"

_FORMAT = 2
_FOLDER = "grammar"
_FILE = "gemmspec.lark"


class Rule(NamedTuple):
    """A production: how many symbols it takes off the stack, and which of them its builder is given."""

    name: str
    size: int
    keep: tuple[int, ...]


class Tables(NamedTuple):
    """The automaton. A terminal is named by its text (`role`, `->`) or, where it has a pattern, as `<NAME>`.

    `actions[state][terminal]`: the next state of a shift, or `~rule` of a reduction.
    `starts[rule]`: the terminals that may begin it.
    """

    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    start: int
    end: int
    starts: dict[str, frozenset[str]]
    keywords: frozenset[str]
    pattern: re.Pattern[str]


@cache
def tables() -> Tables:
    """Return the tables of the grammar file."""
    grammar = grammar_text()
    folder = cache_folder()
    path = folder / f"tables-{zlib.crc32(grammar.encode()):08x}.json" if folder is not None else None
    stored = _stored(path, grammar) if path is not None else None
    if stored is not None:
        return stored
    data = compile_grammar(grammar)
    if path is not None:
        _store(path, data)
    return _tables(data)


def grammar_text() -> str:
    """Return the text of the grammar: the one inside the package (a wheel), else the one beside it (a checkout)."""
    package = Path(__file__).parent.parent
    for root in (package, package.parent):
        try:
            return (root / _FOLDER / _FILE).read_text("utf-8")
        except OSError:
            continue
    # A package that is not made of plain files. Last, because the import is slower than all of parsing.
    from importlib.resources import files

    return (files("gemmspec") / _FOLDER / _FILE).read_text("utf-8")


def cache_folder() -> Path | None:
    """Return the user's cache folder for gemmspec, which need not exist; None where the system names none."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "gemmspec" if Path(base).is_absolute() else None


def compile_grammar(grammar: str) -> dict[str, Any]:
    """Return the tables of a grammar as plain JSON data."""
    from lark import Lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

    lark = Lark(grammar, parser="lalr", start="spec", maybe_placeholders=False)
    data, memo = lark.memo_serialize([TerminalDef, LarkRule])  # pyright: ignore[reportUnknownMemberType]
    terminals = [memo[t["@"]] for t in data["parser"]["lexer_conf"]["terminals"]]
    shown = {
        t["name"]: t["pattern"]["value"] if t["pattern"]["__type__"] == "PatternStr" else f"<{t['name']}>"
        for t in terminals
    }
    shown[END] = END
    shown["BROKEN"] = BROKEN
    shown["BROKEN_PROPERTY"] = BROKEN_PROPERTY
    rules = [memo[r["@"]] for r in data["rules"]]
    number = {r["@"]: i for i, r in enumerate(data["rules"])}
    table = data["parser"]["parser"]
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in range(len(table["states"])):
        actions.append({})
        gotos.append({})
        for token, (kind, argument) in table["states"][state].items():
            name = table["tokens"][token]
            if name in shown:
                actions[state][shown[name]] = argument if kind == 0 else ~number[argument["@"]]
            else:
                gotos[state][name] = argument
    return {
        "format": _FORMAT,
        "grammar": grammar,
        "actions": actions,
        "gotos": gotos,
        "rules": [
            (
                r["origin"]["name"],
                len(r["expansion"]),
                [i for i, symbol in enumerate(r["expansion"]) if not symbol.get("filter_out")],
            )
            for r in rules
        ],
        "start": table["start_states"]["spec"],
        "end": table["end_states"]["spec"],
        "starts": {name: _starts(name, rules, shown) for name in ("item", "statement", "property")},
        "patterns": {t["name"]: t["pattern"]["value"] for t in terminals if shown[t["name"]].startswith("<")},
        "texts": [text for text in shown.values() if not text.startswith("<") and text != END],
    }


def _starts(name: str, rules: list[dict[str, Any]], shown: dict[str, str]) -> list[str]:
    """Return the terminals that may begin what a rule derives. (No rule of the grammar but `spec` can be empty.)"""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [name]
    while todo:
        name = todo.pop()
        if name in shown:
            found.add(shown[name])
        elif name not in seen:
            seen.add(name)
            todo.extend(r["expansion"][0]["name"] for r in rules if r["origin"]["name"] == name and r["expansion"])
    return sorted(found)


def _tables(data: dict[str, Any]) -> Tables:
    texts: list[str] = data["texts"]
    marks = sorted((text for text in texts if not text[0].isalpha()), key=len, reverse=True)
    groups = [f"(?P<{name}>{pattern})" for name, pattern in data["patterns"].items()]
    groups.append(f"(?P<MARK>{'|'.join(map(re.escape, marks))})")
    groups.append(r"(?P<OTHER>\w+|(?s:.))")
    return Tables(
        actions=tuple(data["actions"]),
        gotos=tuple(data["gotos"]),
        rules=tuple(Rule(name, size, tuple(keep)) for name, size, keep in data["rules"]),
        start=data["start"],
        end=data["end"],
        starts={name: frozenset(terminals) for name, terminals in data["starts"].items()},
        keywords=frozenset(text for text in texts if text[0].isalpha()),
        pattern=re.compile("|".join(groups)),
    )


def _stored(path: Path, grammar: str) -> Tables | None:
    """Return the tables of this grammar from a file, if they are there and whole."""
    try:
        check, _, content = path.read_bytes().partition(b"\n")
        if check != _check(content):
            return None
        data = json.loads(content)
        return _tables(data) if data["format"] == _FORMAT and data["grammar"] == grammar else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _store(path: Path, data: dict[str, Any]) -> None:
    content = json.dumps(data).encode()
    # Written aside and renamed, so that a run beside this one never reads half a file.
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(_check(content) + b"\n" + content)
        aside.replace(path)
    except OSError:
        pass  # the cache only saves time


def _check(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
