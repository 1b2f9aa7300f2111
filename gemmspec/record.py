"""Frozen records: dataclasses that cost less to define. Imports nothing of gemmspec.

`lint` defines some 150 of them before it reads a line, and most of what `@dataclass(frozen=True)` does for each is to
compile methods that are the same for all. Here only `__init__` is compiled; equality, hash and representation are
shared. That nothing assigns to a field is checked by the type checker rather than at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a record: compared and hashed by its fields."""
    made: Any = dataclass(eq=False, repr=False, slots=True)(cls)
    made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _show
    return made


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _equal(self: Any, other: object) -> bool:
    if self is other:
        return True
    return self.__class__ is other.__class__ and _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{self.__class__.__qualname__}({fields})"
