"""What a target's timing file states: latencies and bandwidths, each with where it comes from.

Cycles are of the SM clock. Nothing here is a limit that a rule checks: `Target` states those.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum


class Standing(Enum):
    """How far a figure can be trusted."""

    VENDOR = "vendor"
    """Stated by NVIDIA, or what follows from such figures."""
    MEASURED = "measured"
    """Measured by others, in public."""
    ESTIMATE = "estimate"
    """Chosen by analogy. Its error is small next to what the model is used for, or not known."""
    FITTED = "fitted"
    """Chosen so that one published result comes out: the only ones that were are of this standing."""


class Figure(float):
    """A number with its source."""

    standing: Standing
    source: str

    def __new__(cls, value: float, standing: Standing, source: str) -> Figure:
        figure = super().__new__(cls, value)
        figure.standing = standing
        figure.source = source
        return figure


@dataclass(frozen=True)
class Timing:
    """The speed of one card."""

    device: str
    boost_ghz: Figure
    """Highest SM clock."""
    tensor_ghz: Figure
    """SM clock that the power cap leaves when the tensor cores never idle."""
    other_power: Figure
    """Dynamic power of all but the tensor cores, as a fraction of that of the busy tensor cores."""
    mma_flops: Figure
    """Floating-point operations of the tensor cores, a cycle and SM, with 16-bit operands, dense."""
    mma_floor: Figure
    """Fewest cycles between two MMA instructions."""
    mma_efficiency: Figure
    """Fraction of `mma_flops` that back-to-back instructions reach."""
    mma_latency: Figure
    """Cycles from the end of an MMA's own slot in the tensor core to its result being there."""
    mma_issue: Figure
    """Cycles of the issuing thread for one MMA instruction (descriptors included)."""
    commit: Figure
    """Cycles from the end of an MMA to the arrival that its commit makes; wgmma: to wait_group passing."""
    smem_bytes: Figure
    """Bytes that shared memory delivers, a cycle and SM."""
    tma_issue: Figure
    """Cycles of the issuing thread for one bulk tensor copy."""
    tma_latency: Figure
    """Cycles from the issue of a bulk load that hits L2 to the landing of its first byte in shared memory."""
    dram_latency: Figure
    """Cycles that a miss of L2 adds."""
    link_bytes: Figure
    """Bytes that one SM can take in, a cycle."""
    l2_bytes: Figure
    """Bytes that L2 delivers, a cycle and SM, with all SMs reading."""
    l2_write_bytes: Figure
    """Bytes that L2 takes, a cycle and SM, with all SMs writing."""
    l2_capacity: Figure
    """Bytes of L2 that data shared by all SMs can occupy."""
    dram_gbs: Figure
    """Bandwidth of device memory that is reached, GB/s."""
    wait: Figure
    """Cycles of an mbarrier wait that passes at once."""
    wake: Figure
    """Cycles from the completion of a phase to the waiter going on."""
    arrive: Figure
    """Cycles of an arrival on a barrier of the own CTA."""
    remote: Figure
    """Cycles that an arrival on a barrier of another CTA of the cluster takes more."""
    peer_bytes: Figure
    """Bytes that one SM can write into shared memory of others of its cluster, a cycle."""
    acc_latency: Figure
    """Cycles of a tcgen05.ld of no length."""
    acc_bytes: Figure
    """Bytes that tensor memory delivers to registers, a cycle and SM."""
    convert: Figure
    """Conversions of pairs of f32, a cycle and SM."""
    store_latency: Figure
    """Cycles from the issue of a bulk store to the first read of shared memory, and back to the wait of its thread."""
    fence: Figure
    """Cycles of a proxy fence or tcgen05 fence."""
    sync: Figure
    """Cycles of `bar.sync` of a warpgroup."""
    tile: Figure
    """Cycles of the tile scheduler, a tile and role."""
    prologue: Figure
    """Cycles from the start of a CTA to its roles: barriers, tensor memory, cluster sync, tensor maps."""
    epilogue: Figure
    """Cycles from the end of the last role to the end of the CTA: last store drained, sync, deallocation."""
    launch_us: Figure
    """Microseconds from the end of one kernel to the start of the next, in a stream that is full."""


def figures(timing: Timing) -> list[tuple[str, Figure]]:
    """Return every figure of a timing with its name, in the order of the class."""
    named = ((field.name, getattr(timing, field.name)) for field in fields(timing))
    return [(name, value) for name, value in named if isinstance(value, Figure)]
