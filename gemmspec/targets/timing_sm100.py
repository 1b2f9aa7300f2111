"""How fast a B200 is. B300 figures (same SM count and architecture) stand in where none of a B200 is public."""

from gemmspec.targets.timing import Figure, Standing, Timing

_VENDOR, _MEASURED, _ESTIMATE, _FITTED = Standing.VENDOR, Standing.MEASURED, Standing.ESTIMATE, Standing.FITTED
_ARXIV = "arXiv 2512.02189, Microbenchmarking NVIDIA's Blackwell Architecture"
_SEMI = "SemiAnalysis, Dissecting Nvidia Blackwell (March 2026), summary"
_CATALOG = "B300 pipe catalog (public repository, April 2026)"

B200 = Timing(
    device="B200",
    boost_ghz=Figure(1.965, _VENDOR, "highest SM clock that nvidia-smi lists for a B200"),
    tensor_ghz=Figure(1.54, _FITTED, "cuBLAS and v9 at 4096^3: 0.094 ms; see docs/timing.md"),
    other_power=Figure(0.5, _ESTIMATE, "half of the dynamic power at full load is not the tensor cores'"),
    mma_flops=Figure(8192, _VENDOR, "2.25 PFLOP/s dense f16 / (148 SMs x 1.855 GHz); " + _CATALOG + ": N 256 in 128"),
    mma_floor=Figure(11, _MEASURED, _ARXIV + ": 11 cycles an instruction"),
    mma_efficiency=Figure(0.98, _ESTIMATE, _SEMI + ": near peak; Hopper's wgmma reaches 0.99"),
    mma_latency=Figure(50, _MEASURED, "dependent M64 N64 tiles: 54 cycles apart (public repository, B200, March 2026)"),
    mma_issue=Figure(4, _ESTIMATE, "a descriptor addition and the instruction"),
    commit=Figure(60, _ESTIMATE, "tensor core to mbarrier: twice an LDS, 24 cycles (" + _CATALOG + ")"),
    smem_bytes=Figure(128, _MEASURED, _SEMI + ": MMA from shared memory is bound at 128 B a cycle"),
    tma_issue=Figure(40, _ESTIMATE, "coordinates, descriptor and UTMALDG"),
    tma_latency=Figure(
        680, _MEASURED, "L2 hit 197 ns = 380 cycles (public repository, B200) + 300 cross-die (" + _SEMI + ")"
    ),
    dram_latency=Figure(490, _MEASURED, _CATALOG + ": plain loads 789 against 301 cycles"),
    link_bytes=Figure(100, _ESTIMATE, "H100: one of 4 SMs takes 208 GB/s in by TMA, 105 B a cycle"),
    l2_bytes=Figure(59, _MEASURED, "B300: 17 TB/s at 1.92 GHz over 148 SMs (public repository, April 2026)"),
    l2_write_bytes=Figure(32, _ESTIMATE, "half of the read rate"),
    l2_capacity=Figure(90e6, _ESTIMATE, "126 MB (chipsandcheese.com), of which some holds copies for the other die"),
    dram_gbs=Figure(7200, _MEASURED, "B300: 7.2 TB/s read (public repository, April 2026); 8 TB/s by data sheet"),
    wait=Figure(24, _MEASURED, _CATALOG + ": ld.shared"),
    wake=Figure(40, _ESTIMATE, "half a poll of try_wait and its return"),
    arrive=Figure(24, _MEASURED, _CATALOG + ": ld.shared"),
    remote=Figure(180, _MEASURED, "Hopper, SM-to-SM network: 180 cycles (arXiv 2402.13499)"),
    peer_bytes=Figure(32, _ESTIMATE, "as writes to L2"),
    acc_latency=Figure(200, _ESTIMATE, "between a shared memory load and the 420 cycles of " + _ARXIV),
    acc_bytes=Figure(512, _ESTIMATE, "32 lanes of 4 bytes a cycle and warp"),
    convert=Figure(64, _VENDOR, "CUDA C++ Programming Guide, throughput of conversions to 16-bit types"),
    store_latency=Figure(400, _ESTIMATE, "start of the TMA unit, as for loads less L2"),
    fence=Figure(20, _ESTIMATE, "more than fence.sc.cta, 8.6 cycles (" + _CATALOG + ")"),
    sync=Figure(30, _MEASURED, _CATALOG + ": 22 + 2 cycles a warp"),
    tile=Figure(60, _ESTIMATE, "two integer divisions"),
    prologue=Figure(2500, _ESTIMATE, "1.3 us: tensor maps from memory, tcgen05.alloc, two cluster syncs"),
    epilogue=Figure(1000, _ESTIMATE, "0.5 us: the last store lands, cluster sync, deallocation"),
    launch_us=Figure(1.0, _ESTIMATE, "gap of kernels in one stream"),
)
