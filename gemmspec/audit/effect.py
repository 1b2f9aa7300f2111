"""What an instruction does: an event to be, or a value that is kept for a later one."""

from __future__ import annotations

from dataclasses import dataclass

from gemmspec.audit.terms import UNREAD, Terms


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


@dataclass(frozen=True, slots=True)
class Settle:
    """Asynchronous reads are over: registers get what they were to hold."""

    registers: Registers


Effect = Emit | Assign | Settle


class Registers:
    """Places of register arrays that asynchronous operations fill: each has one for now, and one for what is to come.

    The value is the accumulator column of the array's first element.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.coming: dict[int, int] = {}
        """Place of an array -> the place of what it is to hold."""

    def fill(self, place: int, column: str) -> list[Effect]:
        """Return what the start of an asynchronous read does."""
        if place not in self.coming:
            self.coming[place] = self._terms.spare()
        return [Assign(self.coming[place], column), Assign(place, str(UNREAD))]
