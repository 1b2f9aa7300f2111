"""The generated module through TVM: file -> PrimFunc -> CUDA text and host function. The only importer of TVM.

TVM has no types: what it returns is `Any` here, and plain text outside.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingModuleSource=false, reportMissingImports=false

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmspec.toolchain.problem import BuildProblem


@dataclass(frozen=True, slots=True)
class Lowered:
    """`cuda`: the kernel's source. `host`: the script of the function that launches it. `tvm`: the version."""

    cuda: str
    host: str
    tvm: str


def prim_func(path: Path, name: str, sizes: tuple[int, ...]) -> Any:
    """Import a generated module from its file, and return what its function gives for these sizes."""
    _tvm()
    spec = importlib.util.spec_from_file_location(f"gemmspec_kernel_{name}", path)
    assert spec is not None and spec.loader is not None, "a path that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, name)(*sizes)
    except Exception as error:
        raise BuildProblem.of_tvm("read", path, error) from error


def lowered(function: Any, name: str, arch: str, path: Path) -> Lowered:
    """Lower a PrimFunc once, for the device and for the host."""
    tvm = _tvm()
    from tvm import tirx
    from tvm.tirx.build import codegen_build, split_host_device_mods

    target = tvm.target.Target({"kind": "cuda", "arch": arch}).with_host("llvm")
    passes: Any = tirx.get_tir_pipeline("tirx")
    pipeline, _, device = passes
    try:
        with target:
            whole = tvm.IRModule({name: function.with_attr("global_symbol", name)})
            parts = pipeline(tirx.transform.BindTarget(target)(whole))
        host, kernels = split_host_device_mods(parts)
        ((kernel_target, kernel),) = kernels.items()
        cuda = codegen_build(device()(kernel), kernel_target).inspect_source("cuda")
        return Lowered(cuda, host.script(), tvm.__version__)
    except Exception as error:
        raise BuildProblem.of_tvm("lower", path, error) from error


def _tvm() -> Any:
    try:
        import tvm
    except ImportError as error:
        raise BuildProblem(f"TVM cannot be imported ({error})", missing_tool=True) from error
    return tvm
