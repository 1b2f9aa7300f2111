"""Compare D with the reference: one character a block, and one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmspec.simulate.outcome import NAN, RIGHT, UNSEEN, UNWRITTEN, WRONG
from gemmspec.simulate.problem import Problem
from gemmspec.vocabulary import DType

# Half of the last place of each output type, relative to the value.
_ROUNDING = {DType.F16: 2.0**-11, DType.BF16: 2.0**-8, DType.F32: 2.0**-24}
_EPSILON = 2.0**-24
_ROWS, _COLUMNS = 32, 64
_SEVERITY = UNSEEN + RIGHT + WRONG + UNWRITTEN + NAN

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields of `Outcome` that these are for."""

    relative_error: float
    map: tuple[str, ...]
    wrong: int
    blocks: int


def compare(
    problem: Problem, d: npt.NDArray[np.float32], written: Bools, seen: Bools, block: tuple[int, int], dtype: DType
) -> Comparison:
    """Compare where `seen` is true (it is the same for all elements of a block)."""
    reference = problem.reference
    # A sum of k products that is taken in another order differs by no more than about k roundings of its terms.
    terms = float(np.abs(problem.a).max(initial=0) * np.abs(problem.b).max(initial=0))
    slack = 4 * _EPSILON * problem.k * terms
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(d - reference)
        right = difference <= 1.01 * _ROUNDING[dtype] * np.abs(reference) + slack
    cells: list[str] = []
    for top in range(0, problem.m, block[0]):
        row = ""
        for left in range(0, problem.n, block[1]):
            where = np.s_[top : top + block[0], left : left + block[1]]
            row += _cell(right[where], d[where], written[where], seen[where])
        cells.append(row)
    flat = "".join(cells)
    blocks = len(flat) - flat.count(UNSEEN)
    norm = float(np.linalg.norm(reference[seen]))
    error = float(np.linalg.norm(difference[seen]))
    return Comparison(
        relative_error=error / norm if norm else error,
        map=_joined(cells),
        wrong=blocks - flat.count(RIGHT),
        blocks=blocks,
    )


def _cell(right: Bools, d: npt.NDArray[np.float32], written: Bools, seen: Bools) -> str:
    if not seen[0, 0]:
        return UNSEEN
    if right.all():
        return RIGHT
    if not written.all():
        return UNWRITTEN
    return NAN if np.isnan(d).any() else WRONG


def _joined(cells: list[str]) -> tuple[str, ...]:
    """Return a map of at most _ROWS x _COLUMNS characters, each the worst of those that it stands for."""
    height = -(-len(cells) // _ROWS)
    width = -(-len(cells[0]) // _COLUMNS)
    if height == width == 1:
        return tuple(cells)
    return tuple(
        "".join(
            max((c for row in cells[top : top + height] for c in row[left : left + width]), key=_SEVERITY.index)
            for left in range(0, len(cells[0]), width)
        )
        for top in range(0, len(cells), height)
    )
