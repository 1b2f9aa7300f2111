"""mbarriers and thread barriers, with the semantics of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable

from gemmspec.targets.target import MBARRIER_TX_LIMIT


class ProtocolFault(Exception):
    """What the hardware leaves undefined or never finishes; `kind` is that of `Fault`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Waiter:
    """Whoever can be made to look again at what it waits for."""

    def wake(self) -> None:
        """Look again, some time."""
        raise NotImplementedError


class Mbarrier:
    """One mbarrier object. `phase` counts the phases that completed: the parity in progress is its last bit."""

    __slots__ = ("_waiters", "count", "initialised", "name", "pending", "phase", "tx")

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count
        self.initialised = False
        self.pending = count
        self.tx = 0
        self.phase = 0
        self._waiters: dict[Waiter, None] = {}

    def passes(self, parity: int) -> bool:
        """Return what `try_wait.parity` does: whether the phase of that parity is the one that completed last."""
        self._check()
        return self.phase & 1 != parity

    def attend(self, waiter: Waiter) -> None:
        """Wake `waiter` when the phase completes."""
        self._waiters[waiter] = None

    def arrive(self, times: int) -> None:
        """Take that many single arrivals, one after the other: a phase may complete in between."""
        self._check()
        while times:
            if not self.pending:
                raise ProtocolFault(
                    "over-arrival",
                    f"`{self.name}` gets an arrival beyond the {self.count} of its phase, which lacks {self.tx} bytes",
                )
            taken = min(times, self.pending)
            self.pending -= taken
            times -= taken
            self._settle()

    def expect(self, size: int) -> None:
        """Raise the bytes that the phase needs; no arrival by itself."""
        self._move(size)

    def complete(self, size: int) -> None:
        """Count bytes that have landed. They may come before they are expected."""
        self._move(-size)
        self._settle()

    def _move(self, size: int) -> None:
        self._check()
        self.tx += size
        if abs(self.tx) > MBARRIER_TX_LIMIT:
            raise ProtocolFault(
                "bytes", f"`{self.name}` has {self.tx} bytes pending; an mbarrier counts to {MBARRIER_TX_LIMIT}"
            )

    def _settle(self) -> None:
        if self.pending or self.tx:
            return
        self.phase += 1
        self.pending = self.count
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter.wake()

    def _check(self) -> None:
        if not self.initialised:
            raise ProtocolFault("uninitialised", f"`{self.name}` is used before its initialisation is visible")


class ThreadBarrier:
    """`bar.sync` or `barrier.cluster`: opens when as many warps have come as `needed` says then."""

    def __init__(self, needed: Callable[[], int]) -> None:
        self._needed = needed
        self._here: list[Waiter] = []
        self.generation = 0

    def join(self, waiter: Waiter) -> int:
        """Arrive, and return the generation that must pass before the waiter goes on."""
        generation = self.generation
        self._here.append(waiter)
        self.settle()
        return generation

    def settle(self) -> None:
        """Open if all are here. To be called again when a warp exits."""
        if self._here and len(self._here) >= self._needed():
            here, self._here = self._here, []
            self.generation += 1
            for waiter in here:
                waiter.wake()
