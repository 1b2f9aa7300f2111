"""What a wait of a debug build does, which may give up: a call of the device function of `gemmspec.waits`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmspec.audit.effect import Assign, Effect, Emit
from gemmspec.audit.ir import Const, Expr, Read, Tensor, Text
from gemmspec.audit.terms import GIVES_UP, Terms, Unfollowed, is_scalar
from gemmspec.waits import Waits


def bounded_wait(
    terms: Terms,
    waits: Waits | None,
    plain: Callable[[tuple[Expr, ...]], Emit],
    counter: Tensor,
    args: tuple[Expr, ...],
) -> list[Effect]:
    """Return what a bounded wait does: it waits, knows where it stands, and is counted, or gives up.

    `plain` gives the wait of a barrier's address and a parity.
    """
    match args:
        case (Text("gemmspec_wait"), barrier, parity, Read(Tensor(key), (Const(0),)), *where, Text(source)):
            if waits is None or source != waits.source:
                raise Unfollowed("a bounded wait of another kind")
            if key != counter.key or not is_scalar(counter):
                raise Unfollowed("a bounded wait that is not counted where it counts from")
            wait, place = plain((barrier, parity)), terms.place(key)
            said = tuple(terms.text(e) for e in where)
            counted = f"(-1 if v[{place}] == v[{GIVES_UP}] else v[{place}] + 1)"
            return [replace(wait, numbers=(*wait.numbers, *said)), Assign(place, counted)]
        case _:
            raise Unfollowed("a call of a function that is not known")
