// A wait that gives up after $seconds s, writes down where, and makes all other waits give up.
// Word 0: whether to give up. Behind it 8 words for each instance of a role in each CTA; the first writer wins:
// how it ended (1: the time was over, 2: another wait's was), site, slot, parity, tile, k, waits passed before, us.
__device__ unsigned gemmspec_waits[8 + $records * 8];

__forceinline__ __device__ unsigned long long gemmspec_now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__forceinline__ __device__ bool gemmspec_try(unsigned barrier, int parity) {
  unsigned passed, at_most_ns = 100000;
  asm volatile(
      "{\n"
      ".reg .pred passed;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 passed, [%1], %2, %3;\n"
      "selp.u32 %0, 1, 0, passed;\n"
      "}\n"
      : "=r"(passed) : "r"(barrier), "r"(parity), "r"(at_most_ns) : "memory");
  return passed;
}

// Whether all 128 threads of an instance passed: they go on together, or not at all.
__forceinline__ __device__ int gemmspec_agree(int passed, int named) {
  passed = __all_sync(0xffffffff, passed);
  asm volatile(
      "{\n"
      ".reg .pred mine, all;\n"
      "setp.ne.s32 mine, %1, 0;\n"
      "barrier.cta.red.and.aligned.pred all, %2, 128, mine;\n"
      "selp.s32 %0, 1, 0, all;\n"
      "}\n"
      : "=r"(passed) : "r"(passed), "r"(named) : "memory");
  return passed;
}

// Returns waits + 1 behind the wait, and -1 after giving up: on that, its caller does nothing more.
// named: the named barrier at which the 128 threads of an instance agree; -1 where it is one thread.
__forceinline__ __device__ int gemmspec_wait(void* at, int parity, int waits, int row, int site, int slot, int tile,
                                             int k, int named) {
  const unsigned barrier = (unsigned)__cvta_generic_to_shared(at);
  int passed = gemmspec_try(barrier, parity);
  if (!passed) {
    const unsigned long long start = gemmspec_now();
    volatile unsigned* stop = gemmspec_waits;
    unsigned long long ns;
    do {
      passed = gemmspec_try(barrier, parity);
      ns = gemmspec_now() - start;
    } while (!passed && ns < $nanoseconds && !*stop);
    if (!passed) {
      const bool expired = ns >= $nanoseconds;
      unsigned* record = gemmspec_waits + 8 + (blockIdx.x * $rows + row) * 8;
      if (atomicCAS(record, 0u, expired ? 1u : 2u) == 0) {
        record[1] = site, record[2] = slot, record[3] = parity, record[4] = tile;
        record[5] = k, record[6] = waits, record[7] = (unsigned)(ns / 1000);
      }
      if (expired) *stop = 1;
      // What is in flight lands while its barrier is still there: no CTA ends before this thread does.
      while (gemmspec_now() - start < ns + 1000000) __nanosleep(20000);
    }
  }
  if (named >= 0) passed = gemmspec_agree(passed, named);
  return passed ? waits + 1 : -1;
}
