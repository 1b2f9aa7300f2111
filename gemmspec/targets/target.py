"""What a target states: limits, instructions, sizes. Data for rules, the planner and the timed model."""

from __future__ import annotations

from gemmspec.record import record
from gemmspec.vocabulary import DType

# PTX ISA, mbarrier: the range of the tx-count, in bytes, is the same for all targets.
MBARRIER_TX_LIMIT = (1 << 20) - 1


@record
class Target:
    """Hardware facts of one compute capability. Each figure's source stands in the target's file."""

    name: str
    """`sm_100a`: the architecture that nvcc is given."""
    device: str
    """A card that has it, for messages: `B200`."""
    sm_count: int
    """Multiprocessors of that card: the default number of persistent CTAs."""
    smem_bytes: int
    """Most dynamic shared memory of one CTA, in bytes."""
    smem_reserved_bytes: int
    """Shared memory of an SM that the system keeps for each CTA, in bytes."""
    tmem_columns: int
    """Tensor memory columns of 128 lanes x 32 bit; 0 where there is no tensor memory."""
    max_threads: int
    """Most threads of a CTA."""
    registers: int
    """32-bit registers of an SM."""
    max_registers: int
    """Most registers of a thread."""
    settable_registers: range
    """What a warpgroup can ask for (setmaxnreg), for each thread."""
    named_barriers: int
    """Named barriers of a CTA (`bar.sync` ids)."""
    max_cluster: int
    """Most CTAs of a portable cluster."""
    has_tmem: bool
    """Whether accumulators live in tensor memory (tcgen05) rather than in registers (wgmma)."""
    mma_rows: int
    """Rows of one MMA instruction per CTA."""
    block_m: tuple[int, ...]
    """Legal rows of one consumer's tile in a CTA: one instruction, or several, one below the other."""
    mma_n_step: int
    """MMA N is a multiple of this, for one CTA (a pair doubles it)."""
    mma_n_max: int
    """Most columns of one MMA (both CTAs of a pair together)."""
    mma_k_bytes: int
    """Depth of one MMA instruction in bytes of a row."""
    chunks: tuple[int, ...]
    """Legal columns of a chunk: what one epilogue step can move from the accumulator."""
    swizzle_bytes: int
    """Row bytes of the widest swizzle atom, and so the TMA box width of a swizzled tile."""
    tma_box: int
    """Most elements of a TMA box along one dimension."""
    tma_alignment: int
    """Global strides and addresses are multiples of this many bytes."""
    operand_types: tuple[DType, ...]
    output_types: tuple[DType, ...]

    def launch_registers(self, threads: int) -> int:
        """Return the registers that each of so many threads of a CTA has at launch where `setmaxnreg` is used.

        The compiler, told of one CTA an SM, gives every thread an equal share of the register file, in steps.
        """
        step = self.settable_registers.step
        return min(self.registers // threads // step * step, self.settable_registers[-1])
