"""Which known word a misspelled one was meant to be. Imports nothing of gemmspec."""

from __future__ import annotations

from collections.abc import Iterable

# No word of the language is nearly as long, and the time for one grows with its length.
LONGEST = 40


def suggest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that `word` was surely meant to be; None where none, or more than one, is close enough.

    Close is a third of the letters: one edit in a word of 2 to 5, two in 6 to 8. Case alone always counts as close.
    """
    if len(word) > LONGEST:
        return None
    known = sorted(set(options))
    folded = [option for option in known if option.lower() == word.lower()]
    if len(folded) == 1:
        return folded[0]
    best: list[str] = []
    shortest = max(1, len(word) // 3)
    for option in known:
        # A one-letter word is one edit away from every other one: that says nothing.
        if len(option) < 2 or len(word) < 2 or abs(len(option) - len(word)) > shortest:
            continue
        edits = distance(word.lower(), option.lower())
        if edits < shortest or (edits == shortest and not best):
            best, shortest = [option], edits
        elif edits == shortest:
            best.append(option)
    return best[0] if len(best) == 1 else None


def nearest(word: str, options: Iterable[str], most: int = 3) -> list[str]:
    """Return the options that are like `word`, the most alike first: for a person to choose from."""
    if len(word) > LONGEST:
        return []
    ranked = sorted((distance(word.lower(), option.lower()), option) for option in set(options))
    return [option for edits, option in ranked if edits <= max(1, min(len(word), len(option)) // 3)][:most]


def hint(word: str, options: Iterable[str]) -> str:
    """Return `; did you mean A or B?`, to be put behind a message; "" where nothing is near."""
    near = nearest(word, options)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def distance(a: str, b: str) -> int:
    """Return how many letters must be inserted, deleted, replaced, or swapped with their neighbour."""
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        row = [i]
        for j, y in enumerate(b, start=1):
            edits = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        before, above = above, row
    return above[-1]
