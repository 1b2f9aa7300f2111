"""Frozen records: dataclasses that cost less to define. Imports nothing of gemmspec.

`lint` defines some 150 of them before it reads a line, of which it makes a third. `@dataclass(frozen=True)` compiles
methods for each that are the same for all: here equality, hash and representation are shared, and `__init__` is
compiled when the first is made. That nothing assigns to a field is checked by the type checker rather than at run time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a record: compared and hashed by its fields. Defaults are plain values."""
    contents = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    types: dict[str, Any] = contents.get("__annotations__", {})
    defaults = {name: contents.pop(name) for name in types if name in contents}

    def first(self: Any, *values: Any, **named: Any) -> None:
        made.__init__ = _initializer(types, defaults)
        made.__init__(self, *values, **named)

    contents |= {"__slots__": tuple(types), "__match_args__": tuple(types), "__qualname__": cls.__qualname__}
    contents |= {"__init__": first, "__eq__": _equal, "__hash__": _hash, "__repr__": _show}
    # What `replace`, `fields` and `asdict` of dataclasses go by.
    contents["__dataclass_fields__"] = {name: _field(name, types[name], defaults) for name in types}
    made: Any = type(cls)(cls.__name__, cls.__bases__, contents)
    return made


def _initializer(names: Mapping[str, Any], defaults: Mapping[str, Any]) -> Callable[..., None]:
    arguments = "".join(f", {name}=default_{name}" if name in defaults else f", {name}" for name in names)
    body = "".join(f"\n    self.{name} = {name}" for name in names)
    scope: dict[str, Any] = {f"default_{name}": value for name, value in defaults.items()}
    exec(f"def __init__(self{arguments}):{body or ' pass'}", scope)
    return scope["__init__"]


@dataclasses.dataclass
class _Sample:
    field: int


_KIND: Any = dataclasses.fields(_Sample)[0]._field_type  # type: ignore[attr-defined]


def _field(name: str, kind: Any, defaults: Mapping[str, Any]) -> Any:
    field: Any = dataclasses.field(default=defaults.get(name, dataclasses.MISSING))
    field.name, field.type, field._field_type = name, kind, _KIND
    return field


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__slots__])


def _equal(self: Any, other: object) -> bool:
    if self is other:
        return True
    return self.__class__ is other.__class__ and _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{self.__class__.__qualname__}({fields})"
