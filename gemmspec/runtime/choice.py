"""Which of several kernels is best for a shape on a card: by what was measured there, else by a model.

Pure: given kernels, results and a card, returns a choice and why. Launches nothing, and asks no device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmspec.runtime.check import misfit
from gemmspec.runtime.estimate import Shape, cycles
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.problem import ArgumentProblem
from gemmspec.runtime.table import Result, Setting

_LINE = 64  # elements of A and B in a cache line of 128 bytes
REACH = 2.0
"""Sizes further away than these doublings, in all, tell nothing of each other."""


@dataclass(frozen=True, slots=True)
class Card:
    """A device, as far as a choice depends on it."""

    name: str
    sms: int
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel for a shape, and why it is that one. `ratio`: cuBLAS's time over its own, where that was measured."""

    kernel: Kernel
    why: str
    ratio: float | None = None


Measured = Mapping[Shape, Mapping[str, float]]
"""By shape and content of a kernel: how fast it is there, compared with cuBLAS."""


def choose(kernels: Sequence[Kernel], results: Results, shape: Shape, types: str, card: Card) -> Choice:
    """Return the best of these kernels for M, N and K, and types of A, B and D.

    Raises `ArgumentProblem` where none takes it, with each one's reason.
    """
    faults = results.faults(card)
    reasons = {kernel: _reason(kernel, shape, types, card, faults) for kernel in kernels}
    fit = [kernel for kernel, reason in reasons.items() if not reason]
    if not fit:
        m, n, k = shape
        wanted = f"M = {m}, N = {n}, K = {k} of {types.replace(' ', ', ')} on {card.name}"
        lines = "".join(f"\n  `{kernel.name}`: {reason}" for kernel, reason in reasons.items())
        raise ArgumentProblem(f"none of {len(kernels)} kernels takes {wanted}{lines}")
    measured = results.measured(card, [kernel.content for kernel in fit])
    here = {kernel: ratio for kernel in fit if (ratio := measured.get(shape, {}).get(kernel.content))}
    if here:
        best = max(here, key=lambda kernel: here[kernel])
        others = f"{len(here)} that were" if len(here) > 1 else "the one that was"
        return Choice(best, f"the fastest of {others} measured at this shape", here[best])
    near = nearest(measured, shape)
    corrected = _corrections(fit, measured[near], near, shape, card.sms) if near else {}
    # Of equals the one that loads least; then names decide, so that a choice does not depend on the order of files.
    scores = [
        (round(_score(kernel, shape, card.sms, corrected), 6), _loaded(kernel), kernel.name, i)
        for i, kernel in enumerate(fit)
    ]
    best = fit[min(scores)[3]]
    if len(fit) == 1:
        return Choice(best, "the only one that takes this shape")
    if near:
        return Choice(best, f"the fastest by the model, as corrected by times at {' x '.join(map(str, near))}")
    return Choice(best, f"the fastest by the model: nothing near this shape was measured on {card.name}")


class Results:
    """What tables say, by card."""

    def __init__(self, rows: Sequence[tuple[Setting, Result]]) -> None:
        self._by_card: dict[tuple[str, int], dict[Setting, list[Result]]] = {}
        for setting, result in rows:
            settings = self._by_card.setdefault((setting.device, setting.sms), {})
            settings.setdefault(setting, []).append(result)

    def faults(self, card: Card) -> dict[str, str]:
        """Return what is wrong with kernels on that card, by content: wrong once is wrong."""
        found: dict[str, str] = {}
        for results in self._by_card.get((card.name, card.sms), {}).values():
            for result in results:
                if result.fault:
                    found[result.content] = f"at {' x '.join(map(str, result.shape))}, {result.fault}"
        return found

    def measured(self, card: Card, contents: Sequence[str]) -> Measured:
        """Return what is known of these kernels on that card: each shape by one setting, the newest that has it."""
        wanted = set(contents)
        newest: dict[Shape, tuple[str, dict[str, float]]] = {}
        for results in self._by_card.get((card.name, card.sms), {}).values():
            shapes: dict[Shape, tuple[str, dict[str, float]]] = {}
            for result in results:
                if result.content in wanted and result.ratio is not None and not result.fault:
                    at, ratios = shapes.get(result.shape, ("", {}))
                    ratios[result.content] = result.ratio
                    shapes[result.shape] = max(at, result.at), ratios
            for shape, found in shapes.items():
                if shape not in newest or newest[shape][0] < found[0]:
                    newest[shape] = found
        return {shape: ratios for shape, (_, ratios) in newest.items()}


def nearest(measured: Measured, shape: Shape) -> Shape | None:
    """Return the measured shape that is nearest by `distance`, if one is within `REACH`."""
    near = min(measured, key=lambda other: (distance(other, shape), other), default=None)
    return near if near is not None and distance(near, shape) < REACH else None


def distance(one: Shape, other: Shape) -> float:
    """Return how many doublings two shapes are apart, in M, N and K together.

    Infinite where rows of A and B begin at cache lines for one, and inside of lines for the other: loads are then
    another matter.
    """
    if (one[2] % _LINE == 0) != (other[2] % _LINE == 0):
        return math.inf
    return sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in zip(one, other, strict=True))


def _corrections(
    kernels: Sequence[Kernel], ratios: Mapping[str, float], near: Shape, shape: Shape, sms: int
) -> dict[str, float]:
    """Return, by content, the logarithm of what the model misses at a measured shape; less of it, the further away.

    Of kernels that were not measured there, it misses as much as of the others in the mean: nothing.
    """
    missed = {
        kernel.content: -math.log(ratios[kernel.content] * cycles(kernel.manifest, near, sms))
        for kernel in kernels
        if kernel.content in ratios and kernel.manifest.tile is not None
    }
    mean = sum(missed.values()) / len(missed) if missed else 0.0
    weight = 1 - distance(near, shape) / REACH
    return {content: weight * (value - mean) for content, value in missed.items()}


def _score(kernel: Kernel, shape: Shape, sms: int, corrected: Mapping[str, float]) -> float:
    return math.log(cycles(kernel.manifest, shape, sms)) + corrected.get(kernel.content, 0.0)


def _loaded(kernel: Kernel) -> float:
    """Return how many rows of A and B are loaded for an element of D."""
    tile = kernel.manifest.tile
    return 0.0 if tile is None else (tile.a_rows + tile.b_rows) * math.prod(kernel.manifest.cluster) / tile.m / tile.n


def _reason(kernel: Kernel, shape: Shape, types: str, card: Card, faults: Mapping[str, str]) -> str:
    """Return why a kernel is not to be taken; nothing if it may be."""
    manifest = kernel.manifest
    if not manifest.runs_on(card.capability):
        return f"built for {manifest.target}, and {card.name} is of {card.capability[0]}.{card.capability[1]}"
    if manifest.types != types:
        return f"of {manifest.types.replace(' ', ', ')}"
    return misfit(manifest, shape) or faults.get(kernel.content, "")
