"""What depends on the rank of a CTA in its cluster, as expressions of the rank.

A Protocol says for each rank whom it reaches; the kernel is one text for all ranks. Each function looks for the
plainest expression that gives the right value for every rank, and falls back on a chain of selections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gemmspec.codegen.words import atom, product, total
from gemmspec.model.spec import Spec

RANK = "cbx"
# Names of a CTA's place along M, along N, and among those that share an output tile.
PLACES = ("cta_m", "cta_n", "cta_k")
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
        m = self.cluster.m
        return "0" if m == 1 else RANK if m == self.cluster.size else "cta_m"

    @property
    def n_index(self) -> str:
        """The CTA's place along N."""
        n = self.cluster.n
        return "0" if n == 1 else RANK if n == self.cluster.size else "cta_n"

    @property
    def share(self) -> str:
        """Which share of the k tiles is the CTA's."""
        split = self.cluster.split
        return "0" if split == 1 else RANK if split == self.cluster.size else "cta_k"

    def peer(self, share: str) -> str:
        """Return the rank of the CTA that has a share of the own output tile's k tiles."""
        tile = product(*self._tile)
        return share if tile == "1" else total(product(share, tile), f"{RANK} % {atom(tile)}")

    def place(self, name: str) -> str:
        """Return the formula of one of PLACES."""
        cluster = self.cluster
        match name:
            case "cta_m":
                return f"{RANK} % CLUSTER_M"
            case "cta_n" if cluster.split == 1:
                return f"{RANK} // CLUSTER_M"
            case "cta_n":
                return f"{RANK} % CLUSTER_N" if cluster.m == 1 else f"{RANK} // CLUSTER_M % CLUSTER_N"
            case _:
                return f"{RANK} // {atom(product(*self._tile))}"

    @property
    def _tile(self) -> tuple[str, str]:
        """CTAs along M and N, by name."""
        return "1" if self.cluster.m == 1 else "CLUSTER_M", "1" if self.cluster.n == 1 else "CLUSTER_N"

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
        line, line_st = (
            (1 << m) - 1,
            "cta_n * CLUSTER_M" if self.cluster.split == 1 else f"{RANK} // CLUSTER_M * CLUSTER_M",
        )
        forms: list[_Form] = [
            (f"{first:#b}", lambda r: first),
            (f"{own:#b} << {RANK}", lambda r: own << r),
            (f"{own:#b} << {RANK} // 2 * 2", lambda r: own << r // 2 * 2),
            (f"{row:#b} << cta_m", lambda r: row << r % m),
            (f"{column:#b} << {line_st}", lambda r: column << r // m * m),
            (f"({rows:#b} << cta_m) | ({line:#b} << {line_st})", lambda r: rows << r % m | line << r // m * m),
        ]
        return self._fit(forms, masks, "#b")

    def single(self, targets: Sequence[int]) -> str:
        """Return each rank's only target."""
        cluster, first = self.cluster, targets[self.ranks[0]]
        forms: list[_Form] = [
            (str(first), lambda r: first),
            (RANK, lambda r: r),
            (f"{RANK} // 2 * 2", lambda r: r // 2 * 2),
            (f"{RANK} ^ 1", lambda r: r ^ 1),
            ("cta_m", cluster.x),
            ("cta_n * CLUSTER_M", lambda r: cluster.y(r) * cluster.m),
        ]
        return self._fit(forms, targets, "d")

    def index(self, places: Sequence[int]) -> str:
        """Return each rank's place among the CTAs that share something."""
        cluster, first = self.cluster, places[self.ranks[0]]
        forms: list[_Form] = [
            (str(first), lambda r: first),
            (RANK, lambda r: r),
            (f"{RANK} // 2", lambda r: r // 2),
            ("cta_m", cluster.x),
            ("cta_n", cluster.y),
            ("cta_m // 2", lambda r: cluster.x(r) // 2),
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
