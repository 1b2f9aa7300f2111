"""Memory, launch, registers, and wgmma."""

from __future__ import annotations

from collections.abc import Mapping

from audit_specs import HOPPER, NARROW, TWO_HIGH, UNEVEN

from tampers.tamper import Tamper

FIRST_WARP = "if (wg_id == 0) & (warp_id == 0):"
FREE = """\
        if (wg_id == 0) & (warp_id == 0):
            T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](
                tmem_addr[0],
                T.uint32(TMEM_COLS),
            )
"""
END_SYNC = "        T.cuda.cluster_sync()\n"

RESOURCES: Mapping[str, Tamper] = {
    "fewer columns are allocated": Tamper(
        "T.address_of(tmem_addr[0]),\n                T.uint32(TMEM_COLS)",
        "T.address_of(tmem_addr[0]),\n                T.uint32(256)",
        "prologue",
        ("alloc of 512 columns", "alloc of 256 columns"),
    ),
    "no permit is given back": Tamper(
        '            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()\n',
        "",
        "prologue",
        ("tcgen05.relinquish_alloc_permit (cta_group 2)",),
    ),
    "every warpgroup allocates": Tamper(
        FIRST_WARP,
        "if warp_id == 0:",
        "prologue",
        ("warp 0 of warpgroup 0: tcgen05.alloc", "warp 0 of warpgroup 2: tcgen05.alloc"),
    ),
    "every warpgroup frees": Tamper(
        FIRST_WARP,
        "if warp_id == 0:",
        "end of CTA 0",
        ("by one whole warp", "warp 0 of warpgroup 1: tcgen05.dealloc of 512 columns"),
        last=True,
    ),
    "memory is freed before the sync": Tamper(
        END_SYNC + FREE, FREE + END_SYNC, "writeback 0", ("nothing more", "tcgen05.dealloc of 512 columns")
    ),
    "memory is freed twice": Tamper(
        FREE, FREE + FREE, "end", ("tcgen05.dealloc of 512 columns (cta_group 2) by a whole warp, tcgen05.dealloc",)
    ),
    "fewer CTAs": Tamper("T.cta_id([CTAS])", "T.cta_id([146])", "launch", ("CTAs: 148", "146")),
    "another buffer": Tamper(
        "        pool.commit()",
        "        more = pool.alloc((16,), 'uint32')\n        pool.commit()",
        "memory",
        ("no other buffer", "more at byte"),
    ),
    "a stage too many": Tamper(
        "STAGES = 4", "STAGES = 5", "memory", ("mma2tma at byte 40: 32 bytes of uint64", "nothing there")
    ),
    "another swizzle": Tamper(
        "SWIZZLE_64B_ATOM",
        "SWIZZLE_32B_ATOM",
        "memory",
        ("bytes of the swizzle of D: 64", "32"),
        spec=NARROW,
    ),
    "registers laid out otherwise": Tamper(
        "(1 @ tid_in_wg, 1)",
        "(1 @ tid_in_wg, 2)",
        "writeback",
        ("read accumulator columns 0..63", "laid out as T.TileLayout(T.S[(128, 64):(1 @ Axis.tid_in_wg, 2)])"),
    ),
    "the address is another word": Tamper(
        "tmem_addr[0],\n                T.uint32(TMEM_COLS),\n            )\n\n    return",
        "tmem_addr[1],\n                T.uint32(TMEM_COLS),\n            )\n\n    return",
        "end",
        ("nothing else", "what tcgen05.dealloc frees"),
    ),
    "a warp too many": Tamper(
        "T.warp_id_in_wg([4])",
        "T.warp_id_in_wg([5])",
        "launch",
        ("warps of a warpgroup: 4", "5"),
    ),
    "an unknown attribute": Tamper(
        "        T.device_entry()\n",
        '        T.device_entry()\n        T.attr({"tirx.persistent_kernel": True})\n',
        "prologue",
        ("nothing else", "attribute tirx.persistent_kernel"),
    ),
    "another type": Tamper(
        'D: T.Buffer((M, N), "float16")',
        'D: T.Buffer((M, N), "bfloat16")',
        "launch",
        ("D: float16 4096 x 4096", "bfloat16 4096 x 4096"),
    ),
    "something unknown": Tamper(
        "tiles.next_tile()",
        "T.cuda.nano_sleep(100)\n                    tiles.next_tile()",
        "producer",
        ("tile 1", "`loop of 64 trips`", "nano_sleep"),
    ),
    "registers of another number": Tamper(
        ".u32(40)", ".u32(48)", "producer", ("setmaxnreg.dec 40, by a whole warp", "setmaxnreg.dec 48"), spec=HOPPER
    ),
    "wgmma reads the next slice": Tamper(
        "A_STAGE + kk * 2", "A_STAGE + kk * 4", "math", ("A row 0, column 16", "A row 0, column 32"), spec=HOPPER
    ),
    "wgmma reads the other warpgroup's rows": Tamper(
        "Asmem.ptr_to([0, (wg_id - 1) * BLK_M, 0])",
        "Asmem.ptr_to([0, 0, 0])",
        "math 1",
        ("A row 64, column 0", "A row 0, column 0"),
        spec=HOPPER,
    ),
    "wgmma starts by adding": Tamper(
        "(k != 0) | (kk != 0)",
        "(k != 0) | (kk >= 0)",
        "math",
        ("overwrites registers 0 onward", "adds to registers 0 onward"),
        spec=HOPPER,
    ),
    "wgmma without its fence": Tamper(
        "                    T.ptx.wgmma.fence.sync.aligned()\n", "", "math", ("`wgmma.fence`",), spec=HOPPER
    ),
    "wgmma without its commit": Tamper(
        "                    T.ptx.wgmma.commit_group.sync.aligned()\n",
        "",
        "math",
        ("`wgmma.commit_group`", "`wgmma.wait_group 1`"),
        spec=HOPPER,
    ),
    "wgmma is not waited for": Tamper(
        "                T.ptx.wgmma.wait_group.sync.aligned(0)\n",
        "",
        "math",
        ("`wgmma.wait_group 0`", "`arrive empty[3]: 1 in CTA 0`"),
        spec=HOPPER,
    ),
    "the stage is released too early": Tamper(
        "(ring.stage + STAGES - 1) % STAGES",
        "ring.stage",
        "math",
        ("arrive empty[0]: 1 in CTA 0", "arrive empty[1]: 1 in CTA 0"),
        spec=HOPPER,
    ),
    "the chunk is the last one's": Tamper(
        "c * (CHUNK_N // 2) + i",
        "i",
        "math",
        ("write accumulator columns 64..127", "write accumulator columns 0..63"),
        spec=HOPPER,
    ),
    "the lower rows are multiplied as the upper ones": Tamper(
        " + h * A_HALF", "", "math", ("A row 64, column 0", "A row 0, column 0"), spec=TWO_HIGH
    ),
    "both halves are accumulated in one": Tamper(
        "h * ACC_REGS + i",
        "i",
        "math",
        ("overwrites registers 64 onward", "overwrites registers 0 onward"),
        spec=TWO_HIGH,
    ),
    "the registers of a half are out of order": Tamper(
        "h * ACC_REGS + i", "h * ACC_REGS + i // 2", "math", ("wgmma into registers out of order",), spec=TWO_HIGH
    ),
    "the upper rows are stored twice": Tamper(
        "h * ACC_REGS + c",
        "c",
        "math",
        ("write accumulator columns 128..159", "write accumulator columns 0..31"),
        spec=TWO_HIGH,
    ),
    "the last chunk of an uneven tile is not moved back": Tamper(
        "T.min(c * CHUNK_N, BLK_N - CHUNK_N)",
        "c * CHUNK_N",
        "math",
        ("write accumulator columns 112..151", "write accumulator columns 120..159"),
        spec=UNEVEN,
    ),
    "the lower rows are written over the upper ones": Tamper(
        "h_st : h_st + MMA_M", ": MMA_M", "math", ("to row 64 onward", "to row 0 onward"), spec=TWO_HIGH
    ),
}
