"""CUDA text -> cubin: by nvcc where it is, else by NVRTC through cuda-bindings."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import site
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmspec.toolchain.manifest import Assembled
from gemmspec.toolchain.problem import BuildProblem

NO_ASSEMBLER = "no nvcc (in PATH, CUDA_HOME, CUDA_PATH) and no NVRTC (pip install 'gemmspec[cuda]')"
# NVRTC cannot read <cuda.h>, whose only use here is the type of a tensor map.
_FOR_NVRTC = """\
struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; };
typedef struct CUtensorMap_st CUtensorMap;
"""
# TVM's own text is not warning-free; what matters comes from ptxas.
_COMMON = ("-O3", "-w", "--std=c++17")


@dataclass(frozen=True, slots=True)
class Cubin:
    """An assembled kernel. `log`: all that the tool said."""

    image: bytes
    report: Assembled
    log: str


def assemble(cuda: str, kernel: str, arch: str) -> Cubin | None:
    """Return the cubin of a CUDA text; None where there is nothing to assemble it with."""
    nvcc = find_nvcc()
    if nvcc is not None:
        return _by_nvcc(nvcc, cuda, kernel, arch)
    nvrtc = find_nvrtc()
    return _by_nvrtc(nvrtc, cuda, kernel, arch) if nvrtc is not None else None


def find_nvcc() -> Path | None:
    """Return the compiler driver: that of CUDA_HOME or CUDA_PATH where one is set, else that in PATH."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            nvcc = Path(os.environ[variable], "bin", "nvcc")
            if nvcc.is_file():
                return nvcc
    found = shutil.which("nvcc")
    return Path(found) if found else None


def _by_nvcc(nvcc: Path, cuda: str, kernel: str, arch: str) -> Cubin:
    with tempfile.TemporaryDirectory(prefix="gemmspec-") as folder:
        source, image = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        source.write_text(cuda, encoding="utf-8")
        code = f"arch=compute_{arch.removeprefix('sm_')},code={arch}"
        command = [str(nvcc), "-cubin", *_COMMON, "-gencode", code, "-Xptxas", "-v", "-o", str(image), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        except OSError as error:
            raise BuildProblem(f"{nvcc} cannot be run ({error.strerror})", missing_tool=True) from error
        log = done.stdout + done.stderr
        if done.returncode or not image.is_file():
            raise BuildProblem(f"nvcc does not assemble the kernel: {_reason(log)}", log)
        return Cubin(image.read_bytes(), _report(log, kernel, f"nvcc {_nvcc_version(nvcc)}"), log)


def _nvcc_version(nvcc: Path) -> str:
    said = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+\.\d+)", said)
    return found.group(1) if found else ""


def find_nvrtc() -> Any:
    """Return the module of NVRTC; None where it, or the library that it loads, is not there."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except Exception:  # the loader of cuda-bindings has errors of its own
        return None
    return nvrtc


def _by_nvrtc(nvrtc: Any, cuda: str, kernel: str, arch: str) -> Cubin:
    options = [f"--gpu-architecture={arch}", "--std=c++17", "-w", "--ptxas-options=-v"]
    options += [f"--include-path={folder}" for folder in _include_folders()]

    def call(name: str, *args: object) -> Any:
        status, *values = getattr(nvrtc, name)(*args)
        if int(status) != 0:
            raise BuildProblem(f"NVRTC does not assemble the kernel: {name} says {status.name}", log())
        return values[0] if values else None

    def log() -> str:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        text = b" " * size
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode(errors="replace").rstrip("\0 \n")

    program = nvrtc.nvrtcCreateProgram((_FOR_NVRTC + cuda).encode(), b"kernel.cu", 0, [], [])[1]
    status, *_ = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    if int(status) != 0:
        raise BuildProblem(f"NVRTC does not assemble the kernel: {_reason(log())}", log())
    image = b" " * call("nvrtcGetCUBINSize", program)
    call("nvrtcGetCUBIN", program, image)
    major, minor = nvrtc.nvrtcVersion()[1:]
    said = log()
    return Cubin(image, _report(said, kernel, f"nvrtc {major}.{minor}"), said)


def _include_folders() -> list[Path]:
    """Return where CUDA's headers may be: the toolkit's folder, and those of NVIDIA's packages."""
    homes = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    folders = [home / "include" for home in (*homes, Path("/usr/local/cuda"))]
    for packages in site.getsitepackages():
        folders += sorted(Path(packages, "nvidia").glob("*/include"))
    folders += [folder / "cccl" for folder in folders]
    return [folder for folder in folders if folder.is_dir()]


def _report(log: str, kernel: str, tool: str) -> Assembled:
    """Read what ptxas -v says of a kernel."""
    _, _, mine = log.rpartition(f"'{kernel}'")

    def number(pattern: str) -> int:
        found = re.search(pattern, mine)
        return int(found.group(1)) if found else 0

    return Assembled(
        tool=tool.strip(),
        registers=number(r"Used (\d+) registers"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
        spill_store_bytes=number(r"(\d+) bytes spill stores"),
        spill_load_bytes=number(r"(\d+) bytes spill loads"),
    )


def _reason(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error" in line.lower() or "fatal" in line.lower()), (lines or ["no reason"])[-1]
    )
