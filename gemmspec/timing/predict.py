"""Protocol -> Prediction: the time of the whole problem on the whole card.

One cluster, the one with the most tiles, is replayed; all others are like it, and share bandwidth with it. Where
there are many tiles or a long k, a part is replayed and its steady state continued: time is linear in both then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gemmspec.diagnostics import SizeError
from gemmspec.model.spec import Spec
from gemmspec.protocol.program import Action, Branch, Loop, Protocol, Statement
from gemmspec.protocol.tile import Tiling
from gemmspec.targets.timing import Timing
from gemmspec.timing.costs import Costs
from gemmspec.timing.memory import Problem, Wave, problem_of, waves_of
from gemmspec.timing.outcome import Prediction, Waits
from gemmspec.timing.replay import Record, Replay
from gemmspec.vocabulary import LoopKind

# Actions that are replayed at most, and what that may leave: enough for rings to settle.
MOST_ACTIONS = 50_000
FEWEST_TILES = 4
MOST_TILES = 500_000
LONGEST_K = 512
# The clock and the use of the tensor cores depend on each other; this often they are brought together.
ROUNDS = 3
FIRST_GUESS = 0.7
CLOSE = 0.01


class Stuck(Exception):
    """The pipeline never ends: lint says why."""


def sizes_of(spec: Spec, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """Return M, N and K: as in `sizes`, else as in the spec (the typical one where it is known at run time only).

    Raises `SizeError` where one is known at run time only, or where there are too many tiles to take one by one.
    """
    known = {s.name: sizes.get(s.name, s.fixed if s.fixed is not None else s.typical) for s in spec.sizes}
    if missing := [name for name, size in known.items() if not size]:
        given = " ".join(f"--size {name}=4096" for name in missing)
        raise SizeError(f"{', '.join(missing)}: known at run time only, so say for which to predict: {given}")
    m, n, k = (size or 0 for size in known.values())
    tiling = Tiling.of(spec)
    tiles = tiling.m_tiles(m) * tiling.n_tiles(n)
    if tiles > MOST_TILES:
        raise SizeError(f"M={m} N={n}: that is {tiles:,} output tiles, and at most {MOST_TILES:,} are predicted")
    return m, n, k


def predict(protocol: Protocol, sizes: Mapping[str, int] | None = None, *, timeline: bool = False) -> Prediction:
    """Return how long a protocol takes. Raises `Stuck` where it has a deadlock.

    sizes: M, N, K where they differ from the spec's. timeline: keep the blocks of what is replayed.
    """
    spec = protocol.spec
    tiling, costs = Tiling.of(spec), Costs.of(protocol)
    problem = problem_of(tiling, sizes_of(spec, sizes or {}), spec.cluster.size, spec.target.sm_count)
    tiles = len(problem.work[0])
    depth = min(problem.k_tiles, LONGEST_K)
    replayed = min(tiles, max(MOST_ACTIONS // _actions(protocol, depth), FEWEST_TILES))
    waves = waves_of(spec, tiling, problem, costs.timing, replayed)
    ghz = clock(costs.timing, FIRST_GUESS)
    record, cycles = _whole(protocol, costs, waves, problem, depth, ghz, timeline)
    for _ in range(ROUNDS):
        before, ghz = ghz, clock(costs.timing, _busy(protocol, costs, problem, cycles))
        # Only device memory has a clock of its own.
        if abs(ghz - before) < CLOSE * before or not any(w.dram_bytes for w in waves):
            break
        record, cycles = _whole(protocol, costs, waves, problem, depth, ghz, timeline)
    return _prediction(protocol, costs, problem, waves, record, cycles, ghz)


def clock(timing: Timing, busy: float) -> float:
    """Return the SM clock in GHz with the tensor cores busy for that part of the time.

    The power cap holds dynamic power, which goes with f V^2 and so about with f^3, at what it is at `tensor_ghz`.
    """
    other = timing.other_power
    return min(timing.boost_ghz, timing.tensor_ghz * ((1 + other) / (busy + other)) ** (1 / 3))


def _whole(
    protocol: Protocol, costs: Costs, waves: Sequence[Wave], problem: Problem, depth: int, ghz: float, timeline: bool
) -> tuple[Record, float]:
    """Replay a part, and return its record and the cycles of the whole."""
    record, cycles = _part(protocol, costs, waves, len(problem.work[0]), depth, ghz, timeline)
    if depth < problem.k_tiles:
        shorter = _part(protocol, costs, waves, len(problem.work[0]), depth // 2, ghz, False)[1]
        cycles += (cycles - shorter) / (depth - depth // 2) * (problem.k_tiles - depth)
    return record, cycles + costs.timing.prologue + costs.timing.epilogue


def _part(
    protocol: Protocol, costs: Costs, waves: Sequence[Wave], tiles: int, depth: int, ghz: float, timeline: bool
) -> tuple[Record, float]:
    record = Replay(protocol, costs, waves, depth, ghz, timeline).run()
    if not record.finished:
        raise Stuck(protocol.spec.name)
    left = tiles - len(waves)
    if not left:
        return record, record.end
    half = len(waves) // 2
    period = (record.tile_ends[-1] - record.tile_ends[half - 1]) / (len(waves) - half)
    return record, record.end + period * left


def _busy(protocol: Protocol, costs: Costs, problem: Problem, cycles: float) -> float:
    """Return for how much of the time the tensor cores of the card are busy, ragged tiles included."""
    tiling = Tiling.of(protocol.spec)
    multiplies = sum(map(len, problem.work)) * problem.k_tiles * tiling.consumers * protocol.spec.cluster.size
    return multiplies * costs.flops / costs.timing.mma_flops / (cycles * protocol.spec.target.sm_count)


def _prediction(
    protocol: Protocol,
    costs: Costs,
    problem: Problem,
    waves: Sequence[Wave],
    record: Record,
    cycles: float,
    ghz: float,
) -> Prediction:
    spec, t = protocol.spec, costs.timing
    sms = spec.target.sm_count
    seconds = cycles / (ghz * 1e9) + t.launch_us * 1e-6
    part = len(problem.work[0]) / len(waves)
    l2 = sum(w.l2_bytes for w in waves) * part
    dram = sum(w.dram_bytes for w in waves) * part
    return Prediction(
        kernel=spec.name,
        device=t.device,
        sizes=(problem.m, problem.n, problem.k),
        seconds=seconds,
        launch=t.launch_us * 1e-6,
        cycles=cycles,
        ghz=ghz,
        tflops=problem.flops / seconds / 1e12,
        utilisation=problem.flops / (t.mma_flops * sms * cycles),
        l2=l2 / (t.l2_bytes * sms * cycles),
        dram=dram / (t.dram_gbs * 1e9 * cycles / (ghz * 1e9)),
        clusters=len(problem.work),
        waves=len(problem.work[0]),
        replayed=len(waves),
        without_tile=1 - sum(map(len, problem.work)) * spec.cluster.size / (sms * len(problem.work[0])),
        stalls=tuple(sorted(((n, c / record.end) for n, c in record.stalls.items()), key=lambda x: -x[1])),
        waits=_waits(protocol, record),
        tile_ends=tuple(record.tile_ends),
        blocks=tuple(_shifted(record, t.prologue)),
    )


def _shifted(record: Record, by: float):
    for block in record.blocks:
        yield replace(block, start=block.start + by, end=block.end + by)


def _waits(protocol: Protocol, record: Record) -> tuple[Waits, ...]:
    spec = protocol.spec
    waits: list[Waits] = []
    for program in protocol.programs:
        ctas = spec.cluster.size // (spec.pair if program.leader_only else 1)
        instances = program.instances * ctas
        whole = record.end * instances
        by = sorted(((n, c / whole) for n, c in record.waited.get(program.role.name, {}).items()), key=lambda x: -x[1])
        alive = record.alive.get(program.role.name, 0.0) / whole
        waits.append(Waits(program.role.name, instances, alive - sum(part for _, part in by), tuple(by)))
    return tuple(waits)


def _actions(protocol: Protocol, k_tiles: int) -> int:
    """Return the actions of one tile of the cluster."""

    def count(body: tuple[Statement, ...]) -> int:
        total = 0
        for statement in body:
            match statement:
                case Loop(LoopKind.TILE):
                    total += count(statement.body)
                case Loop(LoopKind.K):
                    total += count(statement.body) * (k_tiles + statement.offset)
                case Loop():
                    total += count(statement.body) * (statement.count or 0)
                case Branch():
                    total += count(statement.body)
                case _:
                    action: Action = statement
                    total += bool(action)
        return total

    size = protocol.spec.cluster.size
    return max(sum(count(p.body) * p.instances * size for p in protocol.programs), 1)
