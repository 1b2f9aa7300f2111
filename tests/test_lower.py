"""Lowering: golden modules, the tutorial's sequences, and properties of every module."""

from __future__ import annotations

import ast
import builtins
import keyword
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from kernels import KERNELS
from sequence_reader import sequence

from gemmspec.codegen import TirxModule, lower
from gemmspec.codegen.ranks import Ranks
from gemmspec.codegen.words import Names, both, product, span, total
from gemmspec.driver import check
from gemmspec.model.spec import Cluster
from gemmspec.protocol.program import Targets
from gemmspec.source import SourceFile, Span
from gemmspec.vocabulary import Group

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden" / "tirx"
SEQUENCES = ROOT / "tests" / "sequences"
SOURCE = ("v7", "v8", "v9")
SHIPPED = (*SOURCE, "hopper_n256_cluster_dynamic")
# A user's own settings may have lines of another length: ruff's own default, and ours.
WIDTHS = (88, 120)
SELECT = SimpleNamespace(Select=lambda condition, yes, no: yes if condition else no)


def lowered(text: str) -> TirxModule:
    checked = check(SourceFile("<test>", text))
    assert checked.protocol is not None, [d.message for d in checked.report.diagnostics]
    return lower(checked.protocol)


def shipped(name: str) -> TirxModule:
    return lowered((ROOT / "specs" / f"{name}.gemmspec").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SHIPPED)
def test_golden(name: str, update_golden: bool) -> None:
    module = shipped(name)
    path = GOLDEN / f"{module.name}.py"
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(module.source, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == module.source


def test_no_golden_without_its_spec() -> None:
    assert {p.stem for p in GOLDEN.glob("*.py")} == {shipped(name).name for name in SHIPPED}


@pytest.mark.parametrize("name", SOURCE)
def test_sequence_is_that_of_the_source_document(name: str) -> None:
    table = [line.partition("#")[0].rstrip() for line in (SEQUENCES / f"{name}.txt").read_text().splitlines()]
    ours = [_unmarked(line) for line in table if line and not line.startswith("-")]
    assert sequence(shipped(name).source, {"M": 4096, "N": 4096, "K": 4096}) == ours


def _unmarked(line: str) -> str:
    """Take the mark of a line off, which stands in the place of indentation."""
    if not line.startswith("+"):
        return line
    rest = line[1:]
    return rest[1:] if len(rest) - len(rest.lstrip()) == 1 else " " + rest


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the module of every kernel."""
    folder = tmp_path_factory.mktemp("modules")
    for name, text in KERNELS.items():
        (folder / f"{name.replace('-', '_')}.py").write_text(lowered(text).source, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "words",
    [*(["format", "--isolated", f"--line-length={width}", "--diff"] for width in WIDTHS), ["check"]],
    ids=lambda words: " ".join(words[:3]),
)
def test_modules_are_clean(words: list[str], modules: Path) -> None:
    options = ["--config", str(ROOT / "pyproject.toml")] if words == ["check"] else []
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run([ruff, *words, *options, modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", KERNELS)
def test_module_stands_alone(name: str) -> None:
    tree = ast.parse(lowered(KERNELS[name]).source)
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert all(m is not None and m.split(".")[0] == "tvm" for m in imported)


@pytest.mark.parametrize("name", SOURCE)
def test_module_is_short(name: str) -> None:
    assert shipped(name).source.count("\n") <= 200


@pytest.mark.parametrize("name", KERNELS)
def test_every_name_is_kept_from_the_spec(name: str) -> None:
    """What the generated text names by itself must be in the list that the spec's words avoid."""
    module = lowered(KERNELS[name])
    spec = check(SourceFile("", KERNELS[name])).spec
    assert spec is not None
    own = {n.id for n in ast.walk(ast.parse(module.source)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    from_spec = tuple(b.name for b in spec.barriers)
    from_spec += (*(size.name for size in spec.sizes), *spec.gemm.names)
    assert not {n for n in own if Names().take(n) == n and not n.startswith(from_spec)} - {"_"}


def test_awkward_names() -> None:
    """A spec may call its barriers what Python or the module already uses."""
    text = (ROOT / "specs" / "v9.gemmspec").read_text(encoding="utf-8")
    for old, new in zip(("tma2mma", "mma2tma", "mma2ld", "ld2mma"), ("ring", "T", "range", "lambda"), strict=True):
        text = text.replace(f"barrier {old}", f"barrier {new}")
    module = lowered(text.replace("kernel hgemm_v9", "kernel STAGES"))
    tree = ast.parse(module.source)
    assert module.name == "STAGES_"
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert {"ring_", "T_", "range_", "lambda_"} <= names
    assert not any(keyword.iskeyword(n) or hasattr(builtins, n) for n in names)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2), (1, 4), (4, 2), (2, 4), (8, 1)])
@pytest.mark.parametrize("group", Group)
def test_expressions_of_rank(m: int, n: int, group: Group) -> None:
    """Each mask, target and condition, evaluated at every rank, is what the Protocol says."""

    class OfCluster:
        cluster = Cluster(m, n, Span(0, 0))
        pair = 2 if m % 2 == 0 else 1

    masks = Targets.group(group, OfCluster.cluster, OfCluster.pair).masks
    ranks = Ranks(OfCluster)  # type: ignore[arg-type]
    for rank in range(m * n):
        names = {"T": SELECT, "cbx": rank, "CLUSTER_M": m, "cta_m": rank % m, "cta_n": rank // m}
        assert eval(ranks.mask(masks), names) == masks[rank]
        lowest = [(mask & -mask).bit_length() - 1 for mask in masks]
        assert eval(ranks.single(lowest), names) == lowest[rank]
        reached = [r for r in range(m * n) if masks[r] & 1]
        condition = ranks.where(reached)
        assert (condition is None or eval(condition, names)) == (rank in reached)


def test_expressions() -> None:
    assert total("a", "0", "b + c") == "a + b + c"
    assert total() == "0"
    assert product("a", "1", "b + c") == "a * (b + c)"
    assert product("a", "0") == "0"
    assert product("a * b", "c") == "a * b * c"
    assert total("a", "(b - 1)") == "a + b - 1"
    assert both("a == 1", None, "b") == "(a == 1) & (b)"
    assert both("(a) & (b & c)", "d") == "(a) & (b & c) & (d)"
    assert both("(a >> b) & 1 == 1", "d") == "((a >> b) & 1 == 1) & (d)"
    assert span("0", "N") == ":N"
    assert span("s", "N") == "s : s + N"
