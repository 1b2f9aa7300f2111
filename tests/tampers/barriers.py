"""Barriers: what is waited for, counted, signalled, and where."""

from __future__ import annotations

from collections.abc import Mapping

from tampers.tamper import Tamper

WAIT_EMPTY = "                        mma2tma.wait(ring.stage, ring.phase)\n"
COMMIT = "                        mma2tma.arrive(ring.stage, cta_group=CTA_GROUP, cta_mask=0b11)\n"
ADVANCE = "                        ring.advance()\n"

BARRIERS: Mapping[str, Tamper] = {
    "a wait is dropped": Tamper(WAIT_EMPTY, "", "producer", ("wait mma2tma[0] parity 1", "load A[0..127")),
    "a wait of the MMA is dropped": Tamper(
        "tma2mma.wait(ring.stage, ring.phase)", "pass", "consumer", ("`wait tma2mma[0] parity 0`", "`mma: A rows")
    ),
    "a wait comes twice": Tamper(WAIT_EMPTY, WAIT_EMPTY * 2, "producer", ("`load A[", "`wait mma2tma[0] parity 1`")),
    "a count is halved": Tamper(
        "ld2mma.init(CTA_GROUP * 128)",
        "ld2mma.init(128)",
        "prologue",
        ("ld2mma[0] for 256 arrivals", "for 128 arrivals"),
    ),
    "a barrier is not initialised": Tamper(
        "        mma2ld.init(1)\n", "", "prologue", ("initialise mma2ld[0] for 1 arrivals", "not initialised")
    ),
    "a barrier is initialised twice": Tamper(
        "mma2ld.init(1)", "mma2ld.init(1)\n        mma2ld.init(1)", "prologue", ("mma2ld[1]", "2 times")
    ),
    "two barriers are swapped": Tamper(
        "mma2tma.wait(ring",
        "tma2mma.wait(ring",
        "producer",
        ("`wait mma2tma[0] parity 1`", "`wait tma2mma[0] parity 1`"),
    ),
    "two barriers change places": Tamper(
        "mma2ld = TCGen05Bar(pool, CONSUMERS)\n        ld2mma = MBarrier(pool, CONSUMERS)",
        "ld2mma = MBarrier(pool, CONSUMERS)\n        mma2ld = TCGen05Bar(pool, CONSUMERS)",
        "prologue",
        ("initialise mma2ld[0] for 1 arrivals", "for 256 arrivals"),
    ),
    "a barrier has another slot too many": Tamper(
        "mma2ld = TCGen05Bar(pool, CONSUMERS)",
        "mma2ld = TCGen05Bar(pool, 3)",
        "memory",
        ("mma2ld at byte 72: 16 bytes", "uint64 3, 24 bytes"),
    ),
    "a commit leaves the loop": Tamper(
        COMMIT + ADVANCE,
        ADVANCE + COMMIT[4:],
        "consumer",
        ("`commit mma2tma[0] in CTAs 0, 1 (cta_group 2)`", "`wait tma2mma[1] parity 0`"),
    ),
    "the mask is of one CTA": Tamper(
        "cta_mask=0b11", "cta_mask=0b01", "consumer", ("mma2tma[0] in CTAs 0, 1", "mma2tma[0] in CTA 0")
    ),
    "the commit is of one CTA's MMA": Tamper(
        "warp_id, cta_group=CTA_GROUP, cta_mask",
        "warp_id, cta_group=1, cta_mask",
        "consumer",
        ("mma2ld[0] in CTAs 0, 1 (cta_group 2)", "(cta_group 1)"),
    ),
    "too few bytes are expected": Tamper(
        "STAGE_BYTES = CTA_GROUP *",
        "STAGE_BYTES =",
        "producer",
        ("expect 98304 bytes on tma2mma[0] of CTA 0", "expect 49152 bytes"),
    ),
    "both CTAs expect": Tamper(
        "if cbx == 0:",
        "if cbx >= 0:",
        "producer, CTA 1",
        ("`wait mma2tma[1] parity 1`", "`expect 98304 bytes on tma2mma[0] of CTA 1`"),
    ),
    "a wrong slot": Tamper(
        "ld2mma.wait(warp_id,", "ld2mma.wait(0,", "consumer 1", ("wait ld2mma[1] parity 1", "wait ld2mma[0] parity 1")
    ),
    "a slot beyond the barrier": Tamper(
        "mma2ld.wait(wg_id,", "mma2ld.wait(wg_id + 1,", "writeback", ("wait mma2ld[0]", "wait mma2ld[1]")
    ),
    "the ring stands still": Tamper(ADVANCE, "", "producer", ("wait mma2tma[1] parity 1", "wait mma2tma[0] parity 1")),
    "the turn stands still": Tamper(
        "                turn.advance()\n",
        "",
        "writeback",
        ("wait mma2ld[0] parity 1", "wait mma2ld[0] parity 0"),
        last=True,
    ),
    "the ring advances twice": Tamper(
        ADVANCE, ADVANCE * 2, "producer", ("wait mma2tma[1] parity 1", "wait mma2tma[2] parity 1")
    ),
    "the ring is a stage too deep": Tamper(
        "ring = PipelineState(STAGES, phase=1)",
        "ring = PipelineState(5, phase=1)",
        "producer",
        ("k 4", "wait mma2tma[0] parity 0", "wait mma2tma[4] parity 1"),
    ),
    "a wrong first phase": Tamper(
        "PipelineState(STAGES, phase=1)",
        "PipelineState(STAGES, phase=0)",
        "producer",
        ("wait mma2tma[0] parity 1", "wait mma2tma[0] parity 0"),
    ),
    "a remote arrival stays at home": Tamper(
        "ld2mma_cta0.arrive(wg_id)",
        "ld2mma.arrive(wg_id)",
        "writeback 0, CTA 1",
        ("arrive ld2mma[0]: 128 in CTA 0", "in CTA 1"),
    ),
    "one thread arrives": Tamper(
        "ld2mma_cta0.arrive(wg_id)",
        "if lane_id == 0:\n                    ld2mma_cta0.arrive(wg_id)",
        "writeback",
        ("128 in CTA 0", "1 in CTA 0"),
    ),
    "one thread arrives for all": Tamper(
        "ld2mma_cta0.arrive(wg_id)",
        "if lane_id == 0:\n                    ld2mma_cta0.arrive(wg_id, count=32)",
        "writeback",
        ("arrive ld2mma[0]: 128 in CTA 0",),
    ),
    "a load signals its own CTA": Tamper(
        "mbar=tma2mma_cta0.ptr_to",
        "mbar=tma2mma.ptr_to",
        "producer, CTA 1",
        ("signals tma2mma[0] in CTA 0", "signals tma2mma[0] in CTA 1"),
    ),
    "a load signals another slot": Tamper(
        "mbar=tma2mma_cta0.ptr_to([ring.stage])",
        "mbar=tma2mma_cta0.ptr_to([0])",
        "producer",
        ("signals tma2mma[1]", "signals tma2mma[0]"),
    ),
}
