"""Calls of torch operations: the counter counts, and a layer takes no more of them than it did."""

import json
from pathlib import Path

import pytest
import torch

from tests.benchmarks import calls

MOST = {"ours": 240, "ours, replayed": 0, "ours, reading": 84}
"""Calls of one layer, views included; plain transformers and peft in bf16: 340 and 110."""


def test_calls_and_views_are_counted_apart() -> None:
    numbers = torch.ones(2, 3)
    found, views = calls.count_calls(lambda: (numbers.t().mul(2), numbers.view(6).add_(1)))
    assert dict(found) == {"aten::mul": 1, "aten::add_": 1}
    assert dict(views) == {"aten::t": 1, "aten::view": 1}


@pytest.mark.parametrize("way", list(MOST))
def test_a_layer_takes_few_calls(way: str) -> None:
    one, two = (
        sum(found.total() for found in calls.count_way("smollm2", way, 2, layers))
        for layers in (1, 2)
    )
    assert 0 <= two - one <= MOST[way]


def test_the_command_prints_and_writes_each_shape_and_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LAYERS", dict.fromkeys(calls.LAYERS, 1))
    calls.main(
        ["--documents", "2", "--shape", "smollm2", "minilm", "--json", str(tmp_path / "calls.json")]
    )
    rows = json.loads((tmp_path / "calls.json").read_text())
    assert [(row["shape"], row["way"]) for row in rows] == [
        *(("smollm2", way) for way in calls.WAYS),
        ("minilm", "ours, reading"),
    ]
    assert all(row["calls"] > 0 and row["views"] > 0 for row in rows)
