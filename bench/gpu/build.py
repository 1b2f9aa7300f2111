"""Builds, on a machine without a GPU, what the other scripts here run on one: cubins, manifests, C.

    python bench/gpu/build.py                # -> build/gpu, which git ignores: the device tool is to `carry` it

Builds all Hopper specs, and variants of them that are made by editing their text: other tiles, other types. A spec that
lint rejects, or that cannot be built, is named, and the others are built all the same.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import gemmspec
from gemmspec.api import SpecError
from gemmspec.runtime import load
from gemmspec.toolchain import BuildProblem
from gemmspec.toolchain.clib import build_library, write_c

ROOT = Path(__file__).parent.parent.parent
SMEM, MOST_STAGES = 232448 - 1024, 12
# Registers of a thread of the math warpgroups, by their number, and of the producer: all that a launch gives.
REGISTERS = {2: (232, 40), 3: (160, 32)}
SPEC = """\
kernel {name}
target sm_90a
gemm     D[M, N] {result} = A[M, K] {operand} @ B[N, K]^T {operand} accumulate f32
sizes    M dynamic, N dynamic, K dynamic
cluster  {cluster}
block    {m} x {n} x {k}
stages   {stages}
schedule persistent ctas 132 group {group}
role math     = mma, epilogue  on warpgroups 1..{consumers} chunk {chunk} buffers {buffers}{math_registers}
role producer = tma            on warpgroup 0{registers}{multicast}
barrier tma2mma [stages]  producer -> math
barrier mma2tma [stages]  math -> producer
"""
# What is compiled to C, too.
AS_C = ("hopper_n256_cluster_dynamic", "hopper_n128_dynamic", "hopper_n256", "n64_bf16")


@dataclass(frozen=True)
class Variant:
    """A kernel for any sizes, by what sets it apart."""

    n: int
    m: int = 64
    k: int = 64
    cluster: str = "1 x 1"
    consumers: int = 2
    group: int = 8
    operand: str = "f16"
    result: str = "f16"
    chunk: int = 64
    buffers: int | None = None
    """None: two, and more where they cost no stage."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        parts = [f"c{self.consumers}"] if self.consumers != 2 else []
        parts += [f"m{self.m}"] if self.m != 64 else []
        parts += [f"n{self.n}"]
        parts += [f"k{self.k}"] if self.k != 64 else []
        parts += ["c" + self.cluster.replace(" ", "")] if self.cluster != "1 x 1" else []
        parts += [f"g{self.group}"] if self.group != 8 else []
        parts += [self.operand] if self.operand != "f16" else []
        parts += [f"d{self.result}"] if self.result != self.operand else []
        parts += [f"chunk{self.chunk}x{self.buffers}"] if self.buffers is not None else []
        return "_".join(parts)

    def stages(self, buffers: int) -> int:
        """Return how many stages fit beside so many store buffers a warpgroup."""
        stage = (self.m * self.consumers + self.n) * self.k * 2
        bytes_ = {"f16": 2, "bf16": 2, "f32": 4}[self.result]
        store = self.consumers * buffers * self.m * self.chunk * bytes_
        return min((SMEM - store) // stage, MOST_STAGES)

    @property
    def store_buffers(self) -> int:
        """Store buffers of a warpgroup. Rounds of them that a tile fills whole keep their addresses constant."""
        if self.buffers is not None:
            return self.buffers
        chunks = -(-self.n // self.chunk)
        least = min(2, chunks)
        free = [b for b in range(least, chunks + 1) if self.stages(b) == self.stages(least)]
        return max(b for b in free if chunks % b == 0 or b == least)

    def text(self) -> str:
        """The spec."""
        multicast = {"1 x 1": "", "2 x 1": " multicast B", "1 x 2": " multicast A", "2 x 2": " multicast A, B"}
        math, producer = REGISTERS.get(self.consumers, (0, 0))
        return SPEC.format(
            **self.__dict__ | {"buffers": self.store_buffers},
            name=self.name,
            stages=self.stages(self.store_buffers),
            multicast=multicast[self.cluster],
            math_registers=f" registers {math}" if math else "",
            registers=f" registers {producer}" if math else "",
        )


def variants() -> Iterator[Variant]:
    """Yield what the specs do not have."""
    for n in (256, 192, 128, 64):
        yield Variant(n, operand="bf16", result="bf16")
        yield Variant(n, cluster="1 x 2")
    yield Variant(256, cluster="2 x 1", group=16)
    yield Variant(256, cluster="2 x 1", group=4)
    yield Variant(256, group=16)
    yield Variant(128, cluster="2 x 2")
    yield Variant(128, cluster="2 x 1", operand="bf16", result="bf16")
    yield Variant(128, result="f32", chunk=32)
    yield Variant(144, chunk=72)
    yield Variant(152, chunk=40)
    yield Variant(160, chunk=40)
    yield Variant(168, chunk=56)
    yield Variant(176, chunk=88)
    yield Variant(208, chunk=104)
    yield Variant(240, chunk=120)
    yield Variant(224, chunk=32)
    yield Variant(96, chunk=32)
    # Small steps through more buffers of the same size in all.
    yield Variant(256, chunk=32, buffers=4)
    yield Variant(256, chunk=32, buffers=4, cluster="2 x 1")
    # Few rows: narrow tiles, and deep ones.
    yield Variant(32, chunk=32)
    yield Variant(32, chunk=32, cluster="1 x 2")
    yield replace(Variant(64, k=128, cluster="2 x 1"), consumers=1)
    # Two instructions one below the other: a CTA computes 256 rows.
    yield Variant(128, 128, chunk=32)
    yield Variant(128, 128, chunk=64, buffers=1)
    yield Variant(72, 128, chunk=72)
    yield Variant(112, 128, chunk=56, buffers=1)
    yield Variant(128, 128, cluster="1 x 2", chunk=32)
    yield Variant(128, 128, cluster="2 x 1", chunk=32)
    yield Variant(128, 128, cluster="2 x 1", chunk=32, group=4)
    yield Variant(128, 128, cluster="2 x 1", chunk=32, group=16)
    yield Variant(64, 128)
    yield Variant(96, 128, chunk=32)
    yield Variant(152, 128, chunk=40, buffers=1)
    yield Variant(160, 128, chunk=32, buffers=1)
    yield Variant(168, 128, chunk=24, buffers=1)
    yield Variant(192, 128, chunk=32)
    # Three math warpgroups: 192 rows.
    yield Variant(64, consumers=3)
    yield Variant(96, consumers=3, chunk=32)
    yield Variant(128, consumers=3)
    yield Variant(144, consumers=3, chunk=72)
    yield Variant(152, consumers=3, chunk=40)
    yield Variant(168, consumers=3, chunk=56)
    yield Variant(176, consumers=3, chunk=88)
    yield Variant(160, consumers=3, chunk=40)
    yield Variant(192, consumers=3, chunk=32)
    yield replace(Variant(64), consumers=1)
    yield replace(Variant(64, cluster="2 x 1"), consumers=1)
    yield replace(Variant(64, cluster="1 x 2"), consumers=1)
    yield replace(Variant(128, cluster="2 x 1"), consumers=1)
    yield replace(Variant(128), consumers=1)
    yield replace(Variant(192), consumers=1)
    yield replace(Variant(256), consumers=1)


# Known sizes make tile counts constants, and spare the scheduler's divisions: the promising tiles of each shape.
FIXED = {
    (1024, 1024, 1024): ("c1_n128", "hopper_n64_dynamic"),
    (1536, 1536, 4096): ("c3_n96", "n144"),
    (2048, 2048, 2048): ("hopper_n128_dynamic", "n256_chunk32x4"),
    (3000, 5000, 4096): ("c3_n152", "n152"),
    (4096, 4096, 4096): ("n256_g16",),
    (4000, 4104, 4072): ("m128_n128_c2x1", "m128_n128_c2x1_g4", "m128_n128_c2x1_g16"),
    (4096, 11008, 4096): ("m128_n96", "n128_c1x2"),
    (5120, 13824, 5120): ("m128_n96", "n128_c1x2", "n176"),
    (512, 8192, 8192): ("hopper_n256_dynamic", "m128_n128", "n256_g16"),
    (8192, 8192, 8192): ("c3_n128", "c3_n168"),
    (8192, 28672, 4096): ("c3_n128", "n128_c1x2", "n208"),
    (128, 4096, 4096): ("c1_n64_k128_c2x1", "hopper_split2_n64_dynamic"),
}


def fixed(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield kernels for one shape each."""
    for (m, n, k), names in FIXED.items():
        for name in names:
            whole = f"{name.removesuffix('_dynamic')}_at_{m}x{n}x{k}"
            text = re.sub(rf"\bkernel {name}\b", f"kernel {whole}", texts[name])
            yield whole, re.sub(r"M dynamic, N dynamic, K dynamic", f"M = {m}, N = {n}, K = {k}", text)


def sources(only: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each spec whose name has that in it."""
    paths = sorted((ROOT / "specs").glob("hopper_*.gemmspec"))
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    texts |= {variant.name: variant.text() for variant in variants()}
    for name, text in (*texts.items(), *fixed(texts)):
        if only in name:
            yield name, text


def is_fresh(folder: Path, name: str, source: str) -> bool:
    """Whether a kernel is there that was made of the same TIRx module, with a manifest that says all it should."""
    module, manifest = folder / f"{name}.py", folder / f"{name}.json"
    there = module.is_file() and manifest.is_file() and (folder / f"{name}.cubin").is_file()
    return there and module.read_text(encoding="utf-8") == source and '"tile"' in manifest.read_text(encoding="utf-8")


def write_as_c(folder: Path, name: str) -> None:
    """Write the C of a kernel beside its cubin, if it is one of `AS_C`."""
    if name in AS_C:
        kernel = load(folder / name)
        files = write_c(kernel.manifest, kernel.cubin)
        for file, content in files.items():
            (folder / file).write_text(content, encoding="utf-8")
        (folder / f"{name}.so").write_bytes(build_library(name, files))


def main() -> int:
    """Build; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--only", default="", help="build only what has this in its name")
    parser.add_argument("--all", action="store_true", help="build again what would be made of the same TIRx module")
    asked = parser.parse_args()
    failed: list[str] = []
    for name, text in sources(asked.only):
        start = time.monotonic()
        try:
            spec = gemmspec.load(text)
            if not asked.all and is_fresh(asked.out, name, gemmspec.lower(spec).source):
                print(f"{name}: built already", flush=True)
                write_as_c(asked.out, name)
                continue
            artifact = gemmspec.build(spec)
        except (SpecError, BuildProblem) as problem:
            print(f"{name}: NOT BUILT: {problem}", flush=True)
            failed.append(name)
            continue
        artifact.write(asked.out)
        assert artifact.manifest is not None and artifact.manifest.assembled is not None
        assert artifact.cubin is not None, artifact.note
        report = artifact.manifest.assembled
        write_as_c(asked.out, name)
        spilled = report.spill_store_bytes + report.spill_load_bytes
        took = time.monotonic() - start
        print(f"{name}: {report.registers} registers, {spilled} bytes spilled, {took:.1f} s", flush=True)
    print(f"not built: {', '.join(failed)}" if failed else "all built")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
