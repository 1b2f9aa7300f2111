"""Order and threads: fences, syncs, groups of stores, and who does it."""

from __future__ import annotations

from collections.abc import Mapping

from tampers.tamper import Tamper

AFTER = "T.ptx.tcgen05.fence__after_thread_sync()"
PROXY = "T.ptx.fence.proxy.async_.shared__cta()"
NAMED = "                    T.cuda.warpgroup_sync(wg_id + 10)\n"
ELECT = "if T.cuda.elect_sync():"
ONE_THREAD = "if (warp_id == 0) & (lane_id == 0):"
STORED = "                        T.ptx.cp.async_.bulk.wait_group.read(0)\n"
END_SYNC = "        T.cuda.cluster_sync()\n"
WAIT_LD = "                    T.ptx.tcgen05.wait__ld.sync.aligned()\n"
CAST = "                    Tx.cast(d_reg[:], acc_reg[:])\n"
RELEASE = "                T.ptx.tcgen05.fence__before_thread_sync()\n                ld2mma_cta0.arrive(wg_id)\n"

ORDER: Mapping[str, Tamper] = {
    "a fence behind a wait is dropped": Tamper(
        f"turn.phase)\n                    {AFTER}",
        "turn.phase)",
        "consumer",
        ("tcgen05.fence::after_thread_sync", "loop of 64 trips"),
    ),
    "a fence ahead of a release is dropped": Tamper(
        RELEASE, RELEASE.split("\n")[1] + "\n", "writeback", ("tcgen05.fence::before_thread_sync", "arrive ld2mma[0]")
    ),
    "the proxy fence is dropped": Tamper(
        f"                    {PROXY}\n", "", "writeback", ("`fence.proxy.async`", "`named barrier 10, 128 threads`")
    ),
    "the proxy fence is ahead of the write": Tamper(
        CAST,
        f"                    {PROXY}\n{CAST}",
        "writeback",
        ("`write accumulator columns 0..63", "`fence.proxy.async`"),
    ),
    "the fence of the initialisation is dropped": Tamper(
        "        T.ptx.fence.mbarrier_init.release.cluster()\n",
        "",
        "prologue",
        ("fence.mbarrier_init", "no such fence"),
    ),
    "the fence of the initialisation comes first": Tamper(
        "        tma2mma.init(1)\n",
        "        T.ptx.fence.mbarrier_init.release.cluster()\n        T.cuda.cluster_sync()\n        tma2mma.init(1)\n",
        "prologue and end",
        ("`cluster sync, cluster sync`", "`cluster sync, cluster sync, cluster sync`"),
    ),
    "the fence before the first sync is dropped": Tamper(
        "        T.ptx.tcgen05.fence__before_thread_sync()\n",
        "",
        "prologue",
        ("tcgen05.fence::before_thread_sync, cluster sync, tcgen05.fence::after",),
    ),
    "nobody waits for the kernels before": Tamper(
        "        T.ptx.griddepcontrol.wait()\n", "", "prologue", ("griddepcontrol.wait, by a whole warp",)
    ),
    "one warp waits for the kernels before": Tamper(
        "        T.ptx.griddepcontrol.wait()\n",
        "        if warp_id == 0:\n            T.ptx.griddepcontrol.wait()\n",
        "prologue",
        ("griddepcontrol.wait, by a whole warp",),
    ),
    "a CTA sync for a cluster sync": Tamper(
        "T.cuda.cluster_sync()", "T.cuda.cta_sync()", "prologue", ("cluster sync", "cta sync")
    ),
    "a CTA sync at the end": Tamper(
        "T.cuda.cluster_sync()",
        "T.cuda.cta_sync()",
        "end of CTA 0",
        ("cluster sync, by a whole warp", "cta sync by a whole warp"),
        last=True,
    ),
    "no sync at the end": Tamper(
        END_SYNC, "", "prologue and end", ("`cluster sync, cluster sync`", "`cluster sync`"), last=True
    ),
    "a sync of the CTA within a role": Tamper(
        PROXY, "T.cuda.cta_sync()\n                    " + PROXY, "writeback", ("`fence.proxy.async`", "`cta sync`")
    ),
    "a wrong named barrier": Tamper(
        "warpgroup_sync(wg_id + 10)",
        "warpgroup_sync(wg_id + 11)",
        "writeback",
        ("named barrier 10, 128 threads", "named barrier 11, 128 threads"),
    ),
    "a named barrier is dropped": Tamper(
        NAMED, "", "writeback", ("named barrier 10", "read accumulator columns 64..127"), last=True
    ),
    "wait::ld is dropped": Tamper(
        WAIT_LD, "", "writeback", ("`tcgen05.wait::ld`", "registers that nothing has been read into")
    ),
    "wait::ld comes behind the use": Tamper(
        WAIT_LD + CAST,
        CAST + WAIT_LD,
        "writeback",
        ("write accumulator columns 0..63", "registers that nothing has been read into"),
    ),
    "wait_group is dropped": Tamper(STORED, "", "writeback", ("cp.async.bulk.wait_group 0", "named barrier 10")),
    "wait_group lets one go": Tamper(
        "wait_group.read(0)", "wait_group.read(1)", "writeback", ("wait_group 0", "wait_group 1")
    ),
    "commit_group is dropped": Tamper(
        "                        T.ptx.cp.async_.bulk.commit_group()\n",
        "",
        "writeback",
        ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group 0"),
    ),
    "wait_group by another thread": Tamper(
        STORED,
        "                    if (warp_id == 1) & (lane_id == 0):\n" + STORED,
        "writeback",
        ("wait_group 0, by one thread", "not the one of before"),
    ),
    "the election is gone": Tamper(
        ELECT, "if lane_id >= 0:", "producer", ("loop of 64 trips, by one thread", "by a whole warp")
    ),
    "half of the warp elects": Tamper(
        ELECT,
        "if lane_id < 16:\n              if T.cuda.elect_sync():",
        "producer",
        ("elect_sync that only part of the warp reaches",),
    ),
    "another warp": Tamper(
        "(wg_id == 2) & (warp_id == 3)",
        "(wg_id == 2) & (warp_id == 2)",
        "producer",
        ("loop of 64 trips", "nothing more"),
    ),
    "two warps": Tamper(
        "(wg_id == 2) & (warp_id == 3)",
        "(wg_id == 2) & (warp_id >= 2)",
        "warp 2 of warpgroup 2",
        ("no role runs there", "loop of 64 trips"),
    ),
    "the MMA runs in both CTAs": Tamper(
        " & (cbx == 0):", " & (cbx >= 0):", "warp 0 of warpgroup 2, CTA 1", ("no role runs there", "wait ld2mma[0]")
    ),
    "every warp stores": Tamper(
        ONE_THREAD, "if lane_id == 0:", "writeback", ("store rows 0..127", "by one thread", "in 4 warps")
    ),
    "a thread writes another's row": Tamper(
        "warp_id * 32 + lane_id", "warp_id * 32 + 31 - lane_id", "writeback", ("rows that are not the threads' own",)
    ),
}
