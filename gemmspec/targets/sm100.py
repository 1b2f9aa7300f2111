"""Blackwell data centre GPUs (B200): tcgen05, tensor memory, CTA pairs."""

from gemmspec.targets.target import Target
from gemmspec.vocabulary import DType

# CUDA C++ Programming Guide, Compute Capabilities (10.0): 227 KiB a CTA, 64 K registers, 1024 threads,
# 16 named barriers, clusters of up to 8 CTAs. PTX ISA, tcgen05: 512 columns of tensor memory; kind::f16
# M 64/128 (cta_group::1) or 128/256 (cta_group::2), N 8..256 in steps of 8 (16 for M 128 and pairs of M 256), K 16.
# PTX ISA, cp.async.bulk.tensor and tensor maps: box dimensions up to 256, strides in multiples of 16 bytes.
SM_100A = Target(
    name="sm_100a",
    device="B200",
    sm_count=148,
    smem_bytes=227 * 1024,
    smem_reserved_bytes=1024,
    tmem_columns=512,
    max_threads=1024,
    registers=64 * 1024,
    max_registers=255,
    # PTX ISA, setmaxnreg: a multiple of 8 in 24..256.
    settable_registers=range(24, 257, 8),
    named_barriers=16,
    max_cluster=8,
    has_tmem=True,
    mma_rows=128,
    block_m=(128,),
    mma_n_step=16,
    mma_n_max=256,
    mma_k_bytes=32,
    # PTX ISA, tcgen05.ld: .32x32b.x1 .. .x128, a power of two; 4 columns are the least that TMA stores.
    chunks=(4, 8, 16, 32, 64, 128),
    swizzle_bytes=128,
    tma_box=256,
    tma_alignment=16,
    operand_types=(DType.F16, DType.BF16),
    output_types=(DType.F16, DType.BF16, DType.F32),
)
