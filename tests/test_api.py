"""The Python API: the same steps as the commands, with the same overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

import gemmspec
from gemmspec import cli, version
from gemmspec.api import SpecError
from gemmspec.diagnostics import SizeError
from gemmspec.files import FileProblem
from gemmspec.toolchain import assemble

ROOT = Path(__file__).parent.parent
V7, V9 = (ROOT / "specs" / f"{name}.gemmspec" for name in ("v7", "v9"))
needs_nvcc = pytest.mark.skipif(assemble.find_nvcc() is None, reason="no nvcc")


def test_api() -> None:
    spec = gemmspec.load(V9)
    assert gemmspec.check(spec).ok
    module = gemmspec.lower(spec, M=8192)
    assert module.sizes == {"M": 8192, "N": 4096, "K": 4096}
    assert "def hgemm_v9(M, N, K):" in module.source
    assert "tirx.device_entry" in str(module.prim_func) or "device_entry" in module.prim_func.script()
    assert gemmspec.load(str(V9)).text == gemmspec.load(V9.read_text(encoding="utf-8")).text
    with pytest.raises(AttributeError):
        _ = gemmspec.nothing  # type: ignore[attr-defined]


def test_api_refuses_a_spec_with_errors() -> None:
    spec = gemmspec.load(V9.read_text(encoding="utf-8").replace("stages   4", "stages   9"))
    with pytest.raises(SpecError, match="GS301") as caught:
        gemmspec.lower(spec)
    assert not caught.value.report.ok and str(caught.value) == str(caught.value.report)
    with pytest.raises(FileProblem, match="no such file"):
        gemmspec.load("nowhere.gemmspec")


def test_api_is_the_command_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same overrides, and a report that prints as `lint` does, fixes that take a proof to find included."""
    assert gemmspec.__version__ == version.__version__ and gemmspec.SpecError is SpecError
    path = tmp_path / "wrong.gemmspec"
    path.write_text(V9.read_text(encoding="utf-8").replace("arrivals 256", "arrivals 128"), encoding="utf-8")
    for target, size, words in [(None, 4096, []), ("sm_90a", 4097, ["--target", "sm_90a", "--size", "M=4097"])]:
        report = gemmspec.check(gemmspec.load(path), target=target, M=size)
        assert cli.gemmspec.main(["lint", str(path), *words, "--color", "never"], standalone_mode=False) == 1
        assert capsys.readouterr().out == f"{report}\n"
    assert ": proved for every K and any number of tiles: no deadlock" in str(gemmspec.check(gemmspec.load(V7)))
    hopper = gemmspec.load(ROOT / "specs" / "hopper_n256.gemmspec")
    with pytest.raises(SpecError):
        gemmspec.lower(hopper, target="sm_100a")
    with pytest.raises(ValueError, match="`sm_80` is none of the targets sm_100a, sm_90a"):
        gemmspec.check(hopper, target="sm_80")
    with pytest.raises(SizeError):
        gemmspec.check(hopper, Z=1)


@needs_nvcc
def test_api_builds(tmp_path: Path) -> None:
    made = gemmspec.build(gemmspec.load(V7), M=256)
    assert made.cubin is not None and made.cubin[:4] == b"\x7fELF"
    assert {p.suffix for p in made.write(tmp_path)} == {".py", ".cu", ".cubin", ".json"}
