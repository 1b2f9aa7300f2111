"""Run a Protocol on numbers. See docs/simulation.md for what is modelled, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gemmspec.protocol.program import Program, Protocol
from gemmspec.protocol.schedule import tile_order, tiles_of
from gemmspec.protocol.tile import Tiling
from gemmspec.simulate.barriers import ProtocolFault
from gemmspec.simulate.compare import compare
from gemmspec.simulate.engines import Team
from gemmspec.simulate.hang import hang
from gemmspec.simulate.machine import WARPS_OF_WARPGROUP, Cta, Lane, Machine, Output
from gemmspec.simulate.memory import empty
from gemmspec.simulate.outcome import Fault, Outcome, Place
from gemmspec.simulate.problem import Problem, prepare, sizes_of
from gemmspec.simulate.warp import Warp


def simulate(
    protocol: Protocol,
    sizes: Mapping[str, int],
    seed: int = 0,
    *,
    ctas: int | None = None,
    clusters: int | None = None,
    problem: Problem | None = None,
    stored: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run every role of every CTA under one schedule, and compare the result with the reference.

    sizes: M, N, K where they differ from the spec's. seed: decides the schedule. ctas: persistent CTAs in place of
    the spec's (few make each cluster do many tiles). clusters: run that many only; all by default. problem: operands
    to use, so that many seeds share one reference. stored: called with the elements of D that each store wrote.
    """
    spec, tiling = protocol.spec, Tiling.of(protocol.spec)
    problem = problem or prepare(spec, sizes)
    if (problem.m, problem.n, problem.k) != sizes_of(spec, sizes):
        raise ValueError("the problem has other sizes")
    output = Output(empty(problem.m, problem.n), np.zeros((problem.m, problem.n), np.bool_), stored)
    seen = np.zeros((problem.m, problem.n), np.bool_)
    order = tile_order(tiling.m_tiles(problem.m), tiling.n_tiles(problem.n), tiling.group)
    there = max((ctas if ctas is not None else tiling.ctas) // spec.cluster.size, 1)
    # Clusters without a tile are all alike, so one is run: a role may not wait for what never comes.
    running = min(there, len(order) + 1, clusters if clusters is not None else there)
    faults: list[Fault] = []
    steps = tiles = 0
    for number in range(running):
        work = tiles_of(order, number, there)
        for row, column in work:
            top, left = row * tiling.tile_m, column * tiling.tile_n
            seen[top : top + tiling.tile_m, left : left + tiling.tile_n] = True
        machine = Machine(protocol, tiling, problem, output, work, seed * 1_000_003 + number)
        faults += _run(machine, number)
        steps += machine.adversary.steps
        tiles += len(work)
    block = (tiling.block_m, tiling.acc_columns)
    result = compare(problem, output.d, output.written, seen, block, spec.gemm.d.value)
    return Outcome(
        seed=seed,
        sizes=(problem.m, problem.n, problem.k),
        clusters=running,
        tiles=tiles,
        steps=steps,
        relative_error=result.relative_error,
        map=result.map,
        wrong=result.wrong,
        blocks=result.blocks,
        faults=tuple(faults),
        reference=problem.by,
        d=output.d,
    )


def _run(machine: Machine, number: int) -> list[Fault]:
    """Run one cluster to its end; return its first hazard, and what stopped it, if anything did."""
    warps = [warp for cta in machine.ctas for warp in _warps(machine, cta)]
    adversary = machine.adversary
    faults: list[Fault] = []
    try:
        # NaN and infinities are the point here.
        with np.errstate(all="ignore"):
            while adversary.step():
                pass
    except ProtocolFault as fault:
        faults.append(Fault(fault.kind, str(fault), number, place=_origin(adversary.current)))
    else:
        if not all(warp.finished for warp in warps):
            faults.append(hang(machine.protocol, warps, number))
    if machine.first_hazard:
        message, place, other = machine.first_hazard
        faults.insert(0, Fault("hazard", message, number, place, other))
    return faults


def _origin(entity: object) -> Place | None:
    """Return where the entity in whose step a fault arose was, or was issued."""
    if isinstance(entity, Lane):
        return entity.origin if isinstance(entity.origin, Place) else None
    if isinstance(entity, Warp):
        return entity.place(entity.statement.span if entity.statement else None)
    return None


def _warps(machine: Machine, cta: Cta) -> list[Warp]:
    """Return all warps of a CTA, in the order of their numbers; some run a role."""
    spec = machine.spec
    parts: dict[tuple[int, int], tuple[Program, int, Team, int]] = {}
    for program in machine.protocol.programs:
        placement = program.role.placement
        for instance in range(program.instances):
            team = Team(machine, cta)
            group, warp = placement.warpgroups[0] + instance, 0
            if placement.warps is not None:
                group, warp = placement.warpgroups[0], placement.warps[0] + instance
            for i in range(1 if program.threads == 1 else WARPS_OF_WARPGROUP):
                parts[group, warp + i] = (program, instance, team, i)
    groups = max(r.placement.warpgroups[1] for r in spec.roles) + 1
    warps: list[Warp] = []
    for group in range(groups):
        for warp in range(WARPS_OF_WARPGROUP):
            first = not warps
            part = parts.get((group, warp))
            if part is None or (part[0].leader_only and cta.rank % spec.pair):
                warps.append(Warp(machine, cta, Team(machine, cta), None, 0, warp, first))
            else:
                program, instance, team, i = part
                warps.append(Warp(machine, cta, team, program, instance, i, first))
    return warps
