"""The process that measures on one GPU: given heats through a pipe, says what it finds through the same pipe.

A kernel may hang the GPU or break its context, and nothing but the end of the process mends that. So each GPU has a
process, which decides nothing and writes nothing: `tuning` does.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from typing import Any, Protocol

from gemmspec.runtime.card import NoGpu
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.measure import Beat, Checked, Shape, Timing
from gemmspec.runtime.problem import ArgumentProblem, DriverProblem, LoadProblem
from gemmspec.runtime.table import Result, Setting
from gemmspec.runtime.watchdog import Watchdog


class Measurer(Protocol):
    """What measures: one GPU (`gemmspec.runtime.gpu`), or what a test has in its place."""

    @property
    def setting(self) -> Setting: ...
    @property
    def capability(self) -> tuple[int, int]: ...

    def check(self, kernel: Kernel, shape: Shape) -> Checked:
        """Launch a kernel once, and compare what it computes. Raises as a launch does, or `TooLarge`."""
        ...

    def race(self, kernels: Mapping[str, Kernel], shape: Shape, rounds: int, beat: Beat) -> Mapping[str, Timing]:
        """Time kernels that were right, in turn, beside cuBLAS."""
        ...


class TooLarge(Exception):
    """The matrices of a shape do not fit into the memory of the GPU."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel in files: NAME.json and NAME.cubin at `path`."""

    name: str
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Heat:
    """Kernels of the same types that are timed together at a shape.

    `tries`: how often it broke off, and nobody knows why.
    """

    shape: Shape
    types: str
    kernels: tuple[Entry, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Ready:
    """The GPU is at hand."""

    setting: Setting
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Doing:
    """What comes next is about this kernel; about all of the heat, if it is empty."""

    kernel: str


@dataclass(frozen=True, slots=True)
class Found:
    """Results."""

    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The heat is over. `note`: why nothing came of it, or nothing."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The process ends. `kernel`: whose fault that is, if it is known. `why`: in words; `no_gpu`: there was none."""

    kernel: str
    why: str
    no_gpu: bool = False


Said = Ready | Doing | Found | Done | Lost


def work(pipe: Connection[Any, Any], make: Callable[[int], Measurer], gpu: int, rounds: int, patience: float) -> None:
    """Measure heats until None comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    _end_with_parent()
    lock = threading.Lock()

    def say(said: Said) -> None:
        try:
            with lock:
                pipe.send(said)
        except OSError:  # the parent is gone
            os._exit(1)

    try:
        measurer = make(gpu)
    except NoGpu as problem:
        say(Lost("", str(problem), no_gpu=True))
        return
    except Exception as error:
        say(Lost("", _line(error)))
        return
    say(Ready(measurer.setting, measurer.capability))
    last = ""

    def hang(doing: str) -> None:
        say(Lost(doing.split()[0], f"it hangs: nothing moved for {patience:.0f} s"))

    while True:
        try:
            heat: Heat | None = pipe.recv()
        except (EOFError, OSError):  # the parent is gone
            return
        if heat is None:
            return
        watchdog = Watchdog(patience, hang)

        def beat(doing: str, watchdog: Watchdog = watchdog) -> None:
            nonlocal last
            last = doing
            watchdog.beat(doing)

        try:
            _measure(measurer, heat, rounds, beat, say)
        except TooLarge as problem:
            say(Done(str(problem)))
        except Exception as error:
            # A context that a kernel broke stays broken: whatever comes next would fail, too.
            say(Lost(last.split()[0] if last else "", _line(error)))
            os._exit(1)
        finally:
            watchdog.stop()


def _measure(measurer: Measurer, heat: Heat, rounds: int, beat: Beat, say: Callable[[Said], None]) -> None:
    from gemmspec.runtime import load

    right: dict[str, Kernel] = {}
    checks: dict[str, Checked] = {}
    for entry in heat.kernels:
        say(Doing(entry.name))
        beat(f"{entry.name} check")
        try:
            kernel = load(entry.path)
            if kernel.content != entry.content:
                raise LoadProblem(f"{entry.path} has changed since it was read")
            checked = measurer.check(kernel, heat.shape)
        except (ArgumentProblem, DriverProblem, LoadProblem) as problem:
            checked = Checked(float("nan"), str(problem))
        else:
            right[entry.name] = kernel
        checks[entry.name] = checked
        if not checked.ok:
            right.pop(entry.name, None)
            say(Found((_result(entry, heat, checked, None, 0),)))
    if right:
        say(Doing(""))
        timings = measurer.race(right, heat.shape, rounds, beat)
        entries = [entry for entry in heat.kernels if entry.name in right]
        say(Found(tuple(_result(e, heat, checks[e.name], timings[e.name], rounds) for e in entries)))
    say(Done())


def _result(entry: Entry, heat: Heat, checked: Checked, timing: Timing | None, rounds: int) -> Result:
    ms, ratio, low, high = (timing.ms, timing.ratio, *timing.spread) if timing else (None, None, None, None)
    error = checked.error if checked.error == checked.error else None  # NaN is none
    m, n, k = heat.shape
    return Result(
        entry.content, m, n, k, entry.name, heat.types, checked.fault, error, rounds, ms, ratio, low, high, now()
    )


def fault(entry: Entry, heat: Heat, why: str) -> Result:
    """Return the result of a kernel of which nothing more can be said."""
    return _result(entry, heat, Checked(float("nan"), why), None, 0)


def now() -> str:
    """Return the time, in ISO 8601 and UTC: later is greater."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _line(error: Exception) -> str:
    """Return an error in a line: those of torch go on with advice."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"


def _end_with_parent() -> None:
    """End this process when its parent is killed: it would go on to measure, for nobody, beside the next run."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
