"""hgemm_v7: D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16, accumulated in f32, for sm_100a.

A CTA computes 128 x 128 of D at a time. Made by gemmspec; stands alone.
"""

from tvm.backend.cuda.lang.pipeline import MBarrier, PipelineState, TCGen05Bar, TMABar
from tvm.backend.cuda.lang.tile_scheduler import ClusterPersistentScheduler2D
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TCol, TileLayout, TLane, tid_in_wg


def hgemm_v7(M, N, K):
    CTAS = 148  # persistent: each takes tile after tile
    STAGES = 2
    BLK_M, BLK_N, BLK_K = 128, 128, 64  # rows of A of a consumer, rows of B, depth
    CHUNK_N = 128  # columns that are stored at a time
    M_TILES = -(-M // BLK_M)
    N_TILES = -(-N // BLK_N)
    K_TILES = -(-K // BLK_K)
    STAGE_BYTES = (BLK_M + BLK_N) * BLK_K * 2
    TMEM_COLS = 512  # all there are

    tma = {"dispatch": "tma_auto", "prefetch_tensormap": True}
    load = {**tma, "tensormap_l2_promotion": "L2::128B"}
    row_per_thread = TileLayout(S[(128, CHUNK_N) : (1 @ tid_in_wg, 1)])

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        D: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        bx = T.cta_id([CTAS])
        wg_id = T.warpgroup_id([2])
        warp_id = T.warp_id_in_wg([4])
        lane_id = T.lane_id([32])

        # Shared memory.
        pool = T.SMEMPool()
        tmem_addr = pool.alloc((1,), "uint32")
        tma2mma = TMABar(pool, STAGES)
        mma2tma = TCGen05Bar(pool, STAGES)
        mma2ld = TCGen05Bar(pool, 1)
        ld2mma = MBarrier(pool, 1)
        Asmem = pool.alloc_tcgen05_mma_AB((STAGES, BLK_M, BLK_K), "float16")
        Bsmem = pool.alloc_tcgen05_mma_AB((STAGES, BLK_N, BLK_K), "float16")
        Dsmem = pool.alloc_tcgen05_mma_AB((BLK_M, CHUNK_N), "float16")
        pool.commit()

        # Barriers and tensor memory, made known to the whole CTA before anyone uses them.
        tma2mma.init(1)
        mma2tma.init(1)
        mma2ld.init(1)
        ld2mma.init(128)
        if (wg_id == 0) & (warp_id == 0):
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](
                T.address_of(tmem_addr[0]),
                T.uint32(TMEM_COLS),
            )
            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"]()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence__after_thread_sync()

        # All columns are this CTA's, so the allocation starts at column 0.
        tmem = T.decl_buffer(
            (128, TMEM_COLS),
            "float32",
            scope="tmem",
            allocated_addr=0,
            layout=TileLayout(S[(128, TMEM_COLS) : (1 @ TLane, 1 @ TCol)]),
        )

        tiles = ClusterPersistentScheduler2D(
            "tiles",
            num_m_tiles=M_TILES,
            num_n_tiles=N_TILES,
            num_clusters=CTAS,
            l2_group_size=8,
        )
        tiles.init(bx)

        # Let the next kernel set itself up, and wait for those before: from here on, global memory is touched.
        T.ptx.griddepcontrol.launch_dependents()
        T.ptx.griddepcontrol.wait()

        # Role producer: tma, on warpgroup 1 warp 3.
        if (wg_id == 1) & (warp_id == 3):
            ring = PipelineState(STAGES, phase=1)
            m_st = T.meta_var(tiles.m_idx * BLK_M)
            n_st = T.meta_var(tiles.n_idx * BLK_N)
            if T.cuda.elect_sync():
                while tiles.valid():
                    for k in range(K_TILES):
                        k_st = T.meta_var(k * BLK_K)
                        mma2tma.wait(ring.stage, ring.phase)
                        Tx.copy_async(
                            Asmem[ring.stage, :, :],
                            A[m_st : m_st + BLK_M, k_st : k_st + BLK_K],
                            mbar=tma2mma.ptr_to([ring.stage]),
                            **load,
                        )
                        Tx.copy_async(
                            Bsmem[ring.stage, :, :],
                            B[n_st : n_st + BLK_N, k_st : k_st + BLK_K],
                            mbar=tma2mma.ptr_to([ring.stage]),
                            **load,
                        )
                        tma2mma.arrive(ring.stage, STAGE_BYTES)
                        ring.advance()
                    tiles.next_tile()

        # Role consumer: mma, on warpgroup 1 warp 0.
        elif (wg_id == 1) & (warp_id == 0):
            turn = PipelineState(1, phase=1)
            ring = PipelineState(STAGES, phase=0)
            if T.cuda.elect_sync():
                while tiles.valid():
                    ld2mma.wait(0, turn.phase)
                    T.ptx.tcgen05.fence__after_thread_sync()
                    for k in range(K_TILES):
                        tma2mma.wait(ring.stage, ring.phase)
                        Tx.gemm_async(
                            tmem[:, :BLK_N],
                            Asmem[ring.stage, :, :],
                            Bsmem[ring.stage, :, :],
                            accum=k != 0,
                            dispatch="tcgen05",
                            cta_group=1,
                        )
                        mma2tma.arrive(ring.stage)
                        ring.advance()
                    mma2ld.arrive(0)
                    turn.advance()
                    tiles.next_tile()

        # Role writeback: epilogue, on warpgroup 0.
        elif wg_id == 0:
            turn = PipelineState(1, phase=0)
            acc_reg = T.alloc_local((CHUNK_N,), "float32")
            d_reg = T.alloc_local((CHUNK_N,), "float16")
            m_st = T.meta_var(tiles.m_idx * BLK_M)
            n_st = T.meta_var(tiles.n_idx * BLK_N)
            while tiles.valid():
                mma2ld.wait(0, turn.phase)
                T.ptx.tcgen05.fence__after_thread_sync()
                Tx.wg.copy_async(
                    acc_reg.view(128, CHUNK_N, layout=row_per_thread)[:, :],
                    tmem[:, :CHUNK_N],
                )
                T.ptx.tcgen05.wait__ld.sync.aligned()
                T.ptx.tcgen05.fence__before_thread_sync()
                ld2mma.arrive(0)
                Tx.cast(d_reg[:], acc_reg[:])
                Tx.copy(Dsmem[warp_id * 32 + lane_id, :], d_reg[:])
                T.ptx.fence.proxy.async_.shared__cta()
                T.cuda.warpgroup_sync(10)
                if (warp_id == 0) & (lane_id == 0):
                    Tx.copy_async(
                        D[m_st : m_st + BLK_M, n_st : n_st + CHUNK_N],
                        Dsmem[:, :],
                        **tma,
                    )
                    T.ptx.cp.async_.bulk.commit_group()
                    T.ptx.cp.async_.bulk.wait_group.read(0)
                T.cuda.warpgroup_sync(10)
                turn.advance()
                tiles.next_tile()

        # Tensor memory is freed after its last use.
        T.cuda.cta_sync()
        if (wg_id == 0) & (warp_id == 0):
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](
                tmem_addr[0],
                T.uint32(TMEM_COLS),
            )

    return kernel
