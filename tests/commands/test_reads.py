"""How often each command reads the texts of a corpus."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest

from plant_cli.data.tables import collect
from tests.clinic import Clinic

READS = {
    "mig": {"train": 3, "validation": 1, "test": 1},
    "pretrain-attn": {"train": 1, "validation": 1},
    "finetune": {"train": 1, "validation": 1},
    "predict": {"test": 1},
    "eval": {},
}


def test_each_command_reads_texts_as_often_as_it_must(trained: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[str] = Counter()

    def count(frame: pl.LazyFrame, where: str, *given: Any) -> pl.DataFrame:
        found = collect(frame, where, *given)
        if "text" in found.columns and found.height:
            reads[where.split()[1]] += 1
        return found

    monkeypatch.setattr("plant_cli.data.documents.collect", count)
    found = {}
    for stage in READS:
        trained.run(stage)
        found[stage] = dict(reads)
        reads.clear()
    assert found == READS
