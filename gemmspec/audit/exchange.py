"""Parts of sums between CTAs: 16-byte stores into a peer's receive buffers, loads from the own ones, and additions.

A row of the receive buffers is one such access of each thread of a warpgroup; rows are counted over all buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmspec.audit.effect import Assign, Effect, Emit
from gemmspec.audit.events import RECEIVED
from gemmspec.audit.ir import Call, Const, Do, Expr, For, Read, Set, Tensor, Var
from gemmspec.audit.places import Places
from gemmspec.audit.terms import FIRST, LANE, WARP, Terms, Unfollowed, depends_on, function, number, plus, times
from gemmspec.model.spec import WARPGROUP_THREADS

_ROW_BYTES = 16 * WARPGROUP_THREADS


@dataclass(frozen=True, slots=True)
class _Rows:
    """Row `row` of the receive buffers in the CTA of rank `rank`, at the thread's own 16 bytes."""

    row: str
    rank: str


class Exchange:
    """Translates the exchange of one kernel. `register`: the place of what a register array holds."""

    def __init__(self, terms: Terms, places: Places, register: Callable[[Tensor], int]) -> None:
        self.terms, self.places, self.register = terms, places, register
        self.remote: dict[int, _Rows] = {}
        """By variable: where in a peer it points to."""
        self.instructions: dict[str, Callable[[Do], list[Effect]]] = {
            "ptx.st_vec": self._send,
            "ptx.ld_vec": self._receive,
        }

    def mapped(self, into: Tensor, address: Expr, rank: str) -> list[Effect] | None:
        """Return what `mapa` of a place in the receive buffers does; None for another place."""
        row = self._row(address)
        if row is None:
            self.remote.pop(into.key, None)
            return None
        at, where = self.terms.place(into.key), self.terms.spare()
        self.remote[into.key] = _Rows(f"v[{at}]", f"v[{where}]")
        return [Assign(at, row), Assign(where, rank)]

    def _send(self, do: Do) -> list[Effect]:
        if do.mods != ("shared::cluster", "v4", "f32"):
            raise Unfollowed(f"st {' '.join(do.mods)}")
        address, *registers = do.args
        match address:
            case Read(Tensor(key)) if key in self.remote:
                to, below = self.remote[key], "0"
            case Call("+", (Read(Tensor(key)), offset)) if key in self.remote:
                to, below = self.remote[key], self._rows_below(offset)
            case _:
                raise Unfollowed("a store to another place of a peer than its receive buffers")
        return [Emit("send", (), (to.rank, plus(to.row, below), self._in_a_row(registers)))]

    def _receive(self, do: Do) -> list[Effect]:
        if do.mods != ("shared", "v4", "f32"):
            raise Unfollowed(f"ld {' '.join(do.mods)}")
        *registers, address = do.args
        row = self._row(address)
        into = registers[0].tensor if isinstance(registers[0], Read) else None
        if row is None or into is None or number(into.shape[0]) != 4:
            raise Unfollowed("a load from another place than the receive buffers")
        if self._in_a_row(registers) != f"v[{self.register(into)}]":
            raise Unfollowed("a load into registers out of order")
        return [Assign(self.register(into), plus(times(row, 4), str(RECEIVED)))]

    def sum(self, loop: For) -> list[Effect] | None:
        """Return what a loop does that adds four registers to others, or sets them at first; None for another loop."""
        match loop:
            case For(
                Var(key),
                Const(0),
                Const(4),
                _,
                (
                    Set(
                        to,
                        (Call("+", (base, Var(a))),),
                        Call(
                            "select",
                            (
                                first,
                                Read(part, (Var(b),)),
                                Call("+", (Read(old, (Call("+", (again, Var(c))),)), Read(same, (Var(d),)))),
                            ),
                        ),
                    ),
                ),
            ) if {a, b, c, d} == {key} and to.key == old.key and part.key == same.key:
                start = self.terms.text(base)
                if start != self.terms.text(again) or to.scope != "local" or number(part.shape[0]) != 4:
                    return None
                target = plus(f"v[{self.register(to)}]", start)
                held = f"v[{self.register(part)}]"
                return [Emit("add", (), (target, f"int(bool({self.terms.text(first)}))", held))]
            case _:
                return None

    def _row(self, address: Expr) -> str | None:
        """Return the row at whose own 16 bytes an address of the own receive buffers stands; None for another place."""
        match address:
            case Call("cuda.cvta_generic_to_shared", (inner,)):
                return self._row(inner)
            case Call("address_of", (Read(tensor, (*rows, thread, Const(0))),)) if self.places.received(tensor):
                _own_thread(self.terms.text(thread))
                row = "0"
                for index, size in zip(rows, tensor.shape, strict=False):
                    row = plus(times(row, number(size) or 0), self.terms.text(index))
                return row
            case _:
                return None

    def _rows_below(self, offset: Expr) -> str:
        return f"({self.terms.text(offset)} // {_ROW_BYTES} if {self.terms.text(offset)} % {_ROW_BYTES} == 0 else -1)"

    def _in_a_row(self, registers: list[Expr]) -> str:
        """Return what the first of four registers in a row is."""
        held = [(r.tensor, self.terms.offset(r.indices[0])) for r in registers if isinstance(r, Read)]
        if len(held) != 4 or len(registers) != 4:
            raise Unfollowed("other than four registers")
        tensor, (base, first) = held[0]
        if [(t.key, at) for t, at in held] != [(tensor.key, (base, first + i)) for i in range(4)]:
            raise Unfollowed("registers out of order")
        return plus(f"v[{self.register(tensor)}]", plus(base, str(first)))


def _own_thread(text: str) -> None:
    """Check that a text is the number of the thread in its warpgroup."""
    if set(depends_on(text)) <= {WARP, LANE}:
        value, v = function(text), [0] * FIRST
        for thread in range(WARPGROUP_THREADS):
            v[WARP], v[LANE] = divmod(thread, 32)
            if value(v) != thread:
                break
        else:
            return
    raise Unfollowed("an access to the 16 bytes of another thread")
