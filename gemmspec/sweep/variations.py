"""Variations of a spec: its text with other numbers in it.

Given `stages=2..6` and the like, return the texts of all combinations. Edits the words of properties where they
stand, and adds those that were left out; whether a combination makes sense is for lint to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmspec.source import SourceFile, Span
from gemmspec.suggest import hint
from gemmspec.syntax.nodes import (
    BlockNode,
    ClusterNode,
    CountNode,
    ItemNode,
    Property,
    RoleNode,
    ScheduleNode,
    SizesNode,
)
from gemmspec.syntax.parse import parse

COUNTS = ("stages", "accumulators")
DIMENSIONS = {"block.m": 0, "block.n": 1, "block.k": 2, "cluster.m": 0, "cluster.n": 1}
SCHEDULE = ("ctas", "group", "split")
# Properties of roles, and the kind of role that has them where none is named.
ROLE = {"chunk": "epilogue", "buffers": "epilogue", "release": "epilogue", "registers": None}
MOST_COMBINATIONS = 20_000

_RANGE = re.compile(r"(\d+)\.\.(\d+)(?:\.\.(\d+))?")


class VariationError(Exception):
    """A variation that cannot be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A property and the values that it is to take."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination: the values, the text of the spec with them, and the sizes among them."""

    values: tuple[tuple[str, str], ...]
    text: str
    sizes: tuple[tuple[str, int], ...]


def read_variation(words: str) -> Variation:
    """Read `stages=2..6`, `block.n=64..256..64`, `chunk=32,64`, `release=read,store` or `writeback.chunk=32`."""
    key, equals, values = (part.strip() for part in words.partition("="))
    if not (key and equals and values):
        raise VariationError(f"`{words}` is not of the form stages=2..6 or chunk=32,64,128")
    found: dict[str, None] = {}
    for part in values.split(","):
        found.update(dict.fromkeys(_values(part.strip(), words)))
    return Variation(key, tuple(found))


def _values(part: str, words: str) -> Iterator[str]:
    match = _RANGE.fullmatch(part)
    if match is None:
        if not re.fullmatch(r"\w+", part):
            raise VariationError(f"`{part}` in `{words}` is no value")
        yield part
        return
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if first > last or not step:
        raise VariationError(f"`{part}` in `{words}` holds no number")
    if (last - first) // step >= MOST_COMBINATIONS:
        raise VariationError(f"`{part}` in `{words}` holds more than {MOST_COMBINATIONS} numbers")
    yield from map(str, range(first, last + 1, step))


def variants(source: SourceFile, variations: Sequence[Variation]) -> list[Variant]:
    """Return every combination, the last variation fastest. Raises `VariationError` for a key that has no place."""
    keys = [v.key for v in variations]
    for key in keys:
        if keys.count(key) > 1:
            raise VariationError(f"`{key}` is varied twice")
    count = 1
    for variation in variations:
        count *= len(variation.values)
    if count > MOST_COMBINATIONS:
        raise VariationError(f"{count} combinations are more than {MOST_COMBINATIONS}")
    items = parse(source)[0].items
    names = {size.name.text for item in items if isinstance(item, SizesNode) for size in item.sizes}
    out: list[Variant] = []
    for values in itertools.product(*(v.values for v in variations)):
        pairs = tuple(zip(keys, values, strict=True))
        sizes = tuple((key, _size(key, value)) for key, value in pairs if key in names)
        edits = [edit for key, value in pairs if key not in names for edit in _edits(items, key, value)]
        out.append(Variant(pairs, _edited(source.text, edits), sizes))
    return out


_Edit = tuple[Span, str]


def _size(key: str, value: str) -> int:
    if not value.isdigit():
        raise VariationError(f"`{key}={value}`: a size is a whole number")
    return int(value)


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    # At one place, what was asked for first comes first.
    numbered = sorted(enumerate(edits), key=lambda e: (e[1][0].start, e[0]), reverse=True)
    for _, (span, new) in numbered:
        text = text[: span.start] + new + text[span.end :]
    return text


def _edits(items: Sequence[ItemNode], key: str, value: str) -> Iterator[_Edit]:
    """Yield what gives a property its value."""
    role, dot, name = key.rpartition(".")
    if key in COUNTS:
        yield from _count(items, key, value)
    elif key in DIMENSIONS:
        yield from _dimension(items, key, value)
    elif key in SCHEDULE:
        schedules = [i for i in items if isinstance(i, ScheduleNode)]
        if schedules:
            yield _property(schedules[0].properties, schedules[0].span, key, value)
        else:
            yield _new_line(items, f"schedule persistent {key} {value}")
    elif name in ROLE:
        roles = [i for i in items if isinstance(i, RoleNode) and _meant(i, role, name)]
        if not roles:
            raise VariationError(f"`{key}`: there is no role that it could be meant for")
        for node in roles:
            yield _property(node.properties, node.span, name, value)
    else:
        known = [*COUNTS, *DIMENSIONS, *SCHEDULE, *ROLE]
        raise VariationError(
            f"`{key}` cannot be varied; known are {', '.join(known)}, ROLE.{name if dot else 'chunk'}, and sizes"
            f"{hint(key, known)}"
        )


def _meant(node: RoleNode, role: str, name: str) -> bool:
    kind = ROLE[name]
    return node.name.text == role if role else kind is None or any(k.text == kind for k in node.kinds)


def _count(items: Sequence[ItemNode], key: str, value: str) -> Iterator[_Edit]:
    nodes = [i for i in items if isinstance(i, CountNode) and i.keyword.text == key]
    for node in nodes:
        yield node.value.span, value
    if not nodes:
        yield _new_line(items, f"{key} {value}")


def _dimension(items: Sequence[ItemNode], key: str, value: str) -> Iterator[_Edit]:
    kind = BlockNode if key.startswith("block") else ClusterNode
    place = DIMENSIONS[key]
    nodes = [i for i in items if isinstance(i, kind)]
    for node in nodes:
        if place >= len(node.dims):
            raise VariationError(f"`{key}` stands nowhere in the spec")
        yield node.dims[place].span, value
    if not nodes:
        if kind is BlockNode:
            raise VariationError(f"`{key}` stands nowhere in the spec")
        yield _new_line(items, f"cluster {value} x 1" if place == 0 else f"cluster 1 x {value}")


def _property(properties: Sequence[Property], owner: Span, name: str, value: str) -> _Edit:
    words = f"after {value}" if name == "release" else value
    for prop in properties:
        if prop.name.text == name and prop.values:
            return prop.values[0].span.to(prop.values[-1].span), words
    return Span(owner.end, owner.end), f" {name} {words}"


def _new_line(items: Sequence[ItemNode], line: str) -> _Edit:
    if not items:
        raise VariationError("the spec has no line that can be read")
    # In front of any item is a good place, as the order of lines is free.
    start = items[0].span.start
    return Span(start, start), f"{line}\n"
