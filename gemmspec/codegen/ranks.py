"""What depends on the rank of a CTA in its cluster, as expressions of the rank.

A Protocol says for each rank whom it reaches; the kernel is one text for all ranks. Each function looks for the
plainest expression that gives the right value for every rank, and falls back on a chain of selections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gemmspec.model.spec import Spec

RANK = "cbx"
# Where a cluster has two dimensions: the place along M and along N.
PLACES = {"cta_m": f"{RANK} % CLUSTER_M", "cta_n": f"{RANK} // CLUSTER_M"}
_Form = tuple[str, Callable[[int], int]]


class Ranks:
    """Expressions over the rank of a CTA. `ranks`: those that run the text."""

    def __init__(self, spec: Spec, ranks: Sequence[int] | None = None) -> None:
        self.cluster, self.pair = spec.cluster, spec.pair
        self.ranks = tuple(ranks if ranks is not None else range(spec.cluster.size))
        self.leaders = Ranks(spec, range(0, spec.cluster.size, spec.pair)) if ranks is None else self

    @property
    def m_index(self) -> str:
        """The CTA's place along M."""
        m, n = self.cluster.m, self.cluster.n
        return "0" if m == 1 else RANK if n == 1 else "cta_m"

    @property
    def n_index(self) -> str:
        """The CTA's place along N."""
        m, n = self.cluster.m, self.cluster.n
        return "0" if n == 1 else RANK if m == 1 else "cta_n"

    @property
    def in_pair(self) -> str:
        """The CTA's place in its pair."""
        return "0" if self.pair == 1 else RANK if self.cluster.size == 2 else f"{RANK} % 2"

    def where(self, ranks: Iterable[int]) -> str | None:
        """Return the condition that the rank is one of `ranks`; None where it always is."""
        wanted = set(ranks) & set(self.ranks)
        if wanted == set(self.ranks):
            return None
        if len(wanted) == 1:
            return f"{RANK} == {min(wanted)}"
        if wanted == {r for r in self.ranks if r % 2 == 0}:
            return f"{RANK} % 2 == 0"
        return f"({sum(1 << r for r in wanted):#b} >> {RANK}) & 1 == 1"

    def mask(self, masks: Sequence[int]) -> str:
        """Return each rank's bit mask of targets."""
        m = self.cluster.m
        row, column = masks[self.ranks[0]] >> self.ranks[0] % m, masks[self.ranks[0]] >> self.ranks[0] // m * m
        own, first = masks[self.ranks[0]] >> self.ranks[0], masks[self.ranks[0]]
        rows = sum(1 << r for r in range(0, self.cluster.size, m))
        line = (1 << m) - 1
        forms: list[_Form] = [
            (f"{first:#b}", lambda r: first),
            (f"{own:#b} << {RANK}", lambda r: own << r),
            (f"{own:#b} << {RANK} // 2 * 2", lambda r: own << r // 2 * 2),
            (f"{row:#b} << cta_m", lambda r: row << r % m),
            (f"{column:#b} << cta_n * CLUSTER_M", lambda r: column << r // m * m),
            (
                f"({rows:#b} << cta_m) | ({line:#b} << cta_n * CLUSTER_M)",
                lambda r: rows << r % m | line << r // m * m,
            ),
        ]
        return self._fit(forms, masks, "#b")

    def single(self, targets: Sequence[int]) -> str:
        """Return each rank's only target."""
        m, first = self.cluster.m, targets[self.ranks[0]]
        forms: list[_Form] = [
            (str(first), lambda r: first),
            (RANK, lambda r: r),
            (f"{RANK} // 2 * 2", lambda r: r // 2 * 2),
            (f"{RANK} ^ 1", lambda r: r ^ 1),
            ("cta_m", lambda r: r % m),
            ("cta_n * CLUSTER_M", lambda r: r // m * m),
        ]
        return self._fit(forms, targets, "d")

    def index(self, places: Sequence[int]) -> str:
        """Return each rank's place among the CTAs that share something."""
        m, first = self.cluster.m, places[self.ranks[0]]
        forms: list[_Form] = [
            (str(first), lambda r: first),
            (RANK, lambda r: r),
            (f"{RANK} // 2", lambda r: r // 2),
            ("cta_m", lambda r: r % m),
            ("cta_n", lambda r: r // m),
            ("cta_m // 2", lambda r: r % m // 2),
        ]
        return self._fit(forms, places, "d")

    def _fit(self, forms: list[_Form], values: Sequence[int], style: str) -> str:
        for text, value in forms:
            if all(value(r) == values[r] for r in self.ranks):
                return text
        *others, last = self.ranks
        chain = f"{values[last]:{style}}"
        for r in reversed(others):
            chain = f"T.Select({RANK} == {r}, {values[r]:{style}}, {chain})"
        return chain
