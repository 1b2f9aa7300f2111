"""The Python API: four functions, each one step further than the one before.

    spec = gemmspec.load("v9.gemmspec")       # or the text itself
    report = gemmspec.check(spec, M=8192)     # what is wrong with it; print(report) shows what `lint` does
    module = gemmspec.lower(spec, M=8192)     # TIRx source text, and .prim_func
    artifact = gemmspec.build(spec, M=8192)   # CUDA text, cubin, manifest; .write(folder)

Sizes given by name, and `target="sm_90a"`, take the place of those in the spec. `lower` and `build` raise `SpecError`
for a spec with errors; all raise `SizeError` for a size that the spec cannot take, and `ValueError` for no target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmspec import diagnostics, driver
from gemmspec.files import FileProblem, read_bytes
from gemmspec.protocol.program import Protocol
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import decode
from gemmspec.targets import TARGETS, Target

if TYPE_CHECKING:
    from gemmspec.toolchain import Artifact


class Report(diagnostics.Report):
    """All that was found in one source; as text, what `gemmspec lint` prints."""

    def __str__(self) -> str:
        from gemmspec.report import text

        return text.render([self]).rstrip("\n")


class SpecError(Exception):
    """A spec has errors; `report` holds them, and the text shows them."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass(frozen=True)
class TirxModule:
    """A generated module. `source` is its text; `prim_func` imports that text with TVM, once."""

    name: str
    source: str
    sizes: dict[str, int]
    """The arguments of its function."""

    @cached_property
    def prim_func(self) -> Any:
        """The PrimFunc for the sizes."""
        import tempfile

        from gemmspec.toolchain.tvm_kernel import prim_func

        with tempfile.TemporaryDirectory(prefix="gemmspec-") as folder:
            path = Path(folder, f"{self.name}.py")
            path.write_text(self.source, encoding="utf-8")
            return prim_func(path, self.name, tuple(self.sizes.values()))


def load(path_or_text: str | Path) -> SourceFile:
    """Return a spec from a file, or from its text where a string has more than one line."""
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return SourceFile("<text>", path_or_text)
    source, problems = decode(str(path_or_text), read_bytes(str(path_or_text)))
    for problem in problems:
        raise FileProblem(f"cannot read {path_or_text}: {problem.message}")
    return source


def check(spec: SourceFile, *, target: str | None = None, advice: bool = False, **sizes: int) -> Report:
    """Return all that is wrong with a spec; with `advice`, what could be better where nothing is wrong, too."""
    other = _target(target)
    return _report(driver.check(spec, sizes, other, advice=advice), sizes, other)


def lower(spec: SourceFile, *, target: str | None = None, **sizes: int) -> TirxModule:
    """Return the TIRx module of a spec."""
    from gemmspec.codegen import lower

    protocol = _sound(spec, sizes, target)
    module = lower(protocol)
    pairs = zip(module.axes, protocol.spec.sizes, strict=True)
    return TirxModule(module.name, module.source, {axis: s.low for axis, s in pairs if axis in module.sizes})


def build(spec: SourceFile, *, target: str | None = None, debug_waits: float | None = None, **sizes: int) -> Artifact:
    """Return the built kernel of a spec: lowered by TVM, read back, assembled where there is an assembler.

    `debug_waits`: for a debug build, the seconds after which a wait gives up. Raises
    `gemmspec.toolchain.BuildProblem` where a tool stands in the way.
    """
    from gemmspec.toolchain import build

    return build(_sound(spec, sizes, target), spec.text, debug_waits=debug_waits, spec_name=spec.name)


def _sound(spec: SourceFile, sizes: dict[str, int], target: str | None) -> Protocol:
    other = _target(target)
    checked = driver.check(spec, sizes, other)
    if checked.protocol is None or not checked.report.ok:
        raise SpecError(_report(checked, sizes, other))
    return checked.protocol


def _report(checked: driver.Checked, sizes: dict[str, int], target: Target | None) -> Report:
    """Return what was found, with the fixes that take a proof to find."""
    found = checked.report
    if found.diagnostics:
        from gemmspec.mend import with_fixes

        found = with_fixes(checked, lambda source: driver.check(source, sizes, target))
    return Report(found.source, found.diagnostics, found.proved)


def _target(name: str | None) -> Target | None:
    if name is not None and name not in TARGETS:
        raise ValueError(f"`{name}` is none of the targets {', '.join(TARGETS)}")
    return TARGETS[name] if name is not None else None
