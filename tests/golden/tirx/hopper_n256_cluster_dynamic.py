"""hopper_n256_cluster_dynamic: D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16, accumulated in f32, for sm_90a.

A cluster of 2 x 1 CTAs computes 256 x 256 of D at a time. Made by gemmspec; stands alone.
"""

from tvm.backend.cuda.lang.pipeline import MBarrier, PipelineState, TMABar
from tvm.backend.cuda.lang.tile_scheduler import ClusterPersistentScheduler2D
from tvm.backend.cuda.tile_primitive.common import smem_desc_add_16B_offset
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, tid_in_wg


def hopper_n256_cluster_dynamic():
    CTAS = 132  # persistent: each takes tile after tile
    CLUSTER = 2  # CTAs of a cluster, along M
    CONSUMERS = 2  # accumulate different rows of D, and share B
    STAGES = 4
    BLK_M, BLK_N, BLK_K = 64, 256, 64  # rows of A of a consumer, rows of B, depth
    CHUNK_N = 64  # columns that are stored at a time
    CHUNKS = BLK_N // CHUNK_N
    BUFS = 2  # store buffers of a warpgroup
    TILE_M = CONSUMERS * CLUSTER * BLK_M  # rows of D of a cluster
    STAGE_BYTES = (CONSUMERS * BLK_M + BLK_N) * BLK_K * 2
    B_PART = BLK_N // 2  # rows that one CTA loads for all
    WGMMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
    ACC_REGS = BLK_M * BLK_N // 128  # of a thread
    A_STAGE = CONSUMERS * BLK_M * BLK_K * 2 // 16  # in 16 bytes
    B_STAGE = BLK_N * BLK_K * 2 // 16

    tma = {"dispatch": "tma_explicit", "prefetch_tensormap": True}
    load = {**tma, "tensormap_l2_promotion": "L2::128B"}
    # Rows and columns of a thread's registers, as wgmma leaves them.
    fragment = TileLayout(
        S[
            (4, 2, 8, CHUNK_N // 8, 4, 2) : (
                32 @ tid_in_wg,
                2,
                4 @ tid_in_wg,
                4,
                1 @ tid_in_wg,
                1,
            )
        ]
    )

    @T.prim_func
    def kernel(a: T.handle, b: T.handle, d: T.handle):
        M = T.int32()
        N = T.int32()
        K = T.int32()
        A = T.match_buffer(a, (M, K), "float16")
        B = T.match_buffer(b, (N, K), "float16")
        D = T.match_buffer(d, (M, N), "float16")
        M_TILES = T.meta_var(T.truncdiv(M + TILE_M - 1, TILE_M))
        N_TILES = T.meta_var(T.truncdiv(N + BLK_N - 1, BLK_N))
        K_TILES = T.meta_var(T.truncdiv(K + BLK_K - 1, BLK_K))
        T.device_entry()
        T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
        bx = T.cta_id([CTAS])
        cbx = T.cta_id_in_cluster([CLUSTER])
        wg_id = T.warpgroup_id([3])
        warp_id = T.warp_id_in_wg([4])
        lane_id = T.lane_id([32])

        # Shared memory.
        pool = T.SMEMPool()
        tma2mma = TMABar(pool, STAGES)
        mma2tma = MBarrier(pool, STAGES)
        Asmem = pool.alloc_tcgen05_mma_AB((STAGES, CONSUMERS * BLK_M, BLK_K), "float16")
        Bsmem = pool.alloc_tcgen05_mma_AB((STAGES, BLK_N, BLK_K), "float16")
        Dsmem = pool.alloc_tcgen05_mma_AB((CONSUMERS, BUFS, BLK_M, CHUNK_N), "float16")
        pool.commit()

        # Barriers, made known to the whole cluster before anyone uses them.
        tma2mma.init(1)
        mma2tma.init(CONSUMERS * CLUSTER)
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()

        tiles = ClusterPersistentScheduler2D(
            "tiles",
            num_m_tiles=M_TILES,
            num_n_tiles=N_TILES,
            num_clusters=CTAS // CLUSTER,
            l2_group_size=8,
        )
        tiles.init(bx // CLUSTER)

        # Let the next kernel set itself up, and wait for those before: from here on, global memory is touched.
        T.ptx.griddepcontrol.launch_dependents()
        T.ptx.griddepcontrol.wait()

        # Role math: mma, epilogue, on warpgroups 1..2.
        if wg_id >= 1:
            T.ptx.setmaxnreg.inc.sync.aligned.u32(232)
            ring = PipelineState(STAGES, phase=0)
            acc_reg = T.alloc_local((ACC_REGS,), "float32")
            a_desc = T.alloc_local((1,), "uint64")
            b_desc = T.alloc_local((1,), "uint64")
            d_reg = T.alloc_local((CHUNK_N // 2,), "float16")
            m_st = T.meta_var(
                tiles.m_idx * TILE_M + (cbx * CONSUMERS + wg_id - 1) * BLK_M,
            )
            n_st = T.meta_var(tiles.n_idx * BLK_N)
            T.cuda.wgmma.encode_matrix_descriptor(
                T.address_of(a_desc[0]),
                Asmem.ptr_to([0, (wg_id - 1) * BLK_M, 0]),
                1,
                64,
                3,
            )
            T.cuda.wgmma.encode_matrix_descriptor(
                T.address_of(b_desc[0]),
                Bsmem.ptr_to([0, 0, 0]),
                1,
                64,
                3,
            )
            while tiles.valid():
                for k in range(K_TILES):
                    tma2mma.wait(ring.stage, ring.phase)
                    T.ptx.wgmma.fence.sync.aligned()
                    for kk in T.unroll(BLK_K // 16):
                        a_step = T.meta_var(ring.stage * A_STAGE + kk * 2)
                        b_step = T.meta_var(ring.stage * B_STAGE + kk * 2)
                        T.ptx[WGMMA](
                            *[acc_reg[i] for i in range(ACC_REGS)],
                            smem_desc_add_16B_offset(a_desc[0], a_step),
                            smem_desc_add_16B_offset(b_desc[0], b_step),
                            (k != 0) | (kk != 0),
                            1,
                            1,
                            0,
                            0,
                        )
                    T.ptx.wgmma.commit_group.sync.aligned()
                    T.ptx.wgmma.wait_group.sync.aligned(1)
                    if (k != 0) & (warp_id == 0) & (lane_id < CLUSTER):
                        mma2tma.arrive(
                            (ring.stage + STAGES - 1) % STAGES,
                            remote=lane_id,
                        )
                    ring.advance()
                T.ptx.wgmma.wait_group.sync.aligned(0)
                if (warp_id == 0) & (lane_id < CLUSTER):
                    mma2tma.arrive((ring.stage + STAGES - 1) % STAGES, remote=lane_id)
                for c in T.unroll(CHUNKS):
                    d_st = T.meta_var(n_st + c * CHUNK_N)
                    if (warp_id == 0) & (lane_id == 0):
                        T.ptx.cp.async_.bulk.wait_group.read(1)
                    T.cuda.warpgroup_sync(wg_id + 9)
                    for i in T.unroll(CHUNK_N // 2):
                        d_reg[i] = T.cast(acc_reg[c * (CHUNK_N // 2) + i], "float16")
                    Tx.wg.copy(
                        Dsmem[wg_id - 1, c % BUFS, :, :],
                        d_reg.view(BLK_M, CHUNK_N, layout=fragment)[:, :],
                    )
                    T.ptx.fence.proxy.async_.shared__cta()
                    T.cuda.warpgroup_sync(wg_id + 9)
                    if (warp_id == 0) & (lane_id == 0):
                        Tx.copy_async(
                            D[m_st : m_st + BLK_M, d_st : d_st + CHUNK_N],
                            Dsmem[wg_id - 1, c % BUFS, :, :],
                            **tma,
                        )
                        T.ptx.cp.async_.bulk.commit_group()
                tiles.next_tile()
            if (warp_id == 0) & (lane_id == 0):
                T.ptx.cp.async_.bulk.wait_group.read(0)

        # Role producer: tma, on warpgroup 0.
        elif wg_id == 0:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(40)
            if warp_id == 0:
                ring = PipelineState(STAGES, phase=1)
                m_st = T.meta_var(tiles.m_idx * TILE_M + cbx * CONSUMERS * BLK_M)
                n_st = T.meta_var(tiles.n_idx * BLK_N)
                b_part = T.meta_var(cbx * B_PART)
                b_st = T.meta_var(n_st + b_part)
                if T.cuda.elect_sync():
                    while tiles.valid():
                        for k in range(K_TILES):
                            k_st = T.meta_var(k * BLK_K)
                            mma2tma.wait(ring.stage, ring.phase)
                            Tx.copy_async(
                                Asmem[ring.stage, :, :],
                                A[m_st : m_st + CONSUMERS * BLK_M, k_st : k_st + BLK_K],
                                mbar=tma2mma.ptr_to([ring.stage]),
                                **load,
                            )
                            Tx.copy_async(
                                Bsmem[ring.stage, b_part : b_part + B_PART, :],
                                B[b_st : b_st + B_PART, k_st : k_st + BLK_K],
                                mbar=tma2mma.ptr_to([ring.stage]),
                                cta_mask=0b11,
                                **load,
                            )
                            tma2mma.arrive(ring.stage, STAGE_BYTES)
                            ring.advance()
                        tiles.next_tile()

        # No CTA leaves while its peers may still reach into it.
        T.cuda.cluster_sync()

    return kernel
