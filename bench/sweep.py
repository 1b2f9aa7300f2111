"""Build the whole range of kernels: compile to CUDA, read back, assemble, or be refused with the right code.

    python bench/sweep.py              # all
    python bench/sweep.py v9 dynamic   # those whose names hold one of these words
    python bench/sweep.py --no-nvcc    # without the assembler, which takes most of the time

Ends with status 1 where a kernel is not built, spills, or is refused for another reason than it should be.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kernels import CASES, PROGRAMS  # noqa: E402

from gemmspec.driver import check  # noqa: E402
from gemmspec.source import SourceFile  # noqa: E402
from gemmspec.toolchain.start import quick_tvm  # noqa: E402


def outcome(text: str, refused: str, assemble: bool) -> tuple[bool, str]:
    """Build one spec; return whether it went as it should, and what happened."""
    checked = check(SourceFile("<sweep>", text))
    codes = sorted({d.code for d in checked.report.errors})
    if refused or codes:
        return codes == [refused], f"refused: {', '.join(codes) or 'not'}"
    assert checked.protocol is not None
    from gemmspec.toolchain import BuildProblem, Emit, build

    emit = [Emit.CUDA, Emit.CUBIN] if assemble else [Emit.CUDA]
    try:
        artifact = build(checked.protocol, text, emit)
    except BuildProblem as problem:
        return False, str(problem).replace("\n", " ")[:400]
    if artifact.manifest is None or artifact.manifest.assembled is None:
        return not assemble, artifact.note or "CUDA"
    said = artifact.manifest.assembled
    spilled = said.spill_load_bytes + said.spill_store_bytes
    return not spilled, f"{said.registers} registers, {spilled} bytes spilled, {len(artifact.cubin or b'')} bytes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--no-nvcc", action="store_true")
    options = parser.parse_args()
    quick_tvm()
    specs = {name: (case.text, case.refused) for name, case in CASES.items()}
    specs |= {name: (text, "") for name, text in PROGRAMS.items()}
    bad = built = refused = 0
    for name, (text, code) in specs.items():
        if options.words and not any(word in name for word in options.words):
            continue
        start = time.perf_counter()
        good, what = outcome(text, code, not options.no_nvcc)
        bad, built, refused = bad + (not good), built + (not code), refused + bool(code)
        print(f"{'ok ' if good else 'BAD'} {name:28} {time.perf_counter() - start:5.1f} s  {what}", flush=True)
    print(f"{built} to build, {refused} to refuse, {bad} not as they should be")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
