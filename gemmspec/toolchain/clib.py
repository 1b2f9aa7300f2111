"""A kernel as C: one file with the machine code inside, its header, an example, and a library built of them.

Given a manifest and a cubin, returns texts. The C is in `c/`, with `${words}` in place of what depends on the kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from gemmspec.runtime.arithmetic import c_text
from gemmspec.runtime.manifest import Manifest, TensorMap, manifest_of
from gemmspec.toolchain import manifest as made
from gemmspec.toolchain.problem import BuildProblem
from gemmspec.version import __version__

_TEMPLATES = Path(__file__).parent / "c"
_BYTES_A_LINE = 24
_FLAGS = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
# Names that a function of a C file, or a C++ one that includes its header, cannot have, and those of `launcher.c`.
_TAKEN = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double
        else enum explicit export extern false float for friend goto if inline int long main mutable namespace new not
        nullptr operator or private protected public register restrict return short signed sizeof static static_assert
        struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using
        virtual void volatile while xor
        aligned driver encode failed find floor_div floor_mod image least load loaded lock message most no_driver
        open_driver opened
        """,
    )
)
_HELPERS = {
    "floor_div": "return a / b - (a % b != 0 && (a < 0) != (b < 0));",
    "floor_mod": "return (a % b + b) % b;",
    "least": "return a < b ? a : b;",
    "most": "return a > b ? a : b;",
}
_NARROW = {
    "bf16": "return (uint16_t)(bits >> 16);",
    "f16": "return (uint16_t)(number == 0 ? 0 : (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | "
    "(bits >> 13 & 0x3ff));",
}
_WIDE = {
    "bf16": "(uint32_t)number << 16",
    "f16": "number & 0x7fff ? (uint32_t)(number & 0x8000) << 16 | ((uint32_t)(number >> 10 & 31) + 112) << 23 | "
    "(uint32_t)(number & 0x3ff) << 13 : 0",
}


def write_c(manifest: made.Manifest | Manifest, cubin: bytes) -> dict[str, str]:
    """Return NAME.c, NAME.h and NAME_example.c. Raises `BuildProblem` where the name is one that C keeps."""
    if isinstance(manifest, made.Manifest):
        manifest = manifest_of(manifest.data, f"the manifest of `{manifest.name}`")
    name = manifest.name
    if name in _TAKEN or name.startswith("_") or not re.fullmatch("[A-Za-z0-9_]+", name):
        raise BuildProblem(f"`{name}` cannot be the name of a function in C: give the kernel another")
    words = {**_shared(manifest), **_launcher(manifest, cubin), **_example(manifest)}
    files = (("launcher.c", f"{name}.c"), ("launcher.h", f"{name}.h"), ("example.c", f"{name}_example.c"))
    return {to: Template((_TEMPLATES / of).read_text(encoding="utf-8")).substitute(words) for of, to in files}


def build_library(name: str, sources: Mapping[str, str]) -> bytes:
    """Return the shared library of `write_c`'s sources. Raises `BuildProblem`."""
    compiler = os.environ.get("CC") or next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise BuildProblem("there is no C compiler (cc, gcc, clang, or one that CC names)", missing_tool=True)
    with tempfile.TemporaryDirectory(prefix="gemmspec-") as folder:
        for file in (f"{name}.c", f"{name}.h"):
            Path(folder, file).write_text(sources[file], encoding="utf-8")
        command = [*compiler.split(), *_FLAGS, "-o", f"{name}.so", f"{name}.c", "-ldl", "-lpthread"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        except OSError as error:
            raise BuildProblem(f"{compiler} cannot be run ({error.strerror})", missing_tool=True) from error
        log = done.stdout + done.stderr
        if done.returncode:
            raise BuildProblem(f"{compiler} does not compile {name}.c", log)
        return Path(folder, f"{name}.so").read_bytes()


def _axes(manifest: Manifest) -> dict[str, str]:
    """Return what C calls the sizes: M, N, K, whatever the spec calls them."""
    return dict(zip(manifest.sizes, "MNK", strict=True))


def _shared(manifest: Manifest) -> dict[str, str]:
    axes = _axes(manifest)
    sizes = [f"{axes[n]} {'at run time' if s is None else f'= {s}'}" for n, s in manifest.sizes.items()]
    shapes = (f"{t.role}[{', '.join(axes.get(str(n), str(n)) for n in t.shape)}] {t.dtype}" for t in manifest.tensors)
    free = "".join(f", int {axes[n]}" for n, s in manifest.sizes.items() if s is None)
    return {
        "name": manifest.name,
        "version": __version__,
        "target": manifest.target,
        "summary": f"{manifest.name}: D = A @ B^T, {', '.join(sizes)}.",
        "shapes": ", ".join(shapes),
        "parameters": f"const void *A, const void *B, void *D{free}",
    }


def _launcher(manifest: Manifest, cubin: bytes) -> dict[str, str]:
    axes = _axes(manifest)
    text = [*_arguments(manifest)]
    grid = ", ".join(f"(unsigned)({c_text(n, axes)})" for n in manifest.grid)
    body = "\n".join(text) + grid
    helpers = [
        f"static int64_t {helper}(int64_t a, int64_t b) {{\n  {code}\n}}\n\n"
        for helper, code in _HELPERS.items()
        if f"{helper}(" in body
    ]
    chunks = (cubin[i : i + _BYTES_A_LINE] for i in range(0, len(cubin), _BYTES_A_LINE))
    return {
        "kernel": manifest.kernel,
        "shared_bytes": str(manifest.shared_bytes),
        "image": "\n".join(f"  {', '.join(map(str, chunk))}," for chunk in chunks),
        "helpers": "".join(helpers),
        "check_sizes": _check_sizes(manifest),
        "arguments": "\n".join(text),
        "places": ", ".join(f"&argument_{i}" for i in range(len(manifest.arguments))),
        "grid": grid,
        "block": ", ".join(map(str, manifest.block)),
        "attributes": ", ".join(_attributes(manifest)),
    }


def _attributes(manifest: Manifest) -> Iterator[str]:
    # C has no empty arrays; a cluster of one CTA is what a launch without the attribute is.
    x, y, z = manifest.cluster
    yield f"{{.id = CLUSTER_DIMENSION, .value.cluster = {{{x}, {y}, {z}}}}}"
    if manifest.programmatic:
        # The kernel itself waits for those before it, so it may be started before they are done.
        yield "{.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value.allowed = 1}"


def _check_sizes(manifest: Manifest) -> str:
    free = [c for c, size in zip("MNK", manifest.sizes.values(), strict=True) if size is None]
    lines: list[str] = []
    for size in free:
        least = 1 if size == "K" else 0
        lines += [
            f"  if ({size} < {least}) {{",
            f'    snprintf(message, sizeof message, "{size} is %d, and must be at least {least}", {size});',
            "    return INVALID_VALUE;",
            "  }",
        ]
    if empty := [f"!{size}" for size in free if size != "K"]:
        lines.append(f"  if ({' || '.join(empty)}) return 0;")
    return "".join(f"{line}\n" for line in lines)


def _arguments(manifest: Manifest) -> list[str]:
    axes = _axes(manifest)
    lines: list[str] = []
    for i, argument in enumerate(manifest.arguments):
        if not isinstance(argument, TensorMap):
            lines.append(f"  int32_t argument_{i} = (int32_t)({c_text(argument, axes)});")
            continue
        role = manifest.tensors[argument.tensor].role
        modes = (argument.interleave, argument.swizzle, argument.l2_promotion, argument.oob_fill)
        dims, strides = (
            ", ".join(f"(uint64_t)({c_text(n, axes)})" for n in numbers)
            for numbers in (argument.dims, argument.strides)
        )
        lines += [
            f"  TensorMap argument_{i};",
            f"  const uint64_t dims_{i}[] = {{{dims}}}, strides_{i}[] = {{{strides or '0'}}};",
            f"  const uint32_t box_{i}[] = {{{', '.join(map(str, argument.box))}}}, "
            f"steps_{i}[] = {{{', '.join(map(str, argument.element_strides))}}};",
            f"  const int modes_{i}[] = {{{', '.join(map(str, modes))}}};",
            f'  if ((error = encode(&argument_{i}, "{role}", {argument.dtype}, {len(argument.dims)}, '
            f"(const char *){role} + {argument.byte_offset},",
            f"                      dims_{i}, strides_{i}, box_{i}, steps_{i}, modes_{i})))",
            "    return error;",
        ]
    return lines


def _example(manifest: Manifest) -> dict[str, str]:
    sizes = dict(zip("MNK", manifest.sizes.values(), strict=True))
    free = [axis for axis, size in sizes.items() if size is None]
    places = {axis: f"count > {i} ? atol(words[{i}]) : 512" for i, axis in enumerate(free, start=1)}
    operand, result = manifest.tensors[0].dtype, manifest.tensors[2].dtype
    return {
        "usage": "".join(f" {axis}" for axis in free),
        "operand": operand,
        "narrow": _NARROW[operand],
        "wide": _WIDE[operand],
        "d_type": "float" if result == "f32" else "uint16_t",
        "read_d": "d[i]" if result == "f32" else "wide(d[i])",
        "sizes": "".join(f", (int){axis}" for axis in free),
        **{axis: places.get(axis, str(size)) for axis, size in sizes.items()},
    }
