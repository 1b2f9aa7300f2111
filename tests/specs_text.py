"""Spec texts that several tests of the syntax share: the v9 of the design, and one of every construct."""

from __future__ import annotations

V9 = """\
# v9: two consumers share one staged B tile; a cluster computes 512 x 256.
kernel hgemm_v9
target sm_100a

gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes    M = 4096, N = 4096, K = 4096  # defaults; --size M=8192 overrides
cluster  2 x 1                         # the pair runs one MMA (cta_group 2)
block    128 x 128 x 64                # per CTA, consumer and stage: rows of A, rows of B, depth
stages   4
schedule persistent ctas 148 group 8

role producer  = tma       on warpgroup 2 warp 3
role consumer  = mma       on warpgroup 2 warps 0..1    # two instances
role writeback = epilogue  on warpgroups 0..1 chunk 64  # two instances

barrier tma2mma [stages]    producer  -> consumer   via tma      arrivals 1    phase 0  at cta 0
barrier mma2tma [stages]    consumer  -> producer   via commit   arrivals 2    phase 1  multicast 0b11
barrier mma2ld  [consumer]  consumer  -> writeback  via commit   arrivals 1    phase 0  multicast 0b11
barrier ld2mma  [consumer]  writeback -> consumer   via threads  arrivals 256  phase 1  at cta 0

program consumer {
  for tile {
    wait ld2mma[self]
    for k {
      wait tma2mma[stage]
      mma
      commit mma2tma[stage]
    }
    commit mma2ld[self]
  }
}
"""

EVERYTHING = """\
kernel every_construct
target sm_90a

gemm         D[M, N] bf16 = A[M, K] bf16 @ B[N, K]^T bf16
sizes        M = -4, N = 64..16_384, K dynamic
cluster      2
block        128 x 0x80 x 64 x 1
stages       -1
accumulators 2
schedule     static

role load = tma            on warpgroup 2 warp 3 multicast A B
role math = mma, epilogue  on warpgroups 0..1 release after read colour 3 # who knows

barrier full  [stages]                  load       -> math        via tma
barrier empty [math x accumulators x 2] math, load -> load, math  multicast A, B
barrier bare                            load       -> math        arrivals 1  at own  multicast pair

program load {
  for tile {
    for k - 1 {
      wait empty[stage - 1, self]
      load A full[stage]
      load full
      expect full[stage] 49152
      if k == first {
        mma [stage] into 0
      }
      if chunk != last {
        read from 0
      }
    }
    for k + 1 {
      arrive empty[3]
    }
    for 4 {
      retire 1
      sync cta
      store
    }
  }
}
"""
