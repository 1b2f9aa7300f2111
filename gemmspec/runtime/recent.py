"""A table that keeps what was used last. Threads may share it: each step is one that Python does whole."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most `most` values by key; the one that was not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return a value, now the last used."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value, in place of the oldest if there are too many."""
        self._values[key] = value
        while len(self._values) > self._most:
            try:
                del self._values[next(iter(self._values))]
            except (KeyError, RuntimeError, StopIteration):  # another thread was there first
                break

    def __len__(self) -> int:
        return len(self._values)
