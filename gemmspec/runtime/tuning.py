"""Kernels x shapes -> a table: measured on all GPUs of a host side by side, kept as it comes, taken up where it was.

One process, this one, deals and writes; each GPU has a process that measures (`worker`). What a table already has for
the same setting, kernel, shape and as many rounds is not measured again.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from gemmspec.runtime.card import NoGpu
from gemmspec.runtime.check import misfit
from gemmspec.runtime.interrupts import uninterrupted
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.measure import Shape
from gemmspec.runtime.table import Result, Setting, Table
from gemmspec.runtime.worker import Doing, Done, Entry, Found, Heat, Lost, Measurer, Ready, Said, fault, work

ROUNDS = 15
_TRIES = 2
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel to be measured, and where its files are."""

    kernel: Kernel
    path: str

    @property
    def entry(self) -> Entry:
        """What a worker is told of it."""
        return Entry(self.kernel.name, self.path, self.kernel.content)


@dataclass
class Tuned:
    """What came of it, also of a part. `measured`: results written by this run; `notes`: what could not be measured."""

    settings: dict[Setting, tuple[int, int]] = field(default_factory=dict[Setting, tuple[int, int]])
    """Each with its compute capability."""
    measured: int = 0
    known: int = 0
    """Results that were there before."""
    notes: list[str] = field(default_factory=list[str])
    interrupted: bool = False


Progress = Callable[[int, int, str], None]
"""Told how many results there are, of how many, and what is being done."""


def tune(
    candidates: Sequence[Candidate],
    shapes: Sequence[Shape],
    table: Table,
    gpus: Sequence[int],
    make: Callable[[int], Measurer],
    *,
    rounds: int = ROUNDS,
    patience: float = 20.0,
    progress: Progress = lambda done, total, doing: None,
) -> Tuned:
    """Measure kernels at shapes on GPUs, and write each result into a table as it comes.

    `make` is called in a process of its own with the number of a GPU: a function that can be pickled. Ctrl-C ends it
    with what there is. Raises `NoGpu` where no process finds one, `TableProblem` where nothing can be written.
    """
    crew = _Crew(candidates, shapes, table, make, rounds, patience, progress)
    try:
        crew.run(gpus)
    except KeyboardInterrupt:
        crew.tuned.interrupted = True
    finally:
        crew.end()
    if not crew.tuned.settings and not crew.tuned.interrupted:
        raise NoGpu("; ".join(dict.fromkeys(crew.tuned.notes)) or "no process found one")
    return crew.tuned


@dataclass
class _Worker:
    gpu: int
    pipe: Connection[Any, Any]
    process: Any
    setting: Setting | None = None
    heat: Heat | None = None
    doing: str = ""
    lost: Lost | None = None


class _Crew:
    def __init__(
        self,
        candidates: Sequence[Candidate],
        shapes: Sequence[Shape],
        table: Table,
        make: Callable[[int], Measurer],
        rounds: int,
        patience: float,
        progress: Progress,
    ) -> None:
        self.tuned = Tuned()
        self._candidates, self._shapes, self._table = candidates, shapes, table
        self._make, self._rounds, self._patience, self._progress = make, rounds, patience, progress
        self._workers: list[_Worker] = []
        self._queues: dict[Setting, deque[Heat]] = {}
        self._total = 0

    def run(self, gpus: Sequence[int]) -> None:
        """Deal heats until all are done."""
        for gpu in gpus:
            self._start(gpu)
        while self._workers:
            pipes = {worker.pipe: worker for worker in self._workers}
            for pipe in connection.wait(list(pipes)):
                worker = pipes[pipe]  # type: ignore[index]
                try:
                    self._hear(worker, worker.pipe.recv())
                except (EOFError, ConnectionResetError):
                    self._gone(worker)

    def end(self) -> None:
        """End all processes, at once."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join(_END_S)

    def _start(self, gpu: int) -> None:
        # Spawned: CUDA does not live through a fork.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self._make, gpu, self._rounds, self._patience)
        process = context.Process(target=work, args=arguments, name=f"gemmspec on GPU {gpu}", daemon=True)
        with uninterrupted():
            process.start()
        theirs.close()
        self._workers.append(_Worker(gpu, ours, process))

    def _hear(self, worker: _Worker, said: Said) -> None:
        match said:
            case Ready():
                worker.setting = said.setting
                self._plan(said)
                self._deal(worker)
            case Doing():
                worker.doing = said.kernel
                assert worker.heat is not None
                where = " x ".join(map(str, worker.heat.shape))
                self._tell(f"GPU {worker.gpu}: {where}" + (f", {said.kernel}" if said.kernel else ""))
            case Found():
                self._write(worker, said.results)
            case Done():
                if said.note:
                    self.tuned.notes.append(said.note)
                worker.heat = None
                self._deal(worker)
            case Lost():
                worker.lost = said

    def _plan(self, ready: Ready) -> None:
        """Make the heats of a setting, when the first GPU of it is there."""
        if ready.setting in self._queues:
            return
        self.tuned.settings[ready.setting] = ready.capability
        fit = [c for c in self._candidates if c.kernel.manifest.runs_on(ready.capability)]
        done = {
            (result.content, result.shape)
            for result in self._table.results(ready.setting)
            if result.fault or result.rounds >= self._rounds
        }
        heats, known = _heats(fit, self._shapes, done)
        self._queues[ready.setting] = deque(heats)
        self.tuned.known += known
        self._total += known + sum(len(heat.kernels) for heat in heats)
        self._tell("")

    def _deal(self, worker: _Worker) -> None:
        assert worker.setting is not None
        queue = self._queues[worker.setting]
        worker.heat = queue.popleft() if queue else None
        worker.doing = ""
        # It may have died meanwhile: `_gone` then sees to the heat.
        with _broken_pipe_is_fine():
            worker.pipe.send(worker.heat)

    def _write(self, worker: _Worker, results: Sequence[Result]) -> None:
        assert worker.setting is not None and worker.heat is not None
        self._table.write(worker.setting, results)
        self.tuned.measured += len(results)
        written = {result.content for result in results}
        worker.heat = replace(
            worker.heat, kernels=tuple(entry for entry in worker.heat.kernels if entry.content not in written)
        )
        self._tell("")

    def _gone(self, worker: _Worker) -> None:
        """See to the heat of a process that has ended, and put another in its place if there is more to do."""
        self._workers.remove(worker)
        worker.process.join(_END_S)
        status = worker.process.exitcode
        worker.pipe.close()
        if worker.setting is None:
            why = worker.lost.why if worker.lost else f"its process ended with status {status}"
            self.tuned.notes.append(why if worker.lost and worker.lost.no_gpu else f"GPU {worker.gpu}: {why}")
            return
        queue = self._queues[worker.setting]
        if worker.heat is not None and worker.heat.kernels:
            self._blame(worker, queue, status)
        if queue:
            self._start(worker.gpu)

    def _blame(self, worker: _Worker, queue: deque[Heat], status: int | None) -> None:
        """Write down whose fault it is that a process ended; the others of its heat are measured again."""
        heat = worker.heat
        assert heat is not None
        name = worker.lost.kernel if worker.lost else worker.doing
        why = worker.lost.why if worker.lost else f"the process that measured it ended with status {status}"
        guilty = next((entry for entry in heat.kernels if entry.name == name), None)
        if guilty is not None:
            self._write(worker, [fault(guilty, heat, why)])
            assert worker.heat is not None
            heat = worker.heat
            # It would end the process at other shapes, too.
            self._drop(queue, guilty)
        elif heat.tries + 1 < _TRIES:
            heat = replace(heat, tries=heat.tries + 1)
        else:
            where = " x ".join(map(str, heat.shape))
            self.tuned.notes.append(f"{where} of {heat.types}: given up, {why}")
            return
        if heat.kernels:
            queue.appendleft(heat)

    def _drop(self, queue: deque[Heat], guilty: Entry) -> None:
        left = [replace(h, kernels=tuple(e for e in h.kernels if e.content != guilty.content)) for h in queue]
        self._total -= sum(len(h.kernels) for h in queue) - sum(len(h.kernels) for h in left)
        queue.clear()
        queue.extend(heat for heat in left if heat.kernels)

    def _tell(self, doing: str) -> None:
        self._progress(self.tuned.known + self.tuned.measured, self._total, doing)


def _heats(
    candidates: Sequence[Candidate], shapes: Sequence[Shape], done: set[tuple[str, Shape]]
) -> tuple[list[Heat], int]:
    """Return what is to be measured, and how many results there are already."""
    known = 0
    heats: list[Heat] = []
    for shape in shapes:
        groups: dict[str, list[Entry]] = {}
        for candidate in candidates:
            if misfit(candidate.kernel.manifest, shape):
                continue
            if (candidate.kernel.content, shape) in done:
                known += 1
                continue
            groups.setdefault(candidate.kernel.manifest.types, []).append(candidate.entry)
        heats += [Heat(shape, types, tuple(entries)) for types, entries in groups.items()]
    return heats, known


@contextmanager
def _broken_pipe_is_fine() -> Generator[None]:
    try:
        yield
    except (BrokenPipeError, ConnectionResetError):
        return
