"""Tests of selection: which kernel for which shape, by a table, by what is near, by the model; and the call itself."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gemmspec import runtime
from gemmspec.runtime import ArgumentProblem, Card, LoadProblem, TableProblem, select
from gemmspec.runtime.choice import distance, nearest
from gemmspec.runtime.estimate import cycles
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.selection import Selection
from gemmspec.runtime.table import Result, Setting, Table, as_json

sys.path.insert(0, str(Path(__file__).parent / "gpu"))

import stub_kernels as kernels

H200 = Card("NVIDIA H200", 132, (9, 0))
SETTING = Setting("NVIDIA H200", 132, 1980, "580.159.04", "torch 2.11.0, CUDA 13.0")
# Kernels of docs/performance.md: tiles of a cluster, rows of A and of B that a CTA loads, CTAs of a cluster.
TILES = {
    "n64": (128, 64, 128, 64, 1), "n64_cluster": (256, 64, 128, 32, 2), "n128": (128, 128, 128, 128, 1),
    "n128_cluster": (256, 128, 128, 64, 2), "n128_c1x2": (128, 256, 64, 128, 2), "n128_c2x2": (256, 256, 64, 64, 4),
    "n128_m64": (64, 128, 64, 128, 1), "n160": (128, 160, 128, 160, 1), "n192": (128, 192, 128, 192, 1),
    "n192_cluster": (256, 192, 128, 96, 2), "n224": (128, 224, 128, 224, 1), "n256": (128, 256, 128, 256, 1),
    "n256_cluster": (256, 256, 128, 128, 2),
}  # fmt: skip


def kernel(folder: Path, name: str, sizes: dict[str, int | None] | None = None, **changes: Any) -> Kernel:
    """A kernel of the stub, with the tile that its name has in TILES."""
    data = kernels.manifest(name, sizes)
    data["launch"]["grid"] = [132, 1, 1]
    if name in TILES:
        m, n, a, b, ctas = TILES[name]
        data["tile"] = {"m": m, "n": n, "k": 64, "a_rows": a, "b_rows": b}
        data["launch"]["cluster"] = [ctas, 1, 1]
    return runtime.load(kernels.write(folder, data | changes, kernels.CUBIN + name.encode()))


@pytest.fixture
def every(tmp_path: Path) -> dict[str, Kernel]:
    return {name: kernel(tmp_path, name) for name in TILES}


def result(of: Kernel, shape: tuple[int, int, int], ratio: float, at: str = "1", fault: str = "") -> Result:
    m, n, k = shape
    time = None if fault else 1 / ratio
    return Result(
        of.content, m, n, k, of.name, of.manifest.types, fault, None, 15, time, None if fault else ratio, time, time, at
    )


@pytest.mark.parametrize(
    ("shape", "good"),
    [
        # Those within 3% of the best that was measured on an H200: see docs/performance.md and docs/tuning.md.
        ((1024, 1024, 1024), {"n128_m64"}),
        ((1536, 1536, 4096), {"n160"}),
        ((3000, 5000, 4096), {"n160", "n192", "n192_cluster"}),
        ((4096, 4096, 4096), {"n128", "n128_cluster", "n128_c1x2", "n256", "n256_cluster"}),
        ((4000, 4104, 4072), {"n192_cluster", "n128_cluster"}),
        ((4096, 11008, 4096), {"n128", "n128_cluster", "n128_c1x2", "n160"}),
        ((512, 8192, 8192), {"n128", "n128_cluster", "n128_c1x2", "n256_cluster"}),
        ((8192, 8192, 8192), {"n256_cluster", "n128", "n128_cluster", "n192", "n192_cluster", "n224"}),
        ((128, 4096, 4096), {"n128_m64"}),
    ],
)
def test_the_model_s_pick_is_among_the_best_measured(
    every: dict[str, Kernel], shape: tuple[int, int, int], good: set[str]
) -> None:
    choice = select(every.values(), card=H200).choose(*shape)
    assert choice.kernel.name in good and choice.why.startswith("the fastest by the model: nothing near")


def test_the_model_knows_waves_rows_and_places(every: dict[str, Kernel]) -> None:
    def time(name: str, shape: tuple[int, int, int], sms: int = 132) -> float:
        return cycles(every[name].manifest, shape, sms)

    one, two = (time("n256", (128 * tiles, 256, 8192)) for tiles in (132, 133))
    assert two > 1.3 * one, "a tile more than multiprocessors is another wave"
    assert time("n64", (8192, 8192, 8200)) > 1.5 * time("n64", (8192, 8192, 8192)), "rows inside of lines load slowly"
    assert time("n128_c2x2", (8192, 8192, 8192)) > 1.6 * time("n128", (8192, 8192, 8192)), "33 clusters of 4 do not fit"
    assert time("n128", (8192, 8192, 8192), 66) > 1.8 * time("n128", (8192, 8192, 8192))
    assert time("n128", (0, 8, 8)) == time("n128", (1, 8, 8))


def test_what_was_measured_decides(every: dict[str, Kernel], tmp_path: Path) -> None:
    shape = (4096, 4096, 4096)
    rows = [(SETTING, result(every["n64"], shape, 0.9)), (SETTING, result(every["n224"], shape, 0.8))]
    choice = Selection(list(every.values()), rows, card_of=lambda device: H200).choose(*shape)
    assert (choice.kernel, choice.ratio) == (every["n64"], 0.9)
    assert choice.why == "the fastest of 2 that were measured at this shape"
    # Another card, another content: as if nothing was measured. The same card with another driver counts.
    for setting, changed, picks in [
        (Setting("NVIDIA H200", 114, 1980, "580.159.04", ""), False, False),
        (Setting("NVIDIA H100", 132, 1980, "580.159.04", ""), False, False),
        (Setting("NVIDIA H200", 132, 1500, "590", ""), False, True),
        (SETTING, True, False),
    ]:
        stale = kernels.CUBIN + b"n64" + b"changed" * changed
        other = Kernel(every["n64"].manifest, stale)
        selection = Selection(list(every.values()), [(setting, result(other, shape, 9.0))], card_of=lambda device: H200)
        assert (selection.choose(*shape).kernel is every["n64"]) == picks
    table = Table(tmp_path / "t.sqlite")
    table.write(SETTING, [row for _, row in rows])
    table.close()
    (tmp_path / "t.json").write_text(as_json(rows))
    for file in ("t.sqlite", "t.json"):
        assert select(tmp_path, tmp_path / file, card=H200).choose(*shape).kernel.name == "n64"


def test_times_of_two_settings_are_not_compared(every: dict[str, Kernel]) -> None:
    shape = (4096, 4096, 4096)
    other = Setting("NVIDIA H200", 132, 1980, "590", "torch 3")
    rows = [
        (SETTING, result(every["n64"], shape, 2.0, at="2026-01-01")),
        (other, result(every["n128"], shape, 0.9, at="2026-01-02")),
        (other, result(every["n160"], shape, 1.0, at="2026-01-02")),
    ]
    choice = Selection(list(every.values()), rows, card_of=lambda device: H200).choose(*shape)
    assert choice.kernel is every["n160"], "the newer setting, and the best in it"


def test_a_shape_nearby_corrects_the_model(every: dict[str, Kernel]) -> None:
    two = [every["n128"], every["n256"]]
    for fast, slow in (two, two[::-1]):
        rows = [(SETTING, result(fast, (4096, 4096, 4096), 1.1)), (SETTING, result(slow, (4096, 4096, 4096), 0.8))]
        selection = Selection(two, rows, card_of=lambda device: H200)
        near = selection.choose(4096, 4224, 4096)
        assert near.kernel is fast
        assert near.why == "the fastest by the model, as corrected by times at 4096 x 4096 x 4096"
        for far in ((4096, 4096, 4072), (512, 4096, 4096)):
            assert "by the model: nothing near" in selection.choose(*far).why
    # What was not measured there is neither better nor worse for it.
    alone = [(SETTING, result(every["n128"], (4096, 4096, 4096), 0.5))]
    with_it, without = (Selection(two, r, card_of=lambda device: H200).choose(4096, 4224, 4096) for r in (alone, []))
    assert with_it.kernel is without.kernel


def test_distance() -> None:
    assert distance((1024, 1024, 1024), (2048, 512, 1024)) == 2.0
    assert distance((8, 8, 64), (8, 8, 72)) == float("inf")
    assert nearest({(64, 64, 64): {}, (128, 128, 64): {}}, (120, 128, 64)) == (128, 128, 64)
    assert nearest({(64, 64, 64): {}}, (128, 128, 64)) is None and nearest({}, (8, 8, 8)) is None


def test_what_does_not_fit_is_never_picked(tmp_path: Path) -> None:
    fixed = kernel(tmp_path, "fixed", {"M": 4096, "N": 4096, "K": 4096})
    wrong = kernel(tmp_path, "wrong")
    other = kernel(tmp_path, "other", target="sm_100a")
    tensors = [{**t, "dtype": "bf16"} for t in kernels.manifest()["tensors"]]
    bf16 = kernel(tmp_path, "bf16", tensors=tensors)
    rows = [(SETTING, result(wrong, (8, 8, 8), 1.0, fault="relative error 5e-01"))]
    selection = Selection([fixed, wrong, other, bf16], rows, card_of=lambda device: H200)
    assert selection.choose(4096, 4096, 4096).why == "the only one that takes this shape"
    assert selection.choose(64, 64, 64, "bf16").kernel is bf16
    with pytest.raises(ArgumentProblem) as caught:
        selection.choose(64, 64, 64)
    assert str(caught.value).splitlines() == [
        "none of 4 kernels takes M = 64, N = 64, K = 64 of f16, f16, f16 on NVIDIA H200",
        "  `fixed`: M is fixed at 4096",
        "  `wrong`: at 8 x 8 x 8, relative error 5e-01",
        "  `other`: built for sm_100a, and NVIDIA H200 is of 9.0",
        "  `bf16`: of bf16, bf16, bf16",
    ]
    with pytest.raises(ArgumentProblem, match="`bf16`: a row of `A` is 72 bytes, and must be a multiple of 16"):
        selection.choose(64, 64, 36, "bf16")


def test_the_type_of_d(tmp_path: Path) -> None:
    of_f32 = [*kernels.manifest()["tensors"][:2], {**kernels.manifest()["tensors"][2], "dtype": "f32"}]
    half, single = kernel(tmp_path, "half"), kernel(tmp_path, "single", tensors=of_f32)
    both = select([half, single], card=H200)
    assert both.choose(64, 64, 64).kernel is half and both.choose(64, 64, 64, result="f32").kernel is single
    assert select(single, card=H200).choose(64, 64, 64).kernel is single


def test_an_older_manifest_is_the_last_choice(tmp_path: Path) -> None:
    known, old = kernel(tmp_path, "n64"), kernel(tmp_path, "a_old", tile=None)
    assert select([old, known], card=H200).choose(4096, 4096, 4096).kernel is known
    assert select([old], card=H200).choose(4096, 4096, 4096).kernel is old


def test_what_cannot_be_selected_from(tmp_path: Path) -> None:
    with pytest.raises(LoadProblem, match="there is no kernel in the folder"):
        select(tmp_path)
    with pytest.raises(LoadProblem, match="there are no kernels"):
        select([])
    one = kernel(tmp_path, "one")
    with pytest.raises(TableProblem, match="No such file"):
        select(tmp_path, tmp_path / "none.sqlite")
    assert select([tmp_path, one, tmp_path / "one.json"]).kernels[0].name == "one"
    assert repr(select(one)) == "<gemmspec selection of 1 kernels: one>"


class Tensor:
    """As much of a torch tensor as a selection looks at. `looks`: how often views were made of it."""

    looks = 0

    def __init__(self, rows: int, columns: int, dtype: str = "torch.float16") -> None:
        self.shape, self.dtype, self.is_cuda = (rows, columns), dtype, True

    def data_ptr(self) -> int:
        type(self).looks += 1
        return 4096

    def stride(self) -> tuple[int, int]:
        return self.shape[1], 1

    def get_device(self) -> int:
        return 0


def test_a_call_decides_once(every: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "torch", torch)
    called: list[tuple[str, Any, Any]] = []

    def launch(self: Kernel, A: Any, B: Any, D: Any = None, *, stream: Any = None) -> Any:
        called.append((self.name, D, stream))
        return D

    monkeypatch.setattr(Kernel, "__call__", launch)
    asked: list[int] = []
    selection = Selection(list(every.values()), card_of=lambda device: asked.append(device) or H200)  # type: ignore[func-returns-value]
    a, b, d = Tensor(1536, 4096), Tensor(1536, 4096), Tensor(1536, 1536)
    assert selection(a, b, d, stream=7) is d
    looks = Tensor.looks
    for _ in range(3):
        selection(a, b, d)
        selection(Tensor(1536, 4096), b, d)
    assert called == [("n160", d, 7)] + [("n160", d, None)] * 6
    assert (Tensor.looks, asked) == (looks, [0]), "looked up, and nothing asked"
    selection(Tensor(1024, 1024), Tensor(1024, 1024), Tensor(1024, 1024))
    assert called[-1][0] == "n128_m64"
    with pytest.raises(ArgumentProblem, match="`B` has 8 columns, and `A` has 4096 columns: both are K"):
        selection(a, Tensor(1536, 8), d)
    with pytest.raises(ArgumentProblem, match=r"`A` is of type builtins\.int"):
        selection(1, b, d)


def test_operators_are_those_of_the_selection(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    both = select([kernel(tmp_path, "n64"), kernel(tmp_path, "n128")], card=H200)
    alone = select(tmp_path / "n64", card=H200)
    assert both.ops is both.ops and both.ops is not alone.ops
    with FakeTensorMode():
        a, b = (torch.empty(rows, 64, dtype=torch.float16) for rows in (70, 40))
        d = both.ops.matmul(a, b)
        assert tuple(d.shape) == (70, 40) and d.dtype == torch.float16
        assert both.ops.matmul_into(a, b, d) is None
