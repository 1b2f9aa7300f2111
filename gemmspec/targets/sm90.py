"""Hopper GPUs (H100, H200): wgmma with accumulators in registers."""

from gemmspec.targets.target import Target
from gemmspec.vocabulary import DType

# CUDA C++ Programming Guide, Compute Capabilities (9.0). PTX ISA, wgmma.mma_async: M 64 a warpgroup,
# N 8..256 in steps of 8, K 16 for f16 and bf16. A warpgroup may have two accumulators of 64 rows: more do not fit its
# registers at a useful N.
SM_90A = Target(
    name="sm_90a",
    device="H200",
    sm_count=132,
    smem_bytes=227 * 1024,
    smem_reserved_bytes=1024,
    tmem_columns=0,
    max_threads=1024,
    registers=64 * 1024,
    max_registers=255,
    # PTX ISA, setmaxnreg: a multiple of 8 in 24..256.
    settable_registers=range(24, 257, 8),
    named_barriers=16,
    max_cluster=8,
    has_tmem=False,
    mma_rows=64,
    block_m=(64, 128),
    mma_n_step=8,
    mma_n_max=256,
    mma_k_bytes=32,
    # PTX ISA, wgmma: accumulators lie in fragments of 8 columns.
    chunks=tuple(range(8, 257, 8)),
    swizzle_bytes=128,
    tma_box=256,
    tma_alignment=16,
    operand_types=(DType.F16, DType.BF16),
    output_types=(DType.F16, DType.BF16, DType.F32),
)
