"""Specs over the whole range of what is lowered: for tests, and for bench/sweep.py, which builds them all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

DYNAMIC = "M dynamic, N dynamic, K dynamic"


@dataclass(frozen=True)
class Case:
    """One spec by its parts; standard programs. `refused`: the code that must refuse it."""

    refused: str = ""
    target: str = "sm_100a"
    sizes: str = "M = 4096, N = 4096, K = 4096"
    types: tuple[str, str] = ("f16", "f16")
    cluster: str = "2 x 1"
    block: str = "128 x 128 x 64"
    stages: int = 4
    consumers: int = 2
    chunk: int = 64
    accumulators: int = 1
    producer: str = ""
    consumer: str = ""
    writeback: str = ""
    programs: str = ""
    barriers: str = ""

    @property
    def text(self) -> str:
        """The spec."""
        operand, out = self.types
        head = f"""\
kernel case
target {self.target}

gemm     D[M, N] {out} = A[M, K] {operand} @ B[N, K]^T {operand} accumulate f32
sizes    {self.sizes}
cluster  {self.cluster}
block    {self.block}
stages   {self.stages}
"""
        return head + (self._hopper() if self.target == "sm_90a" else self._blackwell()) + self.programs

    def _hopper(self) -> str:
        return f"""
role producer = tma on warpgroup 0 warp 0 registers 40 {self.producer}
role math = mma, epilogue on warpgroups 1..{self.consumers} chunk {self.chunk} {self.writeback}

barrier full  [stages] producer -> math
barrier empty [stages] math -> producer
"""

    def _blackwell(self) -> str:
        last = self.consumers
        slots = "[consumer x accumulators]" if self.accumulators > 1 else "[consumer]"
        rings = f"""\
barrier tma2mma [stages] producer -> consumer
barrier mma2tma [stages] consumer -> producer
barrier mma2ld  {slots} consumer -> writeback
barrier ld2mma  {slots} writeback -> consumer
"""
        return f"""\
accumulators {self.accumulators}

role producer  = tma on warpgroup {last} warp 3 {self.producer}
role consumer  = mma on warpgroup {last} warps 0..{last - 1} {self.consumer}
role writeback = epilogue on warpgroups 0..{last - 1} chunk {self.chunk} {self.writeback}

""" + (self.barriers or rings)


@dataclass(frozen=True)
class Family:
    """Cases that share a start."""

    base: Case
    cases: dict[str, Case] = field(default_factory=dict[str, Case])

    def add(self, name: str, **parts: object) -> None:
        self.cases[name] = replace(self.base, **parts)  # type: ignore[arg-type]


PAIR = Family(Case())
ONE = Family(Case(cluster="1 x 1", consumers=1))
HOPPER = Family(Case(target="sm_90a", cluster="1 x 1", block="64 x 256 x 64", writeback="registers 232"))

PAIR.add("v9")
PAIR.add("bf16", types=("bf16", "bf16"))
PAIR.add("bf16-to-f32", types=("bf16", "f32"), chunk=32)
PAIR.add("f32-64", types=("f16", "f32"), stages=3)
PAIR.add("f32-128", types=("f16", "f32"), stages=2, chunk=128)
PAIR.add("chunk-16", chunk=16)
PAIR.add("chunk-32", chunk=32)
PAIR.add("chunk-128", chunk=128, stages=3)
PAIR.add("n-64", block="128 x 64 x 64")
PAIR.add("n-96", block="128 x 96 x 64", stages=4)
PAIR.add("k-128", block="128 x 128 x 128", stages=2)
PAIR.add("n-64-k-128", block="128 x 64 x 128", stages=2)
PAIR.add("stages-1", stages=1)
PAIR.add("stages-2", stages=2)
PAIR.add("stages-3", stages=3)
PAIR.add("one-consumer", consumers=1, stages=6)
PAIR.add("three-consumers", consumers=3, block="128 x 64 x 64", stages=3)
PAIR.add("accumulators-2", consumers=1, accumulators=2, stages=5)
PAIR.add("two-by-two", accumulators=2, block="128 x 64 x 64")
PAIR.add("buffers-2", writeback="buffers 2", stages=3)
PAIR.add("buffers-3", writeback="buffers 3", stages=3, chunk=32)
PAIR.add("buffers-4", writeback="buffers 4", stages=3, chunk=32)
PAIR.add("release-read", writeback="release after read")
PAIR.add("release-read-buffers", writeback="release after read buffers 2", consumers=1)
PAIR.add("registers", producer="registers 104", consumer="registers 104", writeback="registers 200")
PAIR.add("one-tile", sizes="M = 512, N = 256, K = 64")
PAIR.add("less-than-a-tile", sizes="M = 8, N = 8, K = 8")
PAIR.add("one-k-tile", sizes="M = 4096, N = 4096, K = 64")
PAIR.add("large", sizes="M = 16384, N = 16384, K = 16384")
PAIR.add("wide", sizes="M = 512, N = 16384, K = 2048")
PAIR.add("tall", sizes="M = 16384, N = 256, K = 2048")
PAIR.add("ragged", sizes="M = 5000, N = 3000, K = 4104")
PAIR.add("ragged-k-128", sizes="M = 5000, N = 3000, K = 4104", block="128 x 128 x 128", stages=2)
PAIR.add("ragged-chunk-128", sizes="M = 5000, N = 3000, K = 4104", chunk=128, stages=3)
PAIR.add("ragged-f32", sizes="M = 5000, N = 3000, K = 4104", types=("f16", "f32"), stages=3)
PAIR.add("dynamic", sizes=DYNAMIC)
PAIR.add("dynamic-m", sizes="M dynamic, N = 4096, K = 4096")
PAIR.add("dynamic-n", sizes="M = 4096, N dynamic, K = 4096")
PAIR.add("dynamic-k", sizes="M = 4096, N = 4096, K dynamic")
PAIR.add("dynamic-k-128", sizes=DYNAMIC, block="128 x 128 x 128", stages=2)
PAIR.add("dynamic-chunk-128", sizes=DYNAMIC, chunk=128, stages=3)
PAIR.add("one-row", sizes="M = 1, N = 4096, K = 4096", cluster="2 x 2", producer="multicast A", chunk=128, stages=3)
PAIR.add("dynamic-row-by-row", sizes=DYNAMIC, programs="schedule persistent group 1\n")
PAIR.add("cluster-4x1", cluster="4 x 1")
PAIR.add("cluster-2x2", cluster="2 x 2")
PAIR.add("cluster-2x2-multicast", cluster="2 x 2", producer="multicast A")
PAIR.add("cluster-4x2", cluster="4 x 2", producer="multicast A")
PAIR.add("multicast-in-pair", cluster="4 x 1", producer="multicast B", refused="GS410")
PAIR.add("too-deep", stages=6, refused="GS301")
PAIR.add("too-many-columns", consumers=3, stages=2, refused="GS302")
PAIR.add("m-64", block="64 x 128 x 64", refused="GS401")
PAIR.add("n-256", block="128 x 256 x 64", stages=2, consumers=1, refused="GS401")
PAIR.add("k-32", block="128 x 128 x 32", refused="GS406")
PAIR.add("odd-k", sizes="M = 4096, N = 4096, K = 4100", refused="GS403")
PAIR.add("odd-n", sizes="M = 4096, N = 4100, K = 4096", refused="GS403")
PAIR.add("chunk-48", chunk=48, refused="GS404")
PAIR.add("cluster-16", cluster="16 x 1", refused="GS308")

ONE.add("single")
ONE.add("single-n-64", block="128 x 64 x 64", stages=8)
ONE.add("single-n-256", block="128 x 256 x 64")
ONE.add("single-k-128", block="128 x 128 x 128", stages=3)
ONE.add("single-two-consumers", consumers=2)
ONE.add("single-two-consumers-k-128", consumers=2, block="128 x 128 x 128", stages=2)
ONE.add("single-two-consumers-n-256", consumers=2, block="128 x 256 x 64", stages=2)
ONE.add("single-accumulators", accumulators=2, block="128 x 256 x 64")
ONE.add("single-dynamic", sizes=DYNAMIC)
ONE.add("single-v7", stages=2, chunk=128, writeback="release after read")
ONE.add("cluster-1x2", cluster="1 x 2")
ONE.add("cluster-1x2-multicast", cluster="1 x 2", producer="multicast A")
ONE.add("cluster-1x2-multicast-k-128", cluster="1 x 2", producer="multicast A", block="128 x 64 x 128", stages=2)
ONE.add("cluster-1x2-multicast-two", cluster="1 x 2", producer="multicast A", consumers=2)

HOPPER.add("hopper")
HOPPER.add("hopper-bf16", types=("bf16", "bf16"))
HOPPER.add("hopper-f32", types=("f16", "f32"), chunk=32)
HOPPER.add("hopper-n-64", block="64 x 64 x 64", stages=6)
HOPPER.add("hopper-n-128", block="64 x 128 x 64", stages=6)
HOPPER.add("hopper-n-192", block="64 x 192 x 64")
HOPPER.add("hopper-k-128", block="64 x 128 x 128", stages=3)
HOPPER.add("hopper-one-consumer", consumers=1, block="64 x 128 x 64")
HOPPER.add("hopper-three-consumers", consumers=3, block="64 x 128 x 64", writeback="registers 152")
HOPPER.add("hopper-chunk-128", chunk=128, stages=3)
HOPPER.add("hopper-one-buffer", writeback="registers 232 buffers 1")
HOPPER.add("hopper-multicast-b", cluster="2 x 1", producer="multicast B")
HOPPER.add("hopper-multicast-a", cluster="1 x 2", producer="multicast A")
HOPPER.add("hopper-multicast-both", cluster="2 x 2", producer="multicast A B", block="64 x 128 x 64")
HOPPER.add("hopper-multicast-k-128", cluster="2 x 2", producer="multicast A B", block="64 x 64 x 128", stages=3)
HOPPER.add("hopper-dynamic", sizes=DYNAMIC, cluster="2 x 1", producer="multicast B")
HOPPER.add("hopper-one-row", sizes="M = 1, N = 4096, K = 4096", cluster="1 x 2", producer="multicast A")
HOPPER.add("hopper-row-by-row", sizes=DYNAMIC, programs="schedule persistent group 1\n")
HOPPER.add("hopper-ragged", sizes="M = 5000, N = 3000, K = 4104")
HOPPER.add("hopper-one-tile", sizes="M = 128, N = 256, K = 64")
HOPPER.add("hopper-m-128", block="128 x 128 x 64", chunk=32)
HOPPER.add("hopper-m-128-multicast", block="128 x 128 x 64", chunk=32, cluster="2 x 1", producer="multicast B")
HOPPER.add("hopper-m-128-three-consumers", block="128 x 64 x 128", stages=2, consumers=3, writeback="registers 152")
HOPPER.add("hopper-n-144", block="64 x 144 x 64", chunk=72)
HOPPER.add("hopper-n-144-chunk-48", block="64 x 144 x 64", chunk=48)
HOPPER.add("hopper-n-152-chunk-152", block="64 x 152 x 64", chunk=152, writeback="registers 232 buffers 1")
HOPPER.add("hopper-n-152-chunk-40", block="64 x 152 x 64", chunk=40)
HOPPER.add(
    "hopper-m-128-n-152-chunk-56", block="128 x 152 x 64", chunk=56, stages=3, writeback="buffers 1", sizes=DYNAMIC
)
HOPPER.add("hopper-n-208-f32", block="64 x 208 x 64", chunk=104, types=("f16", "f32"), stages=2)
HOPPER.add("hopper-n-144-chunk-36", block="64 x 144 x 64", chunk=36, refused="GS404")
HOPPER.add("hopper-m-192", block="192 x 64 x 64", stages=2, refused="GS401")

CASES = {**PAIR.cases, **ONE.cases, **HOPPER.cases}

_PAIR = Case(consumers=1).text
_CONSUMER = """
program consumer {
  for tile {
    wait ld2mma
    for k {
      wait tma2mma
      mma
      if k != first {
        commit mma2tma[stage - 1]
      }
    }
    commit mma2tma[stage - 1]
    commit mma2ld
  }
}
"""
_TWO_PRODUCERS = """\
role pa = tma on warpgroup 1 warp 3
role pb = tma on warpgroup 1 warp 2
role consumer = mma on warpgroup 1 warp 0
role writeback = epilogue on warpgroup 0 chunk 64

barrier fa [stages] pa -> consumer
barrier fb [stages] pb -> consumer
barrier mma2tma [stages] consumer -> pa, pb
barrier mma2ld [1] consumer -> writeback
barrier ld2mma [1] writeback -> consumer

program pa {
  for tile {
    for k {
      wait mma2tma
      expect fa
      load A fa
    }
  }
}
program pb {
  for tile {
    for k {
      wait mma2tma
      load B fb
      expect fb
    }
  }
}
"""
_RING_OF_THREE = """\
barrier tma2mma [stages] producer -> consumer
barrier mma2tma [stages] consumer -> producer
barrier mma2ld [accumulators] consumer -> writeback
barrier ld2mma [accumulators] writeback -> consumer
barrier go [3] writeback -> producer via threads

program writeback {
  for tile {
    wait mma2ld
    for chunk {
      read
      if chunk == last {
        arrive ld2mma
      }
      store
    }
    arrive go
  }
}
program producer {
  for tile {
    wait go
    for k {
      wait mma2tma
      load tma2mma
      expect tma2mma
    }
  }
}
"""
_COUNTED = """
barrier y [4] writeback -> producer via elected

program writeback {
  for tile {
    wait mma2ld
    for chunk {
      read
      store
    }
    for 4 {
      arrive y
    }
    arrive ld2mma
  }
}
program producer {
  for tile {
    for 4 {
      wait y
    }
    for k {
      wait mma2tma
      load tma2mma
      expect tma2mma
    }
  }
}
"""
_HEAD = _PAIR.partition("accumulators 1")[0]
_SPLIT = """
program producer {
  for tile {
    for k {
      wait mma2tma
      load A[1] tma2mma
      load A[0] B tma2mma
      expect tma2mma
    }
  }
}
"""
PROGRAMS = {
    "late-commit": _PAIR + _CONSUMER,
    "two-producers": _HEAD + _TWO_PRODUCERS,
    "ring-of-three": replace(Case(consumers=1, accumulators=2), barriers=_RING_OF_THREE).text,
    "counted-loops": _PAIR + _COUNTED,
    "split-loads": Case().text + _SPLIT,
}
"""Specs with programs of their own."""

KERNELS = {name: case.text for name, case in CASES.items() if not case.refused} | PROGRAMS
"""Every spec that must compile."""
