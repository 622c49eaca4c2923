"""Stage 1 as a stage: what it needs, leaves and tells."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from plant_cli.api import ArtefactError, UsageError
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


def test_a_killed_process_loses_at_most_the_epoch_under_way(clinic: Any) -> None:
    """SIGKILL leaves no time to save: what counts is the last whole checkpoint, and the lock that the system releases."""
    sets = ["pretrain-attn.epochs=12", "pretrain-attn.patience=12", "machine.threads=1"]
    clinic("mig")
    clinic("pretrain-attn", *sets, tag="whole")
    given = [f"--set={value}" for value in (*clinic.sets, *sets)]
    command = [sys.executable, "-m", "plant_cli", "pretrain-attn", "--run", str(clinic.path), "-q", *given]
    folder = clinic.path / "pretrain-attn"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not list(folder.glob("checkpoints/step-*/DONE")):
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
    assert read_json(folder / "stage.json", "the record")["status"] == "running"
    with pytest.raises(UsageError, match="was interrupted") as caught:
        clinic("pretrain-attn", *sets)
    assert "--resume" in caught.value.todo
    clinic("pretrain-attn", *sets, resume=True)
    whole, resumed = (load_file(clinic.path / name / "model.safetensors") for name in ("pretrain-attn-whole", "pretrain-attn"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def read_labels(clinic: Any) -> list[str]:
    return pl.read_parquet(clinic.path / "mig" / "labels.parquet")["label"].to_list()
