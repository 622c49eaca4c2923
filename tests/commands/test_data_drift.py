"""`plant data drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import DataError, Request, Result, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage


def write(path: Path, rows: list[tuple[str, list[str]]]) -> Path:
    columns = {"text": [text for text, _ in rows], "labels": [labels for _, labels in rows], "split": ["train"] * len(rows)}
    pl.DataFrame(columns, schema_overrides={"labels": pl.List(pl.String), "text": pl.String, "split": pl.String}).write_parquet(path)
    return path


def drift(before: Path, after: Path, **data: Any) -> Result:
    flags = {"data drift": {"before": str(before), "after": str(after), "limit": 3}, "data": data}
    return run_stage(Request(registry=installed(), run_path=Path("nowhere"), flags=flags, reporter=SilentReporter()), "data drift")


def test_tables_name_labels_and_json_has_all_of_them(tmp_path: Path) -> None:
    before = write(tmp_path / "a.parquet", [(f"fever and cough {'x' * i}", ["R50"]) for i in range(1, 41)])
    after = write(tmp_path / "b.parquet", [(f"fever and covid {'y' * i}", ["U07"] if i % 2 else ["R50"]) for i in range(1, 41)])
    (tmp_path / "v.csv").write_text("label,title\nU07,Covid-19\nR50,Fever\n")
    result = drift(before, after, vocabulary=str(tmp_path / "v.csv"))
    titles = [table.title for table in result.tables]
    assert titles[0].endswith("b.parquet")
    assert "Labels that are assigned less often (1)" in titles
    assert "New labels (1)" in titles
    assert next(table for table in result.tables if table.title == "New labels (1)").rows == [("U07", "Covid-19", 0, 0.0, 20, 0.5)]
    assert result.data["unseen_share"] == 0.5
    assert {row["label"]: row["title"] for row in result.data["labels"]} == {"U07": "Covid-19", "R50": "Fever"}
    assert {"covid", "cough"} <= {row["word"] for row in result.data["words"]}


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    full = write(tmp_path / "a.parquet", [("fever", ["a"])])
    with pytest.raises(DataError, match="no documents"):
        drift(full, write(tmp_path / "b.parquet", []))
