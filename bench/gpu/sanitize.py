"""Runs the C examples of kernels under compute-sanitizer: memcheck and synccheck, on small ragged shapes.

    python bench/gpu/sanitize.py [--tools memcheck,synccheck,racecheck]

Compiles each NAME_example.c of the folder here (it needs cc and cuda.h), so it tries the C launcher, too. Writes
sanitize.json and sanitize.md. Ends with status 1 where a tool finds something, a result is wrong, or time runs out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import kernels, options, write

SHAPES = ("1 8 8", "300 520 200", "129 264 72", "640 776 264")
_LIMIT_S = 60


def cuda_home() -> Path:
    """Return the CUDA toolkit."""
    nvcc = shutil.which("nvcc")
    homes = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    homes += [Path(nvcc).resolve().parent.parent] if nvcc else []
    homes.append(Path("/usr/local/cuda"))
    return next((home for home in homes if (home / "include" / "cuda.h").is_file()), homes[-1])


def compile_example(folder: Path, name: str, out: Path) -> str:
    """Compile an example; return what the compiler complains of."""
    home = cuda_home()
    libraries = [f"-L{home / 'lib64' / 'stubs'}", "-lcuda", "-ldl", "-lpthread", "-lm"]
    files = [str(folder / f"{name}_example.c"), str(folder / f"{name}.c")]
    command = ["cc", "-O2", *files, f"-I{home / 'include'}", *libraries, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def run(command: list[str]) -> tuple[int, str]:
    """Run a command within the time; return status and output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return 124, f"{said.decode(errors='replace') if isinstance(said, bytes) else said}\nno end in {_LIMIT_S} s"
    except OSError as error:
        return 127, f"cannot run {command[0]}: {error.strerror}"
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Run the tools; return the exit status."""
    parser = options(__doc__ or "")
    parser.add_argument("--tools", default="memcheck,synccheck")
    asked = parser.parse_args()
    tool = shutil.which("compute-sanitizer") or str(cuda_home() / "bin" / "compute-sanitizer")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, kernel in kernels(asked.kernels, asked.only).items():
            # A kernel of fixed sizes is too large a product for the tools.
            if None not in kernel.manifest.sizes.values() or not (asked.kernels / f"{name}_example.c").is_file():
                continue
            program = Path(scratch, name)
            problem = compile_example(asked.kernels, name, program)
            if problem:
                rows.append({"kernel": name, "tool": "cc", "shape": "", "status": 1, "summary": problem[-400:]})
                continue
            for shape in SHAPES:
                for what in ("", *asked.tools.split(",")):
                    before = [tool, "--tool", what, "--error-exitcode", "9"] if what else []
                    status, said = run([*before, str(program), *shape.split()])
                    found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: [^\n]*", said)
                    result = re.findall(rf"{name} [^\n]*", said)
                    summary = "; ".join(found + result) or said[-400:]
                    rows.append({"kernel": name, "tool": what, "shape": shape, "status": status, "summary": summary})
                    print(name, shape, what or "alone", status, summary, flush=True)
    bad = [row for row in rows if row["status"]]
    table = ["# compute-sanitizer", "", f"{len(rows)} runs, {len(bad)} with findings.", ""]
    table += ["| kernel | M N K | tool | status | summary |", "|---|---|---|---|---|"]
    for row in rows:
        summary = row["summary"].replace("\n", " ").replace("|", "/")
        table.append(f"| {row['kernel']} | {row['shape']} | {row['tool'] or 'alone'} | {row['status']} | {summary} |")
    write("sanitize", {"rows": rows}, table)
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
