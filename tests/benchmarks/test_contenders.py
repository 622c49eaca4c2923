"""The benchmarks of the numerics run at a tiny size and write the agreed keys."""

import argparse
import json
import math
from pathlib import Path

import pytest
import torch
from plant_network.throughput import MATRIX_SIDE

from tests.benchmarks import attention, ranking, tiles, training
from tests.benchmarks.contenders import measure
from tests.benchmarks.machine import COPIED, rates

SIZES = {"labels": 12, "documents": 2, "positions": 6, "hidden": 8, "heads": 2}


def test_measures_time_and_added_memory() -> None:
    kept: list[bytes] = []
    figures = measure(lambda: kept.append(bytes(1)), repeats=2)
    assert len(kept) == 3  # one to warm up
    assert set(figures) == {"seconds", "cpu_seconds", "peak_gb"}
    assert all(value >= 0 and math.isfinite(value) for value in figures.values())


def test_shares_are_of_what_the_machine_reached_in_the_same_run() -> None:
    figures = {"ours": {"seconds": 2.0}, "matrix": {"seconds": 1.0}, "copy": {"seconds": 4.0}}
    found = rates(
        figures, {"operations": 2.0 * MATRIX_SIDE["cpu"] ** 3, "bytes": COPIED["cpu"]}, "cpu"
    )
    assert found["operations_share"] == 0.5  # the same work in twice the time
    assert found["bytes_share"] == 1.0  # a copy reads and writes: half the bytes in half the time
    assert found["bytes_per_second"] == COPIED["cpu"] / 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
@pytest.mark.parametrize("measured", [attention, ranking])
def test_without_a_graphics_card_it_says_so(measured) -> None:
    with pytest.raises(
        SystemExit, match="no graphics card that torch can use, so nothing was measured"
    ):
        measured.main(["--device", "cuda"])


@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
def test_forms_and_tiles_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a card, but by Triton's interpreter and at a tiny size; where one form fails, the
    others are still measured.
    """
    from plant_decoders import attention_kernels

    given = argparse.Namespace(**SIZES, dtype="float32", device="cpu")
    monkeypatch.setattr(attention_kernels, "FUSED_TYPES", {torch.float32})
    monkeypatch.setattr(tiles, "SHAPES", {"hidden 8, 2 heads": (8, 2)})
    monkeypatch.setattr(tiles, "MATRIX_SIDE", {"cpu": 16})
    monkeypatch.setattr(tiles, "BLOCKS", {"LABELS_WALKED": [128], "SCORES_HELD": [1, 100]})
    monkeypatch.setattr(tiles, "plain", lambda *given, **heads: 1 / 0)
    monkeypatch.setattr(tiles.plain, "__name__", "plain")
    figures = tiles.compare(given, {"decoder": attention.ours})  # which has 8 heads
    assert figures.keys() == {
        "rate",
        *(f"hidden 8, 2 heads, {name}" for name in ("products", "fused", "library")),
    }
    assert {"forward", "all", "selected", "wanted", "share"} == figures[
        "hidden 8, 2 heads, fused"
    ].keys()
    assert "plain: ZeroDivisionError" in capsys.readouterr().out
    found = tiles.sweep(given)
    assert {name: len(sizes) for name, sizes in found.items()} == {
        **{f"hidden 8, 2 heads, {name}": len(sizes) for name, sizes in tiles.PASSES.items()},
        "hidden 8, 2 heads, LABELS_WALKED": 1,
        "hidden 8, 2 heads, SCORES_HELD": 2,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measured", "sizes", "others"),
    [
        (attention, SIZES, ["reference", "peer", "bound", "selected"]),
        (ranking, {"items": 5, "lists": 3}, ["reference", "bound"]),
        (training, {**SIZES, "labels": 200}, ["reference", "peer", "bound", "shortlist"]),
    ],
    ids=["attention", "ranking", "training"],
)
def test_writes_the_agreed_keys(
    measured, sizes: dict[str, int], others: list[str], tmp_path: Path
) -> None:
    given = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    measured.main([*given, "--repeats", "1", "--json", str(tmp_path / "figures.json")])
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {"seconds", "peak_gb", "machine", *(f"{name}_seconds" for name in others)} <= set(
        figures
    )
    assert figures["sizes"].items() >= sizes.items()
