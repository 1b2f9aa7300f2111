"""Cycles of each action, for one spec on one card. Given a `Protocol`, return `Costs`; knows nothing of contention."""

from __future__ import annotations

from dataclasses import dataclass

from gemmspec.model.spec import WARPGROUP_THREADS, Spec
from gemmspec.protocol.program import Protocol
from gemmspec.protocol.tile import Tiling, ceil_div
from gemmspec.targets.timing import Timing
from gemmspec.targets.timing_sm90 import H200
from gemmspec.targets.timing_sm100 import B200

TIMINGS: dict[str, Timing] = {"sm_100a": B200, "sm_90a": H200}

# Accumulators are f32 in both generations.
ACCUMULATOR_BYTES = 4


@dataclass(frozen=True, slots=True)
class Costs:
    """Cycles, unless said otherwise."""

    timing: Timing
    mma: float
    """The tensor core's time for one Mma: all instructions of one k tile of one consumer."""
    mma_issue: float
    """The issuing thread's time for one Mma."""
    read: float
    """Tensor memory's time for one AccRead."""
    write: float
    """One StoreWrite: conversion, and the stores to shared memory of 128 threads."""
    send: float
    """One Send: the way to the peers' shared memory."""
    add: float
    """One Add: what was received is read, and added by the 128 lanes of an SM."""
    store: float
    """The time in which one StoreIssue occupies the way out of the SM."""
    flops: float
    """Floating-point operations of one Mma in one SM (not cycles)."""

    @staticmethod
    def of(protocol: Protocol) -> Costs:
        """Return the costs of a protocol's actions."""
        spec = protocol.spec
        t = timing_of(spec)
        tiling = Tiling.of(spec)
        instructions = mma_instructions(spec, tiling)
        flops = 2.0 * tiling.block_m * tiling.acc_columns * tiling.block_k
        # Each SM of a pair reads its own rows of A and of B from its own shared memory, once an instruction.
        rows = tiling.block_m + stacked(spec, tiling) * tiling.block_n
        read = rows * tiling.block_k * spec.gemm.a.value.bytes
        rate = t.mma_flops * t.mma_efficiency
        mma = max(flops / rate, read / t.smem_bytes, instructions * t.mma_floor)
        elements = tiling.block_m * tiling.chunk
        stored = tiling.block_m * tiling.chunk * spec.gemm.d.value.bytes
        received = tiling.part_bytes * (tiling.split - 1)
        narrow = spec.gemm.d.value.bytes < ACCUMULATOR_BYTES
        convert = elements / 2 / t.convert if narrow else 0.0
        return Costs(
            timing=t,
            mma=mma,
            mma_issue=instructions * t.mma_issue,
            read=elements * ACCUMULATOR_BYTES / t.acc_bytes,
            write=convert + stored / t.smem_bytes + t.wait,
            send=received / t.peer_bytes + t.wait,
            add=received / t.smem_bytes + received / ACCUMULATOR_BYTES / WARPGROUP_THREADS + t.wait,
            store=stored / t.l2_write_bytes,
            flops=flops,
        )


def timing_of(spec: Spec) -> Timing:
    """Return the timing of a spec's target."""
    return TIMINGS[spec.target.name]


def mma_instructions(spec: Spec, tiling: Tiling) -> int:
    """Return how many MMA instructions one k tile of one consumer is."""
    depth = spec.target.mma_k_bytes // spec.gemm.a.value.bytes
    return stacked(spec, tiling) * ceil_div(tiling.block_k, depth)


def stacked(spec: Spec, tiling: Tiling) -> int:
    """Return how many MMA instructions stand one below the other in a consumer's tile."""
    return ceil_div(tiling.block_m, spec.target.mma_rows)
