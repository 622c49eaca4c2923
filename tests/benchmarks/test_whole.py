"""The end-to-end benchmark on an invented corpus: every system gives a row, and test is not
read unless it is asked for.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.benchmarks import whole

SMALL = (
    "model.backbone={name: tiny, hidden: 32, heads: 4}",
    "model.decoder={name: label-attention, heads: 4}",
)
SHORT = ("pretrain-attn.epochs=1", "finetune.epochs=1")
WORDS = ("fever", "cough", "fracture", "rash", "nausea", "anaemia", "migraine", "asthma")


def write_corpus(folder: Path) -> Path:
    """Documents whose labels are their words."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    for split, size in (("train", 60), ("validation", 12)):
        chosen = [
            [WORDS[i] for i in draw.choice(len(WORDS), size=2, replace=False)] for _ in range(size)
        ]
        texts = [
            f"seen today for {' and '.join(words)}, case {number}"
            for number, words in enumerate(chosen)
        ]
        ids = [f"{split}-{number}" for number in range(size)]
        pl.DataFrame(
            {"doc_id": ids, "text": texts, "labels": [sorted(c) for c in chosen]}
        ).write_parquet(folder / f"{split}.parquet")
    pl.read_parquet(folder / "validation.parquet").with_columns(
        doc_id="test-" + pl.col("doc_id")
    ).write_parquet(folder / "test.parquet")
    return folder


@pytest.mark.slow
def test_every_system_gives_a_row_on_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted: list[str] = []
    measure = whole.baselines.measure
    monkeypatch.setattr(
        whole.baselines,
        "measure",
        lambda path, gold, bins: (
            predicted.extend(pl.read_parquet(path)["doc_id"]) or measure(path, gold, bins)
        ),
    )
    report, table = tmp_path / "found.json", tmp_path / "table.json"
    given = [
        "--corpus",
        str(write_corpus(tmp_path / "data")),
        "--json",
        str(report),
        "--table",
        str(table),
        "--set",
        *SMALL,
        *SHORT,
    ]
    whole.main(given)
    found = json.loads(report.read_text())
    found["systems"] = found["corpora"]["data"]
    assert found["split"] == "validation"
    assert set(found["systems"]) == {
        name for name in whole.SYSTEMS if whole.find_missing(name) is None
    }
    assert {name.split("-")[0] for name in predicted} == {"validation"}
    for name, row in found["systems"].items():
        assert min(row["seconds"], row["cpu_seconds"], row["peak_gb"], row["disk_mb"]) > 0, name
        assert 0 <= row["P@5"] <= 100, name
    for tool in ("one-vs-rest", "neighbours"):
        assert found["systems"][tool]["P@1"] > 90, tool  # the label is a word of the text
    assert set(found["systems"]["plant"]["stages"]) == set(whole.STAGES)
    rows = json.loads(table.read_text())["rows"]
    assert [row[0] for row in rows] == ["data", *[""] * (len(found["systems"]) - 1)]
    assert {len(row) for row in rows} == {11}
    monkeypatch.setattr(whole, "measure_system", None)
    whole.main(given)  # nothing is measured again
    shown = capsys.readouterr().out
    assert "quality on validation" in shown
    assert "pretrain-attn" in shown
