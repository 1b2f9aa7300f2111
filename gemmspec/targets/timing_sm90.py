"""How fast an H200 is. H100 figures (the same die) stand in: only its memory differs."""

from gemmspec.targets.timing import Figure, Standing, Timing

_VENDOR, _MEASURED, _ESTIMATE, _FITTED = Standing.VENDOR, Standing.MEASURED, Standing.ESTIMATE, Standing.FITTED
_UNITS = "H100 unit tests (public repository, hardware-unit-test/sm90, 2026)"

H200 = Timing(
    device="H200",
    boost_ghz=Figure(1.98, _VENDOR, "highest SM clock that nvidia-smi lists for an H200 SXM"),
    tensor_ghz=Figure(1.52, _FITTED, "790 TFLOP/s at 8192^3 under the 700 W cap, own probes; see docs/timing.md"),
    other_power=Figure(0.5, _ESTIMATE, "half of the dynamic power at full load is not the tensor cores'"),
    mma_flops=Figure(4096, _VENDOR, "989 TFLOP/s dense f16 / (132 SMs x 1.83 GHz)"),
    mma_floor=Figure(19, _MEASURED, _UNITS + ": 18.9 cycles at N 8"),
    mma_efficiency=Figure(0.99, _MEASURED, _UNITS + ": m64n256k16 in 129.3 cycles of 128"),
    mma_latency=Figure(30, _MEASURED, _UNITS + ": 79 cycles one at a time at N 64, 33 of them its own"),
    mma_issue=Figure(4, _ESTIMATE, "a descriptor addition and the instruction"),
    commit=Figure(20, _ESTIMATE, "wait_group of a group that is complete"),
    smem_bytes=Figure(128, _VENDOR, "32 banks of 4 bytes"),
    tma_issue=Figure(40, _ESTIMATE, "coordinates, descriptor and UTMALDG"),
    tma_latency=Figure(650, _ESTIMATE, "598 ns from device memory (" + _UNITS + ") = 1050 cycles, less the miss"),
    dram_latency=Figure(400, _MEASURED, "plain loads: about 660 against 270 cycles (arXiv 2402.13499)"),
    link_bytes=Figure(100, _MEASURED, _UNITS + ": 208 GB/s into one of 4 SMs, by TMA from L2"),
    l2_bytes=Figure(64, _ESTIMATE, _UNITS + ": 138 GB/s into each of 132 SMs, 70 B a cycle at the highest clock"),
    l2_write_bytes=Figure(32, _ESTIMATE, "half of the read rate"),
    l2_capacity=Figure(35e6, _ESTIMATE, "50 MB, of which some holds copies for the other partition"),
    dram_gbs=Figure(4300, _ESTIMATE, "90 % of 4.8 TB/s, as measured on an H100 (" + _UNITS + ")"),
    wait=Figure(24, _ESTIMATE, "a load from shared memory"),
    wake=Figure(40, _ESTIMATE, "half a poll of try_wait and its return"),
    arrive=Figure(24, _ESTIMATE, "a store to shared memory"),
    remote=Figure(180, _MEASURED, "SM-to-SM network: 180 cycles (arXiv 2402.13499)"),
    peer_bytes=Figure(32, _ESTIMATE, "as writes to L2"),
    acc_latency=Figure(0, _VENDOR, "accumulators are registers"),
    acc_bytes=Figure(4096, _VENDOR, "accumulators are registers"),
    convert=Figure(64, _VENDOR, "CUDA C++ Programming Guide, throughput of conversions to 16-bit types"),
    store_latency=Figure(400, _ESTIMATE, "start of the TMA unit, as for loads less L2"),
    fence=Figure(20, _ESTIMATE, "as on a B200"),
    sync=Figure(30, _ESTIMATE, "as on a B200"),
    tile=Figure(60, _ESTIMATE, "two integer divisions"),
    prologue=Figure(2000, _ESTIMATE, "1 us: tensor maps from memory, barriers, a cluster sync"),
    epilogue=Figure(1000, _ESTIMATE, "0.5 us: the last store lands, sync"),
    launch_us=Figure(1.0, _ESTIMATE, "gap of kernels in one stream"),
)
