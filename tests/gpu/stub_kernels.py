"""A kernel made by hand: a manifest as the toolchain writes it, and bytes in place of a cubin."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

CUBIN = b"\x7fELF" + bytes(range(256))


def manifest(name: str = "gemm", sizes: dict[str, int | None] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a manifest for sizes that are known at run time only, unless `sizes` says otherwise."""
    sizes = sizes or {"M": None, "N": None, "K": None}
    m, n, k = (name if size is None else size for name, size in sizes.items())

    def map_of(tensor: str, rows: int | str, columns: int | str, box: list[int]) -> dict[str, Any]:
        stride = columns * 2 if isinstance(columns, int) else f"{columns} * 2"
        return {
            "kind": "tensormap", "tensor": tensor, "byte_offset": 0, "dtype": "float16", "dims": [columns, rows],
            "strides": [stride], "box": box, "element_strides": [1, 1], "interleave": 0, "swizzle": 3,
            "l2_promotion": 2, "oob_fill": 0,
        }  # fmt: skip

    return {
        "format": 1, "name": name, "target": "sm_90a", "gemmspec": "0", "tvm": "0", "spec_sha256": "", "sizes": sizes,
        "tensors": [
            {"name": "A", "role": "A", "shape": [m, k], "dtype": "f16"},
            {"name": "B", "role": "B", "shape": [n, k], "dtype": "f16"},
            {"name": "D", "role": "D", "shape": [m, n], "dtype": "f16"},
        ],
        "launch": {
            "kernel": f"{name}_kernel", "grid": ["T.min(T.truncdiv(M + 127, 128), 132)" if m == "M" else 132, 1, 1],
            "block": [384, 1, 1], "cluster": [2, 1, 1], "shared_bytes": 230400, "programmatic": True,
            "arguments": [
                map_of("A", m, k, [64, 128]), map_of("B", n, k, [64, 128]), map_of("D", m, n, [64, 64]),
                {"kind": "int32", "value": k},
            ],
        },
        "tile": {"m": 256, "n": 128, "k": 64, "a_rows": 128, "b_rows": 64},
        "assembled": None,
        **changes,
    }  # fmt: skip


def build_stub(folder: Path) -> None:
    """Compile the stub of libcuda.so.1 into a folder."""
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")
    source, out = str(Path(__file__).with_name("libcuda_stub.c")), str(folder / "libcuda.so.1")
    subprocess.run(["gcc", *flags, "-Wl,-soname,libcuda.so.1", "-o", out, source, "-ldl"], check=True)


def write(folder: Path, data: dict[str, Any], cubin: bytes = CUBIN) -> Path:
    """Write a kernel's files; return the manifest's path."""
    path = folder / f"{data['name']}.json"
    path.write_text(json.dumps(data))
    path.with_suffix(".cubin").write_bytes(cubin)
    return path
