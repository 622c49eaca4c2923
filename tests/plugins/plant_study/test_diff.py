"""`plant diff` through the runner, on two systems of which one is wrong in every second
document.
"""

import json

import polars as pl
import pytest

from plant_cli.api import DataError, RecipeError


def test_where_harm_is(played, tmp_path):
    result = played("diff", systems=["finetune", "baseline"], k=1)
    content = json.loads((tmp_path / "run" / "diff" / "diff.json").read_text())
    assert content == result.data
    assert content["documents"] == {"worse": 12, "better": 0, "as_many_errors": 0, "unchanged": 12}
    assert content["errors"] == {"a": 24, "b": 48}  # one of two labels is missed in any case
    titles = [table.title for table in result.tables]
    assert titles[:2] == ["From A finetune to B baseline", "Documents that lose most"]
    assert "Documents that gain most" not in titles
    assert len(result.tables[1].rows) == 10
    assert (
        result.tables[0].notes[0]
        == "errors (wrong and missed labels) on 24 documents of test: A 24, B 48"
    )
    documents = pl.read_parquet(tmp_path / "run" / "diff" / "documents.parquet")
    labels = pl.read_csv(tmp_path / "run" / "diff" / "labels.tsv", separator="\t")
    assert documents["harm"].sum() == labels["harm"].sum() == 24


def test_gains_are_shown_too(played):
    result = played("diff", systems=["baseline", "finetune"], limit=3)
    found = {table.title: table for table in result.tables}
    assert len(found["Documents that gain most"].rows) == 3
    assert "Documents that lose most" not in found


def test_nothing_changed(played):
    result = played("diff", systems=["finetune", "finetune"])
    assert [row[1] for row in result.tables[0].rows] == [0, 0, 0, 24]
    assert len(result.tables) == 1


def test_bad_input(played, tmp_path):
    with pytest.raises(RecipeError):
        played("diff", systems=["finetune"])
    other = tmp_path / "other.parquet"
    pl.DataFrame({"doc_id": ["x"], "labels": [["label 0"]], "scores": [[0.5]]}).write_parquet(other)
    with pytest.raises(DataError, match="without predictions"):
        played("diff", systems=["finetune", str(other)])
