"""A shortlist in stage 2: by default where labels are many, and told what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from clinic import Clinic

from plant_cli.api import UsageError
from plant_cli.runs.folder import VALIDATION
from plant_cli.training import stage2

NARROW = "finetune.shortlist={name: words, size: 4, frequent: 2}"


def history(trained: Clinic, stage: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (trained.path / stage / "history.jsonl").read_text().splitlines()]


def has_recall(trained: Clinic, stage: str) -> bool:
    return any(name.startswith("shortlist") for name in history(trained, stage)[-1])


def test_by_default_it_is_used_where_labels_are_many(trained: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.planted().run("finetune", "finetune.epochs=1")
    assert not has_recall(trained, "finetune")
    monkeypatch.setattr(stage2, "SHORTLIST_FROM", 12)
    trained.run("finetune", "finetune.epochs=1", tag="many")
    assert has_recall(trained, "finetune-many")
    trained.run("finetune", "finetune.epochs=1", "finetune.scorers=none", tag="alone")  # labels that are not proposed would learn little
    assert not has_recall(trained, "finetune-alone")
    trained.run("finetune", "finetune.epochs=1", "finetune.shortlist=none", tag="none")
    assert not has_recall(trained, "finetune-none")
    trained.run("finetune", "finetune.epochs=1", "finetune.loss=bce", tag="every")  # which looks at all labels
    assert not has_recall(trained, "finetune-every")


def test_epochs_are_judged_by_candidates_and_the_model_by_all_labels(trained: Clinic) -> None:
    """Two labels of each document are scored after an epoch; figures, threshold and kept predictions of the model are of all twelve."""
    narrow = "finetune.shortlist={name: words, size: 1, frequent: 1}"
    result = trained.planted().run("finetune", "finetune.epochs=1", "finetune.scorers=none", narrow)
    judged = [row["MAP"] for row in history(trained, "finetune")]
    assert all(abs(result.summary["MAP"] - value) > 1e-3 for value in judged)
    assert result.summary["shortlist recall@4"] <= 0.5
    kept = pl.read_parquet(trained.path / "finetune" / VALIDATION)
    assert kept["scores"].list.min().min() > 0
    assert kept["labels"].list.len().unique().to_list() == [12]


def test_it_is_refused_where_every_label_counts(trained: Clinic) -> None:
    with pytest.raises(UsageError, match="of no use"):
        trained.planted().run("finetune", "finetune.loss={name: bce}", NARROW)
    trained.run("finetune", "finetune.loss={name: bce}", "finetune.epochs=1", "finetune.shortlist=none")
