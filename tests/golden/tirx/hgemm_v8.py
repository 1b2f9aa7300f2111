"""hgemm_v8: D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16, accumulated in f32, for sm_100a.

A pair of CTAs computes 256 x 256 of D at a time. Made by gemmspec; stands alone.
"""

from tvm.backend.cuda.lang.pipeline import MBarrier, PipelineState, TCGen05Bar, TMABar
from tvm.backend.cuda.lang.tile_scheduler import ClusterPersistentScheduler2D
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TCol, TileLayout, TLane, tid_in_wg


def hgemm_v8(M, N, K):
    CTAS = 148  # persistent: each takes tile after tile
    CLUSTER = 2  # CTAs of a cluster, along M
    CTA_GROUP = 2  # CTAs that run one MMA
    STAGES = 4
    BLK_M, BLK_N, BLK_K = 128, 128, 64  # rows of A of a consumer, rows of B, depth
    ACC_N = CTA_GROUP * BLK_N  # columns of an accumulator
    CHUNK_N = 128  # columns that are stored at a time
    CHUNKS = ACC_N // CHUNK_N
    TILE_M = CLUSTER * BLK_M  # rows of D of a cluster
    M_TILES = -(-M // TILE_M)
    N_TILES = -(-N // ACC_N)
    K_TILES = -(-K // BLK_K)
    STAGE_BYTES = CTA_GROUP * (BLK_M + BLK_N) * BLK_K * 2  # of both CTAs
    TMEM_COLS = 512  # all there are

    tma = {"dispatch": "tma_auto", "prefetch_tensormap": True}
    load = {**tma, "cta_group": CTA_GROUP, "tensormap_l2_promotion": "L2::128B"}
    row_per_thread = TileLayout(S[(128, CHUNK_N) : (1 @ tid_in_wg, 1)])

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        D: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        bx = T.cta_id([CTAS])
        cbx = T.cta_id_in_cluster([CLUSTER])
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

        # Barriers and tensor memory, made known to the whole cluster before anyone uses them.
        tma2mma.init(1)
        mma2tma.init(1)
        mma2ld.init(1)
        ld2mma.init(CTA_GROUP * 128)
        if (wg_id == 0) & (warp_id == 0):
            T.ptx["tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"](
                T.address_of(tmem_addr[0]),
                T.uint32(TMEM_COLS),
            )
            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cluster_sync()
        T.ptx.tcgen05.fence__after_thread_sync()

        # All columns are this CTA's, so the allocation starts at column 0.
        tmem = T.decl_buffer(
            (128, TMEM_COLS),
            "float32",
            scope="tmem",
            allocated_addr=0,
            layout=TileLayout(S[(128, TMEM_COLS) : (1 @ TLane, 1 @ TCol)]),
        )
        tma2mma_cta0 = tma2mma.remote_view(0)
        ld2mma_cta0 = ld2mma.remote_view(0)

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

        # Role producer: tma, on warpgroup 1 warp 3.
        if (wg_id == 1) & (warp_id == 3):
            ring = PipelineState(STAGES, phase=1)
            m_st = T.meta_var(tiles.m_idx * TILE_M + cbx * BLK_M)
            n_st = T.meta_var(tiles.n_idx * ACC_N + cbx * BLK_N)
            if T.cuda.elect_sync():
                while tiles.valid():
                    for k in range(K_TILES):
                        k_st = T.meta_var(k * BLK_K)
                        mma2tma.wait(ring.stage, ring.phase)
                        Tx.copy_async(
                            Asmem[ring.stage, :, :],
                            A[m_st : m_st + BLK_M, k_st : k_st + BLK_K],
                            mbar=tma2mma_cta0.ptr_to([ring.stage]),
                            **load,
                        )
                        Tx.copy_async(
                            Bsmem[ring.stage, :, :],
                            B[n_st : n_st + BLK_N, k_st : k_st + BLK_K],
                            mbar=tma2mma_cta0.ptr_to([ring.stage]),
                            **load,
                        )
                        if cbx == 0:
                            tma2mma.arrive(ring.stage, STAGE_BYTES)
                        ring.advance()
                    tiles.next_tile()

        # Role consumer: mma, on warpgroup 1 warp 0.
        elif (wg_id == 1) & (warp_id == 0) & (cbx == 0):
            turn = PipelineState(1, phase=1)
            ring = PipelineState(STAGES, phase=0)
            if T.cuda.elect_sync():
                while tiles.valid():
                    ld2mma.wait(0, turn.phase)
                    T.ptx.tcgen05.fence__after_thread_sync()
                    for k in range(K_TILES):
                        tma2mma.wait(ring.stage, ring.phase)
                        Tx.gemm_async(
                            tmem[:, :ACC_N],
                            Asmem[ring.stage, :, :],
                            Bsmem[ring.stage, :, :],
                            accum=k != 0,
                            dispatch="tcgen05",
                            cta_group=CTA_GROUP,
                        )
                        mma2tma.arrive(ring.stage, cta_group=CTA_GROUP, cta_mask=0b11)
                        ring.advance()
                    mma2ld.arrive(0, cta_group=CTA_GROUP, cta_mask=0b11)
                    turn.advance()
                    tiles.next_tile()

        # Role writeback: epilogue, on warpgroup 0.
        elif wg_id == 0:
            turn = PipelineState(1, phase=0)
            acc_reg = T.alloc_local((CHUNK_N,), "float32")
            d_reg = T.alloc_local((CHUNK_N,), "float16")
            m_st = T.meta_var(tiles.m_idx * TILE_M + cbx * BLK_M)
            n_st = T.meta_var(tiles.n_idx * ACC_N)
            while tiles.valid():
                mma2ld.wait(0, turn.phase)
                T.ptx.tcgen05.fence__after_thread_sync()
                for c in T.unroll(CHUNKS):
                    acc_st = T.meta_var(c * CHUNK_N)
                    d_st = T.meta_var(n_st + c * CHUNK_N)
                    Tx.wg.copy_async(
                        acc_reg.view(128, CHUNK_N, layout=row_per_thread)[:, :],
                        tmem[:, acc_st : acc_st + CHUNK_N],
                    )
                    T.ptx.tcgen05.wait__ld.sync.aligned()
                    Tx.cast(d_reg[:], acc_reg[:])
                    Tx.copy(Dsmem[warp_id * 32 + lane_id, :], d_reg[:])
                    T.ptx.fence.proxy.async_.shared__cta()
                    T.cuda.warpgroup_sync(10)
                    if (warp_id == 0) & (lane_id == 0):
                        Tx.copy_async(
                            D[m_st : m_st + BLK_M, d_st : d_st + CHUNK_N],
                            Dsmem[:, :],
                            **tma,
                        )
                        T.ptx.cp.async_.bulk.commit_group()
                        T.ptx.cp.async_.bulk.wait_group.read(0)
                    T.cuda.warpgroup_sync(10)
                T.ptx.tcgen05.fence__before_thread_sync()
                ld2mma_cta0.arrive(0)
                turn.advance()
                tiles.next_tile()

        # No CTA leaves while its peers may still reach into it.
        T.cuda.cluster_sync()
        if (wg_id == 0) & (warp_id == 0):
            T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](
                tmem_addr[0],
                T.uint32(TMEM_COLS),
            )

    return kernel
