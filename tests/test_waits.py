"""Bounded waits: the kernels, the audit of them, the device function, and what the runtime makes of the records."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from waits_records import Hung

from gemmspec import cli
from gemmspec.audit import audit
from gemmspec.codegen import lower
from gemmspec.driver import check
from gemmspec.files import find_specs
from gemmspec.protocol import Protocol
from gemmspec.runtime.hang import HangError
from gemmspec.runtime.waits import stop_of, waits_of
from gemmspec.source import SourceFile
from gemmspec.toolchain import Emit, build
from gemmspec.toolchain.artifact import sizes_of
from gemmspec.toolchain.assemble import find_nvcc
from gemmspec.toolchain.start import light_frames
from gemmspec.toolchain.tvm_kernel import prim_func
from gemmspec.toolchain.waits import table
from gemmspec.waits import Waits

ROOT = Path(__file__).parent.parent
STAND = Path(__file__).parent / "gpu"
sys.path.insert(0, str(STAND))

import stub_kernels  # noqa: E402

V9 = ROOT / "specs" / "v9.gemmspec"
SPECS = ("v7", "v8", "v9", "hopper_n256_dynamic", "hopper_n128_cluster_dynamic")
HANGS = sorted(
    Path(path)
    for folder in ("gemmspec/rules/protocol", "bench/gpu/specs", "tests/corpus")
    for path in find_specs([str(ROOT / folder)])
)

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
needs_cc = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@cache
def protocol_of(path: Path) -> tuple[Protocol, SourceFile]:
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    protocol = check(source).protocol
    assert protocol is not None
    return protocol, source


def run(*words: str) -> int:
    status = cli.gemmspec.main(list(words), prog_name="gemmspec", standalone_mode=False)
    assert isinstance(status, int)
    return status


def function(source: str, protocol: Protocol, folder: Path) -> Any:
    """Return the PrimFunc of a debug build's module whose text is `source`."""
    module = lower(protocol)
    path = folder / f"{module.name}.py"
    path.write_text(source)
    with light_frames():
        return prim_func(path, module.name, sizes_of(protocol.spec, module))


# -- kernels -------------------------------------------------------------------------------------------------------


@needs_nvcc
@pytest.mark.parametrize("name", SPECS)
def test_a_debug_build_is_read_back_and_assembled(name: str) -> None:
    protocol, source = protocol_of(ROOT / "specs" / f"{name}.gemmspec")
    made = build(protocol, source.text, debug_waits=0.5, spec_name=source.name)
    assert made.cubin is not None and made.manifest is not None and made.manifest.assembled is not None
    assert b"gemmspec_waits" in made.cubin and made.cuda is not None
    assert made.cuda.startswith("// A debug build: each wait gives up after 0.5 s.") and "500000000ull" in made.cuda
    assert "tvm_builtin_cuda_mbarrier_wait" not in made.cuda
    assert made.manifest.data["format"] == 2, "a runtime that cannot read the waits refuses it"
    waits = waits_of(made.manifest.data["waits"])
    assert waits.bytes == 4 * int(re.findall(r"gemmspec_waits\[8 \+ (\d+) \* 8\]", made.cuda)[0]) * 8 + 32
    assert {s.barrier for s in waits.sites} == {b.name for b in protocol.barriers}


def test_off_leaves_no_trace(tmp_path: Path) -> None:
    protocol, source = protocol_of(V9)
    made = build(protocol, source.text, [Emit.CUDA])
    assert made.tirx == (ROOT / "tests" / "golden" / "tirx" / "hgemm_v9.py").read_text()
    files = made.files()
    assert not any("gemmspec_wait" in str(text) or "debug" in str(text) for text in files.values())
    assert '"waits"' not in str(files["hgemm_v9.json"])


def test_names_of_a_debug_build_are_its_own() -> None:
    text = V9.read_text().replace("tma2mma", "past").replace("mma2tma", "wait").replace("ld2mma", "WAITS")
    protocol = check(SourceFile("x", text)).protocol
    assert protocol is not None
    assert "past.wait(ring.stage" in lower(protocol).source
    debug = lower(protocol, Waits(protocol, 2.0)).source
    assert "past_ = TMABar(pool, STAGES)" in debug and "wait_ = TCGen05Bar" in debug and "WAITS_ = MBarrier" in debug


TAMPERS = {
    "the site of another wait": (r"(past,\s+)0(,\s+)0(,\s+tiles)", r"\g<1>0\g<2>1\g<3>"),
    "the row of another role": (r"(past,\s+)0(,\s+)0(,\s+tiles)", r"\g<1>1\g<2>0\g<3>"),
    "another k tile": (r"(tiles\.tile_count,\s+)k,", r"\g<1>0,"),
    "no agreement": (r"wg_id \+ 10,", "-1,"),
    "work behind a wait that gave up": (r"if past >= 0:(\s+for i in T.unroll)", r"if T.bool(True):\1"),
    "a trip behind a wait that gave up": (r"if past >= 0:(\s+past = wait\(\s+mma2tma)", r"if T.bool(True):\1"),
    "tiles that go on": (r"while \(tiles.valid\(\)\) & \(past >= 0\):", "while tiles.valid():"),
    "another device function": ("ns < 2000000000ull", "ns < 20000000000ull"),
}


@pytest.mark.parametrize("name", TAMPERS)
def test_a_tampered_debug_build_is_seen(name: str, tmp_path: Path) -> None:
    protocol, _ = protocol_of(V9)
    waits = Waits(protocol, 2.0)
    tampered, found = re.subn(*TAMPERS[name], lower(protocol, waits).source, count=1)
    assert found and audit(function(tampered, protocol, tmp_path), protocol, waits)


def test_an_untouched_debug_build_is_what_the_protocol_says(tmp_path: Path) -> None:
    protocol, _ = protocol_of(V9)
    waits = Waits(protocol, 2.0)
    assert audit(function(lower(protocol, waits).source, protocol, tmp_path), protocol, waits) == ()


# -- the device function, as C++ for this machine ------------------------------------------------------------------

SHIM = """
#include <cstdint>
#define __forceinline__
#define __device__
struct { unsigned x; } blockIdx;
static unsigned long long clock_ns;
static int opens_after, tries, lone;
static unsigned long long gemmspec_now() { return clock_ns += 1000; }
static bool gemmspec_try(unsigned, int) { return ++tries > opens_after; }
static int gemmspec_agree(int passed, int) { return passed && !lone; }
static unsigned atomicCAS(unsigned *at, unsigned was, unsigned is) {
  unsigned old = *at;
  if (old == was) *at = is;
  return old;
}
static void __nanosleep(unsigned ns) { clock_ns += ns; }
static unsigned __cvta_generic_to_shared(void *) { return 0; }
"""
ENTRY = """
extern "C" int one(int block, int opens, int stop, int disagree, unsigned long long *took, int named) {
  static int barrier;
  blockIdx.x = block, opens_after = opens, tries = 0, lone = disagree;
  if (stop) gemmspec_waits[0] = 1;
  unsigned long long start = clock_ns;
  int result = gemmspec_wait(&barrier, 1, 41, 2, 7, 3, 5, 9, named);
  *took = clock_ns - start;
  return result;
}
extern "C" unsigned *words() { return gemmspec_waits; }
"""


@pytest.fixture
def device(tmp_path: Path) -> Any:
    """The device function with its three uses of the GPU taken out: the clock, the barrier, the agreement."""
    protocol, _ = protocol_of(V9)
    text = Waits(protocol, 0.002).source
    for name in ("now", "try", "agree"):
        text, found = re.subn(rf"__forceinline__ __device__ [\w ]+ gemmspec_{name}\(.*?\n}}\n", "", text, flags=re.S)
        assert found == 1
    assert "asm" not in text
    (tmp_path / "wait.cpp").write_text(SHIM + text + ENTRY)
    command = ["g++", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", "wait.so", "wait.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "wait.so"))
    library.words.restype = ctypes.POINTER(ctypes.c_uint32)
    return library


def _wait(device: Any, block: int, opens: int, stop: int = 0, disagree: int = 0, named: int = -1) -> tuple[int, int]:
    took = ctypes.c_uint64()
    return device.one(block, opens, stop, disagree, ctypes.byref(took), named), took.value


@needs_cc
def test_the_device_function(device: Any) -> None:
    words, rows = device.words(), Waits(protocol_of(V9)[0], 0.002).rows

    def record(block: int) -> list[int]:
        start = 8 + (block * rows + 2) * 8
        return list(words[start : start + 8])

    assert _wait(device, 0, 0) == (42, 0)  # open: no look at the clock
    assert _wait(device, 0, 5)[0] == 42 and record(0) == [0] * 8 and words[0] == 0
    result, took = _wait(device, 1, 1 << 30)
    assert result == -1 and words[0] == 1
    assert record(1)[:7] == [1, 7, 3, 1, 5, 9, 41] and 2000 <= record(1)[7] < 2010
    assert 3_000_000 <= took < 3_200_000  # and stays 1 ms for what is in flight
    # Another one is told by word 0, at once; what is open is passed all the same; the first record stays.
    result, took = _wait(device, 2, 1 << 30)
    assert result == -1 and record(2)[0] == 2 and took < 1_200_000
    assert _wait(device, 3, 0) == (42, 0) and record(3) == [0] * 8
    before = record(1)
    assert _wait(device, 1, 1 << 30)[0] == -1 and record(1) == before
    # One warp that gives up takes the others of its warpgroup along.
    assert _wait(device, 4, 0, disagree=1, named=10)[0] == -1 and record(4) == [0] * 8


# -- what the runtime makes of records -----------------------------------------------------------------------------


def _hung(path: Path) -> tuple[Hung, SourceFile] | None:
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    protocol = check(source).protocol
    if protocol is None:
        return None
    try:
        return Hung(protocol, 2.0), source
    except StopIteration:
        return None


def test_the_report_is_what_the_proof_foretells() -> None:
    """From where each role stands, the runtime counts the same cycle, phases, arrivals and bytes as the proof."""
    tried = 0
    for path in HANGS:
        found = _hung(path)
        if found is None:
            continue
        hung, source = found
        tried += 1
        waits = waits_of(asdict(table(hung.waits, source)))
        stop = stop_of(waits, hung.words(clusters=(0, 2)), hung.sizes)
        assert stop is not None and stop.cluster == 0 and stop.clusters == 2
        cycle = [
            (w.at.role, w.at.instance, w.at.cta, w.barrier, w.slot, w.phase, w.completed, w.pending, w.bytes)
            for w in stop.cycle
        ]
        assert cycle == hung.cycle, path
        assert all(w.agrees for w in stop.waits) and len(stop.waits) == len(hung.stuck)
        assert sum(w.expired for w in stop.waits) == 1
    assert tried >= 10


def test_the_report_in_words() -> None:
    found = _hung(ROOT / "bench" / "gpu" / "specs" / "hang_stages.gemmspec")
    assert found is not None
    hung, source = found
    waits = waits_of(asdict(table(hung.waits, source)))
    stop = stop_of(waits, hung.words(), hung.sizes)
    assert stop is not None
    error = HangError("hang_stages", waits, stop)
    assert str(error) == """\
kernel `hang_stages` stopped: a wait was not over after 2 s
hang: `math` 0 waits for `tma2mma[0]` and `producer` waits for `mma2tma[0]`
   --> hang_stages.gemmspec:13:1
    |
13  | barrier tma2mma [stages]  producer -> math
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `math` 0 waits here for `tma2mma[0]`
14  | barrier mma2tma [stages]  math     -> producer
    | ---------------------------------------------- `producer` waits here for `mma2tma[0]`
   = note: """ + "\n   = note: ".join((
        "`math` 0 waits for phase 2 of `tma2mma[0]` in tile 0, k tile 1: 1 complete, the next lacks 1 arrival (0 of 1 "
        "made; after 2.00 s)",
        "`producer` waits for phase 1 of `mma2tma[0]` in tile 0, k tile 1: 0 complete, the next lacks 2 arrivals (0 of "
        "2 made; stopped with the others after 2.00 s)",
        "beside them, `math` 1 waits for phase 2 of `tma2mma[0]` in tile 0, k tile 1: 1 complete, the next lacks 1 "
        "arrival (0 of 1 made; stopped with the others after 2.00 s)",
        "this is how cluster 0 (CTA 0 of the grid) stood; D holds garbage",
    ))  # fmt: skip


def test_a_record_that_contradicts_the_count_is_told() -> None:
    found = _hung(ROOT / "bench" / "gpu" / "specs" / "hang_stages.gemmspec")
    assert found is not None
    hung, source = found
    waits = waits_of(asdict(table(hung.waits, source)))
    words = hung.words()
    words[8 + 3] ^= 1
    stop = stop_of(waits, words, hung.sizes)
    assert stop is not None and [w.agrees for w in stop.waits] == [False, True, True]
    assert "not what the arrivals come to" in str(HangError("hang_stages", waits, stop))


def test_nothing_is_said_where_no_wait_gave_up() -> None:
    found = _hung(ROOT / "bench" / "gpu" / "specs" / "hang_stages.gemmspec")
    assert found is not None
    hung, source = found
    waits = waits_of(asdict(table(hung.waits, source)))
    assert stop_of(waits, [0] * (waits.bytes // 4), hung.sizes) is None


@needs_cc
def test_launches_on_the_stub(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    stub_kernels.build_stub(tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": f"{ROOT}:{STAND}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(STAND / "on_stub_waits.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "1e9", "nan", "inf", "two", ""])
def test_wrong_times(value: str) -> None:
    words = [sys.executable, "-m", "gemmspec.cli", "compile", str(V9), f"--debug-waits={value}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "seconds" in done.stderr and "Traceback" not in done.stderr


def test_a_library_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", str(V9), "--debug-waits", "--emit", "cubin,lib", "--out", str(tmp_path)) == 2
    assert "leave c and lib out of --emit" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_sync_that_cannot_be_bounded_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = ROOT / "gemmspec" / "rules" / "protocol" / "gs121_sync_in_role.bad.gemmspec"
    assert run("compile", str(spec), "--force", "--debug-waits", "--out", str(tmp_path)) == 1
    assert "GS121 it may hang elsewhere" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_spec_with_a_deadlock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = ROOT / "bench" / "gpu" / "specs" / "hang_phase.gemmspec"
    assert run("compile", str(spec), "--debug-waits", "--out", str(tmp_path)) == 1 and not list(tmp_path.iterdir())
    words = ("compile", str(spec), "--force", "--debug-waits", "3", "--emit", "cuda", "--out", str(tmp_path))
    assert run(*words) == 0
    said = capsys.readouterr()
    assert "a debug build: waits give up after 3 s" in said.out and "its waits give up" in said.err
    assert (tmp_path / "hang_phase.cu").read_text().startswith("// UNSOUND")
