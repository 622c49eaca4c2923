"""Stage 1 as a stage: what it needs, leaves and tells."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from plant_cli.api import ArtefactError
from plant_cli.api.files import read_json


def test_it_leaves_attention_and_history_and_no_backbone(clinic: Any) -> None:
    clinic("mig")
    result = clinic("pretrain-attn", "pretrain-attn.epochs=2")
    folder = clinic.path / "pretrain-attn"
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in history] == [1, 2]
    assert all(0 < row["nDCG@1000"] <= 1 for row in history)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "model.json", "history.jsonl", "checkpoints", "stage.json"}
    assert read_json(folder / "model.json", "the model")["backbone_changed"] is False
    assert result.next_step == "plant finetune"
    assert result.summary["best_epoch"] in (1, 2)
    assert [column.name for column in result.tables[0].columns][2:4] == ["nDCG@1000", "in random order"]


def test_the_cut_of_its_measure_can_be_chosen(clinic: Any) -> None:
    clinic("mig")
    assert "nDCG@10" in clinic("pretrain-attn", "pretrain-attn.ndcg_k=10").summary


def test_it_needs_relevance(clinic: Any) -> None:
    with pytest.raises(ArtefactError, match="'mig' has not run") as caught:
        clinic("pretrain-attn")
    assert "plant mig" in caught.value.todo


def test_corrections_of_relevance_change_what_is_planted(clinic: Any) -> None:
    clinic("mig")
    clinic("pretrain-attn", tag="before")
    label = read_labels(clinic)[0]
    word = clinic("mig show", "mig show.label=" + label).tables[0].rows[0][0]
    clinic("mig edit", f"mig edit.label={label}", f"mig edit.deny=[{word}]")
    clinic("mig", force=True)
    assert clinic("mig show", f"mig show.label={label}", "mig show.limit=1000").tables[0].rows[-1][5] == "denied"
    clinic("pretrain-attn", tag="after")
    losses = [json.loads((clinic.path / f"pretrain-attn-{t}" / "history.jsonl").read_text())["loss"] for t in ("before", "after")]
    assert losses[0] != losses[1]


def read_labels(clinic: Any) -> list[str]:
    return pl.read_parquet(clinic.path / "mig" / "labels.parquet")["label"].to_list()
