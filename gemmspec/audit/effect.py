"""What an instruction does: an event to be, or a value that is kept for a later one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emit:
    """The kernel does something that the Protocol may speak of."""

    verb: str
    names: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assign:
    """A place of `v` gets a value."""

    place: int
    value: str


Effect = Emit | Assign
