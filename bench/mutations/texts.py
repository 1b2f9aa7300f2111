"""Mutation operators over the text of a spec: what a user may mistype, with every span in its place.

Given a spec with every value and program written out (`gemmspec show`), yield each text with one line changed.
A mutant may be no spec at all; names are free of sizes, as those of `operators` are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Edit = tuple[str, str | None]
"""A name, and the line's new text (None: the line is left out)."""

WHERE = ("at own", "at leader", "at cta 0", "at cta 1", "multicast pair", "multicast cluster", "multicast 0b1")


def text_mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for every small change of a spec."""
    lines = text.splitlines()
    barriers = [line.split()[1] for line in lines if line.startswith("barrier ")]
    inside, seen = "", {text}
    for i, line in enumerate(lines):
        if line.startswith("program "):
            inside = line.split()[1]
        place = f"{inside}:{_nth(lines, i)}" if inside else "the head"
        edits = _of_barrier(line) if line.startswith("barrier ") else _of_step(line, barriers) if inside else ()
        for name, new in edits:
            changed = "\n".join([*lines[:i], *([] if new is None else new.splitlines()), *lines[i + 1 :]]) + "\n"
            if changed not in seen:
                seen.add(changed)
                yield f"text {name}: {line.strip()} in {place}", changed
        for step, word in ((-1, "earlier"), (1, "later")):
            if inside and _simple(line) and 0 <= i + step < len(lines) and not _edge(lines[i + step]):
                swapped = [*lines]
                swapped[i], swapped[i + step] = swapped[i + step], swapped[i]
                changed = "\n".join(swapped) + "\n"
                if changed not in seen:
                    seen.add(changed)
                    yield f"text {word}: {line.strip()} in {place}", changed


def _nth(lines: list[str], i: int) -> int:
    """Return which line of its block a line is."""
    j = i
    while j > 0 and not lines[j].startswith("program "):
        j -= 1
    return i - j


def _simple(line: str) -> bool:
    return bool(line.strip()) and not line.strip().endswith(("{", "}"))


def _edge(line: str) -> bool:
    """Return whether a statement must not change places with a line: the program's own head and end."""
    return (not line.startswith("    ") and line.strip() not in ("", "}")) or line.startswith("}") or line == "  }"


def _of_barrier(line: str) -> Iterator[Edit]:
    found = re.search(r"arrivals (\d+)", line)
    if found:
        n = int(found[1])
        for word, new in (("x2", 2 * n), ("/2", n // 2), ("+1", n + 1), ("-1", n - 1)):
            if new > 0:
                yield f"arrivals {word}", line.replace(found[0], f"arrivals {new}")
    found = re.search(r"phase ([01])", line)
    if found:
        yield "phase", line.replace(found[0], f"phase {1 - int(found[1])}")
    found = re.search(r"(at|multicast) .*$", line)
    for where in WHERE if found else ():
        yield where, line.replace(found[0], where)
    found = re.search(r"\[[^\]]*\]", line)
    if found:
        n = 1 if "stages" in found[0] else 2
        yield f"slots {n}", line.replace(found[0], f"[{n}]")


def _of_step(line: str, barriers: list[str]) -> Iterator[Edit]:
    if line.strip() == "for k {":
        for bound in ("for k - 1 {", "for k + 1 {", "for 3 {"):
            yield bound[:-2], line.replace("for k {", bound)
    if not _simple(line):
        return
    yield "drop", None
    yield "double", f"{line}\n{line}"
    for old in barriers:
        if re.search(rf"\b{old}\b", line):
            yield from ((f"to {new}", re.sub(rf"\b{old}\b", new, line)) for new in barriers if new != old)
    if "[stage]" in line:
        yield "one back", line.replace("[stage]", "[stage - 1]")
    if "[self]" in line:
        yield "instance 0", line.replace("[self]", "[0]")
    if line.strip() == "mma":
        yield "into 0", f"{line} into 0"
        yield "one back", f"{line} [stage - 1]"
    found = re.search(r"expect .* (\d+)$", line)
    if found:
        n = int(found[1])
        for word, new in (("x2", 2 * n), ("/2", n // 2), ("-16", n - 16)):
            yield f"bytes {word}", line[: -len(found[1])] + str(new)
