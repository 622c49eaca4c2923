"""Both stages on small language models of random weights: the command runs, and the real sizes
are the published ones.
"""

import argparse
import json
import math
from pathlib import Path

import pytest
import torch
from plant_backbones.profile import CausalOptions
from plant_network.hardware import Hardware

from tests.benchmarks import backbones
from tests.benchmarks.random_models import (
    SIZES,
    TARGETS,
    configuration,
    empty_network,
    random_network,
)

PARTS = ("", "reference_", "reading_", "planting_")
KEYS = ("seconds", "documents_per_second", "tokens_per_second", "peak_gb", "share")


@pytest.mark.parametrize(
    "family",
    [
        "phi3",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("mistral", "llama3", "deepseek")),
    ],
)
def test_the_command_runs_and_writes_the_agreed_keys(family: str, tmp_path: Path) -> None:
    backbones.main(
        [
            "--scale",
            "small",
            "--family",
            family,
            "--repeats",
            "1",
            "--json",
            str(tmp_path / "figures.json"),
        ]
    )
    written = json.loads((tmp_path / "figures.json").read_text())
    (case,) = written["cases"]
    assert (case["family"], case["positions"], written["sizes"]["labels"]) == (family, 32, 40)
    assert {
        "machine",
        "bound_seconds",
        *(part + key for part in PARTS for key in KEYS),
    } <= case.keys()
    assert all(
        math.isfinite(case[part + key]) and case[part + key] > 0 for part in PARTS for key in KEYS
    )
    assert 0 < case["bound_seconds"] < case["seconds"]
    assert case["tokens_per_second"] / case["documents_per_second"] == pytest.approx((16 + 31) / 2)


@pytest.mark.parametrize(
    ("family", "billions"),
    [("mistral", 7.11), ("llama3", 7.50), ("deepseek", 7.07), ("phi3", 3.72), ("smollm2", 0.1345)],
)
def test_the_real_sizes_are_the_published_ones(family: str, billions: float) -> None:
    network, _ = empty_network(configuration(family, small=False), CausalOptions(model=family))
    assert {p.device.type for p in network.parameters()} == {"meta"}, (
        "nothing is held before it is quantised"
    )
    assert sum(p.numel() for p in network.parameters()) / 1e9 == pytest.approx(
        billions, rel=0.002
    )  # without the language-model head


def test_random_weights_are_in_four_bits_as_loaded_ones_are() -> None:
    network = random_network(
        configuration("mistral", small=True), CausalOptions(model="mistral"), torch.device("cpu")
    )
    quantised = [part for part in network.modules() if type(part).__name__ == "Linear4bit"]
    assert len(quantised) == 2 * 7
    assert all(
        part.weight.dtype == torch.uint8 and part.weight.quant_state.nested for part in quantised
    )
    assert network.embed_tokens.weight.dtype == torch.bfloat16
    assert bool((network.norm.weight == 1).all())


def test_products_are_counted_with_those_of_four_bit_weights_and_adapters() -> None:
    hardware = Hardware(device=torch.device("cpu"), dtype=torch.float32)
    case = backbones.draw_case(
        "mistral", 32, argparse.Namespace(scale="small", labels=40, documents=2), hardware
    )
    maps = (
        2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
    )  # q and o, k and v (two heads), the gated feed-forward part
    adapters = 16 * (2 * (64 + 64) + 2 * (64 + 32))
    attention = (
        2 * 4 * 32 * 16 * 2
    )  # a place with 32 places, queries with keys and weights with values; not counted everywhere
    places, layers = 2 * 32, 2
    least = 2 * places * layers * (maps + adapters)
    assert (
        least
        <= backbones.count_products(backbones.reading(case))
        <= least + 2 * places * layers * attention
    )


def test_without_a_gpu_the_real_sizes_are_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SystemExit, match="no device 'cuda' here") as caught:
        backbones.main(["--family", "phi3"])
    assert "what to do" in str(caught.value)


def test_every_family_has_a_size() -> None:
    assert SIZES.keys() == TARGETS.keys()
