"""The read-back audit: silent on what the generator makes, and sees every way in which that is tampered with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from audit_specs import ALIKE, V8, V9
from tampers import TAMPERS

from gemmspec.audit import Difference, audit
from gemmspec.audit.cases import tile_at
from gemmspec.codegen import TirxModule, lower
from gemmspec.driver import check
from gemmspec.protocol import Protocol
from gemmspec.protocol.schedule import tile_order
from gemmspec.source import SourceFile
from gemmspec.toolchain.start import light_frames
from gemmspec.toolchain.tvm_kernel import prim_func


@cache
def generated(text: str) -> tuple[Protocol, TirxModule, tuple[int, ...]]:
    """Return a spec's Protocol and module, and the sizes that the module is called with."""
    checked = check(SourceFile("a", text))
    assert checked.protocol is not None and checked.spec is not None, checked.report.diagnostics
    module = lower(checked.protocol)
    sizes = {s.name: s.low for s in checked.spec.sizes}
    return checked.protocol, module, tuple(sizes[name] for name in module.sizes)


def function(text: str, source: str, folder: Path) -> Any:
    """Return the PrimFunc of a spec's module whose text is now `source`."""
    _, module, sizes = generated(text)
    path = folder / f"{module.name}.py"
    path.write_text(source)
    with light_frames():
        return prim_func(path, module.name, sizes)


@pytest.mark.parametrize("name", ALIKE)
def test_a_generated_kernel_is_what_the_protocol_says(name: str, tmp_path: Path) -> None:
    protocol, module, _ = generated(ALIKE[name])
    assert audit(function(ALIKE[name], module.source, tmp_path), protocol) == ()


@pytest.mark.parametrize("name", TAMPERS)
def test_a_tampered_kernel_is_seen(name: str, tmp_path: Path) -> None:
    tamper = TAMPERS[name]
    protocol, module, _ = generated(tamper.spec)
    head, found, tail = (module.source.rpartition if tamper.last else module.source.partition)(tamper.old)
    assert found, "the module has no such text"
    differences = audit(function(tamper.spec, head + tamper.new + tail, tmp_path), protocol)
    matching = [d for d in differences if tamper.where in d.where and all(text in str(d) for text in tamper.says)]
    assert matching, [str(d) for d in differences]


def test_a_difference_names_the_words_of_the_spec(tmp_path: Path) -> None:
    protocol, module, _ = generated(V9)
    source = module.source.replace(TAMPERS["a wait is dropped"].old, "")
    (difference,) = audit(function(V9, source, tmp_path), protocol)
    assert isinstance(difference, Difference) and difference.span is not None
    assert "mma2tma" in SourceFile("a", V9).snippet(difference.span)


def test_a_kernel_of_another_spec_differs(tmp_path: Path) -> None:
    protocol, _, _ = generated(V8)
    assert audit(function(V9, generated(V9)[1].source, tmp_path), protocol)


@pytest.mark.parametrize(
    "m_tiles, n_tiles, group", [(8, 16, 8), (17, 9, 8), (5, 3, 4), (3, 7, 8), (1, 1, 1), (9, 2, 4)]
)
def test_a_tile_is_that_of_the_order(m_tiles: int, n_tiles: int, group: int) -> None:
    tiles = tuple(tile_at(i, m_tiles, n_tiles, group) for i in range(m_tiles * n_tiles))
    assert tiles == tile_order(m_tiles, n_tiles, group)
