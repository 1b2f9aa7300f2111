"""Protocol -> TIRx module -> PrimFunc, read back -> CUDA text -> cubin: what a build makes, whole or not at all."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from gemmspec.audit import Difference, audit
from gemmspec.codegen import TirxModule, lower
from gemmspec.model.spec import Spec
from gemmspec.protocol.program import Protocol
from gemmspec.protocol.tile import Tiling
from gemmspec.runtime.manifest import Tile
from gemmspec.source import SourceFile
from gemmspec.toolchain.assemble import NO_ASSEMBLER, Cubin, assemble
from gemmspec.toolchain.host import launch_of
from gemmspec.toolchain.manifest import Manifest, Tensor
from gemmspec.toolchain.output import write_together
from gemmspec.toolchain.problem import BuildProblem
from gemmspec.toolchain.start import light_frames
from gemmspec.toolchain.tvm_kernel import lowered, prim_func
from gemmspec.toolchain.waits import bounded, table
from gemmspec.version import __version__

_ONE_OF_MANY = re.compile(r"\b(warp|warpgroup|CTA) \d+")
"""The places at which one fault shows again and again."""
_MOST_LINES = 8


class Emit(Enum):
    """What to make."""

    TIRX = "tirx"
    CUDA = "cuda"
    CUBIN = "cubin"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A built kernel. `cuda`, `cubin`, `manifest` are None where they were not asked for or cannot be made.

    `note`: why there is no cubin, where one was asked for. `log`: what the assembler said.
    """

    name: str
    tirx: str
    cuda: str | None = None
    cubin: bytes | None = None
    manifest: Manifest | None = None
    note: str = ""
    log: str = ""

    def files(self) -> dict[str, str | bytes]:
        """Return the contents of the files that make it up, by name."""
        found: dict[str, str | bytes] = {f"{self.name}.py": self.tirx}
        if self.cuda is not None:
            found[f"{self.name}.cu"] = self.cuda
        if self.cubin is not None:
            found[f"{self.name}.cubin"] = self.cubin
        if self.manifest is not None:
            found[f"{self.name}.json"] = self.manifest.text
        return found

    def stamped(self, words: str) -> Artifact:
        """Return the same kernel with a first line of comment in each of its texts."""
        cuda = f"// {words}\n{self.cuda}" if self.cuda is not None else None
        return replace(self, tirx=f"# {words}\n{self.tirx}", cuda=cuda)

    def write(self, folder: str | Path) -> tuple[Path, ...]:
        """Write all files into a folder, or none; return their paths."""
        return write_together(Path(folder), self.files())


class NotAsProved(BuildProblem):
    """The kernel does not do what its Protocol says: a bug in gemmspec, found before it could do harm."""


def build(
    protocol: Protocol,
    spec_text: str,
    emit: Collection[Emit] = tuple(Emit),
    *,
    debug_waits: float | None = None,
    spec_name: str = "<text>",
) -> Artifact:
    """Return the kernel of a Protocol. Raises `BuildProblem` where something stands in the way.

    `debug_waits`: the seconds after which a wait gives up, for a debug build, which calls the spec `spec_name`.
    """
    source = SourceFile(spec_name, spec_text)
    waits = None if debug_waits is None else bounded(protocol, source, debug_waits)
    module = lower(protocol, waits)
    spec = protocol.spec
    name = module.name
    with tempfile.TemporaryDirectory(prefix="gemmspec-") as folder:
        path = Path(folder, f"{name}.py")
        path.write_text(module.source, encoding="utf-8")
        with light_frames():
            function = prim_func(path, name, sizes_of(spec, module))
        differences = audit(function, protocol, waits)
        if differences:
            raise NotAsProved(_differences(name, differences))
        if not {Emit.CUDA, Emit.CUBIN} & set(emit):
            return Artifact(name, module.source)
        with light_frames():  # the lowering of copies and multiplies parses helpers, too
            low = lowered(function, name, spec.target.name, path)
    launch = launch_of(low.host, module.tensors)
    cubin: Cubin | None = None
    if Emit.CUBIN in emit:
        cubin = assemble(low.cuda, launch.kernel, spec.target.name)
    manifest = Manifest(
        name=name,
        target=spec.target.name,
        gemmspec=__version__,
        tvm=low.tvm,
        spec_sha256=hashlib.sha256(source.text.encode()).hexdigest(),
        sizes=dict(zip(module.axes, (s.fixed for s in spec.sizes), strict=True)),
        tensors=_tensors(spec, module),
        launch=launch,
        tile=_tile(spec),
        assembled=cubin.report if cubin is not None else None,
        waits=table(waits, source) if waits is not None else None,
    )
    return Artifact(
        name=name,
        tirx=module.source,
        cuda=low.cuda
        if waits is None
        else f"// A debug build: each wait gives up after {waits.seconds:g} s.\n{low.cuda}",
        cubin=cubin.image if cubin is not None else None,
        manifest=manifest,
        note=NO_ASSEMBLER if Emit.CUBIN in emit and cubin is None else "",
        log=cubin.log if cubin is not None else "",
    )


def sizes_of(spec: Spec, module: TirxModule) -> tuple[int, ...]:
    """Return the sizes that the module's function takes."""
    return tuple(s.low for s, axis in zip(spec.sizes, module.axes, strict=True) if axis in module.sizes)


def _tensors(spec: Spec, module: TirxModule) -> tuple[Tensor, ...]:
    pairs = zip(spec.sizes, module.axes, strict=True)
    m, n, k = (axis if size.fixed is None else size.fixed for size, axis in pairs)
    a, b, d = module.tensors
    gemm = spec.gemm
    return (
        Tensor(name=a, role="A", shape=(m, k), dtype=gemm.a.value.value),
        Tensor(name=b, role="B", shape=(n, k), dtype=gemm.b.value.value),
        Tensor(name=d, role="D", shape=(m, n), dtype=gemm.d.value.value),
    )


def _tile(spec: Spec) -> Tile:
    tiling = Tiling.of(spec)
    return Tile(
        m=tiling.tile_m,
        n=tiling.tile_n,
        k=tiling.block_k,
        a_rows=tiling.consumers * tiling.block_m // tiling.a_parts,
        b_rows=tiling.block_n // tiling.b_parts,
    )


def _differences(name: str, differences: Sequence[Difference]) -> str:
    """Return what to say: pairs that differ in the warp or the CTA alone are told once."""
    pairs: dict[tuple[str, str], list[Difference]] = {}
    for d in differences:
        key = _ONE_OF_MANY.sub(r"\1", d.where), _ONE_OF_MANY.sub(r"\1", f"{d.expected}\n{d.found}")
        pairs.setdefault(key, []).append(d)
    alike = list(pairs.values())
    lines = [f"{same[0]}" + (f" (and so at {len(same) - 1} more)" if same[1:] else "") for same in alike[:_MOST_LINES]]
    more = len(differences) - sum(len(same) for same in alike[:_MOST_LINES])
    listed = "".join(f"\n  {text}" for text in (*lines, *([f"and {more} more"] if more else [])))
    return f"the kernel made for `{name}` is not what was proved, which is a bug in gemmspec:{listed}"
