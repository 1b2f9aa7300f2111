"""What is loaded, multiplied and stored, in which loops."""

from __future__ import annotations

from collections.abc import Mapping

from audit_specs import DYNAMIC9

from tampers.tamper import Tamper

DATA: Mapping[str, Tamper] = {
    "the k offset is off": Tamper(
        "k_st = T.meta_var(k * BLK_K)",
        "k_st = T.meta_var(k * BLK_K + BLK_K)",
        "producer",
        ("A[0..127, 0..63]", "A[0..127, 64..127]"),
    ),
    "the n offset forgets the CTA": Tamper(
        "tiles.n_idx * ACC_N + cbx * BLK_N",
        "tiles.n_idx * ACC_N",
        "producer, CTA 1",
        ("B[128..255, 0..63]", "B[0..127, 0..63]"),
    ),
    "the rows of A are swapped": Tamper(
        "m_st + i * CLUSTER * BLK_M",
        "m_st + (1 - i) * CLUSTER * BLK_M",
        "producer",
        ("A[0..127, 0..63]", "A[256..383, 0..63]"),
    ),
    "A is loaded into the wrong tile": Tamper(
        "Asmem[ring.stage, i, :, :]", "Asmem[ring.stage, 0, :, :]", "producer", ("rows 128..255", "rows 0..127")
    ),
    "a load is left out": Tamper(
        "for i in T.unroll(CONSUMERS):", "for i in T.unroll(1):", "producer", ("load A[256..383", "load B[0..127")
    ),
    "a load is of one CTA": Tamper(
        '"cta_group": CTA_GROUP,', '"cta_group": 1,', "producer", ("(cta_group 2)", "(cta_group 1)")
    ),
    "the MMA always adds": Tamper(
        "accum=k != 0",
        "accum=True",
        "consumer",
        ("overwrites accumulator columns 0..255", "adds to accumulator columns 0..255"),
    ),
    "the MMA reads the other consumer's A": Tamper(
        "Asmem[ring.stage, warp_id, :, :]",
        "Asmem[ring.stage, 1 - warp_id, :, :]",
        "consumer",
        ("A rows 0..127", "A rows 128..255"),
    ),
    "the MMA writes one accumulator": Tamper(
        "acc_st = T.meta_var(warp_id * ACC_N)",
        "acc_st = T.meta_var(0)",
        "consumer 1",
        ("accumulator columns 256..511", "accumulator columns 0..255"),
    ),
    "the epilogue reads the wrong columns": Tamper(
        "wg_id * ACC_N + c * CHUNK_N",
        "wg_id * ACC_N",
        "writeback",
        ("read accumulator columns 64..127", "read accumulator columns 0..63"),
    ),
    "a store from the wrong buffer": Tamper(
        "Dsmem[wg_id, :, :]",
        "Dsmem[0, :, :]",
        "writeback 1",
        ("rows 128..255, columns 0..63 of the store buffers", "rows 0..127, columns 0..63"),
    ),
    "a store to the wrong columns": Tamper(
        "d_st = T.meta_var(n_st + c * CHUNK_N)",
        "d_st = T.meta_var(n_st)",
        "writeback",
        ("D[0..127, 64..127]", "D[0..127, 0..63]"),
    ),
    "a store to the other CTA's rows": Tamper(
        "(wg_id * CLUSTER + cbx) * BLK_M",
        "(wg_id * CLUSTER) * BLK_M",
        "writeback 0, CTA 1",
        ("D[128..255, 0..63]", "D[0..127, 0..63]"),
    ),
    "a k tile too few": Tamper(
        "K_TILES = -(-K // BLK_K)", "K_TILES = -(-K // BLK_K) - 1", "producer", ("loop of 64 trips", "loop of 63 trips")
    ),
    "a chunk too few": Tamper(
        "in T.unroll(CHUNKS)",
        "in T.unroll(CHUNKS - 1)",
        "writeback",
        ("chunk 3", "read accumulator columns 192..255", "tcgen05.fence::before"),
    ),
    "no next tile": Tamper(
        "                    tiles.next_tile()\n",
        "                    pass\n",
        "producer",
        ("tile 1", "load A[1024..1151, 0..63]", "load A[0..127, 0..63]"),
    ),
    "no next tile of the MMA": Tamper(
        "                    turn.advance()\n                    tiles.next_tile()\n",
        "                    turn.advance()\n",
        "consumer",
        ("nothing more", "wait ld2mma[0] parity 1"),
    ),
    "groups of another size": Tamper("l2_group_size=8", "l2_group_size=4", "producer", ("tile 1", "load A[1024..1151")),
    "strides of another size": Tamper(
        "num_clusters=CTAS // CLUSTER", "num_clusters=CTAS", "producer", ("tile 1", "nothing more")
    ),
    "a tile row too few": Tamper("num_m_tiles=M_TILES", "num_m_tiles=M_TILES - 1", "producer", ("load A[",)),
    "clusters begin elsewhere": Tamper("tiles.init(bx // CLUSTER)", "tiles.init(bx)", "producer, CTA 1", ("load A[",)),
    "one k tile is left out": Tamper(
        "                        mma2tma.wait(ring.stage, ring.phase)",
        "                        if k != 40:\n                            mma2tma.wait(ring.stage, ring.phase)",
        "producer",
        ("a loop that is not alike in all of its trips",),
    ),
    "a ragged K is cut off": Tamper(
        "T.truncdiv(K + BLK_K - 1, BLK_K)",
        "T.truncdiv(K, BLK_K)",
        "producer",
        ("K = 520", "loop of 9 trips", "loop of 8 trips"),
        spec=DYNAMIC9,
    ),
    "half of a chunk is converted": Tamper(
        "Tx.cast(d_reg[:], acc_reg[:])",
        "Tx.cast(d_reg[:32], acc_reg[:32])",
        "writeback",
        ("write accumulator columns 0..63", "part of the registers d_reg"),
    ),
    "a chunk is converted from what was not read": Tamper(
        "Tx.cast(d_reg[:], acc_reg[:])",
        'other = T.alloc_local((CHUNK_N,), "float32")\n                    Tx.cast(d_reg[:], other[:])',
        "writeback",
        ("registers that nothing has been read into",),
    ),
}
