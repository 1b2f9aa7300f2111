"""Lint and predict many variants of a spec: one after the other, on all cores, or on a Dask cluster.

A `Job` is plain data and `run_job` a function of a module, so that both can be sent to other processes.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from gemmspec.driver import check
from gemmspec.runtime.interrupts import uninterrupted
from gemmspec.source import SourceFile
from gemmspec.targets import TARGETS
from gemmspec.timing import predict

# Starting a process costs about as much as this many predictions.
FEW = 4
CONNECT_SECONDS = 5


class SweepProblem(Exception):
    """The jobs cannot be run where they were to be; the text says why."""


@dataclass(frozen=True, slots=True)
class Job:
    """One variant of a spec. `number`: its place among all."""

    number: int
    values: tuple[tuple[str, str], ...]
    name: str
    text: str
    sizes: tuple[tuple[str, int], ...]
    target: str | None


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a job: a time, or the codes of what lint says against it."""

    number: int
    values: tuple[tuple[str, str], ...]
    milliseconds: float | None = None
    tflops: float = 0.0
    utilisation: float = 0.0
    stall: str = ""
    """What the tensor cores wait for most, and for what part of the time."""
    codes: tuple[tuple[str, str], ...] = ()
    """Code and message of each error, one a code."""


def run_job(job: Job) -> Tried:
    """Lint a variant, and predict its time if it is sound."""
    target = TARGETS[job.target] if job.target else None
    checked = check(SourceFile(job.name, job.text), dict(job.sizes), target)
    errors: dict[str, str] = {}
    for error in checked.report.errors:
        errors.setdefault(error.code, error.message)
    if errors or checked.protocol is None:
        return Tried(job.number, job.values, codes=tuple(errors.items()))
    p = predict(checked.protocol, dict(job.sizes))
    stall = f"{p.stalls[0][0]} {p.stalls[0][1]:.0%}" if p.stalls else ""
    return Tried(job.number, job.values, p.seconds * 1e3, p.tflops, p.utilisation, stall)


def run_here(jobs: Sequence[Job], processes: int | None = None) -> Iterator[Tried]:
    """Yield what becomes of each job as it is done, on `processes` cores (all that this process may use)."""
    workers = min(processes or _cores(), len(jobs))
    if workers <= 1 or len(jobs) <= FEW:
        yield from map(run_job, jobs)
        return
    # Spawned, since a fork would take over locks of threads that are not there (progress bars have one).
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_interruptible)
    try:
        with uninterrupted():
            # The first ones start the workers.
            pending: set[Future[Tried]] = {pool.submit(run_job, job) for job in jobs}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise SweepProblem("a worker process has died") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_on_dask(jobs: Sequence[Job], address: str) -> Iterator[Tried]:
    """Yield what becomes of each job as it is done, on a Dask cluster that has gemmspec installed.

    The scheduler gives the jobs of a worker that is lost to others.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise SweepProblem("Dask is not installed: pip install 'gemmspec[dask]'") from error
    try:
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SweepProblem(f"there is no Dask scheduler at {address}: {error}") from error
    try:
        futures = client.map(run_job, jobs, pure=False, key=[f"gemmspec-{os.getpid()}-{j.number}" for j in jobs])
        for future in distributed.as_completed(futures, loop=client.loop):
            try:
                yield future.result()
            except (ImportError, distributed.KilledWorker) as error:
                raise SweepProblem(f"a worker cannot do it: {error}") from error
    finally:
        client.close()


def ranked(tried: Sequence[Tried]) -> tuple[list[Tried], list[Tried]]:
    """Return those that have a time, the fastest first, and those that are refused, in their order."""
    fit = [t for t in tried if t.milliseconds is not None]
    return (
        sorted(fit, key=lambda t: (t.milliseconds or 0.0, t.number)),
        sorted((t for t in tried if t.milliseconds is None), key=lambda t: t.number),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _interruptible() -> None:
    """Let Ctrl-C end a worker at once and without a word, one that has been put off too: the parent speaks for all."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
