"""What writers of formats share."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.formats.writing import Output

from plant_cli.api import DataError, Dataset


def output(folder: Path, tabs: bool = True) -> Output:
    frame = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["a\nb", "c\td"], "labels": [["y", "x y"], ["x y"]]})
    titles = pl.LazyFrame({"label": ["y", "z"], "title": ["Why", None]})
    return Output(Dataset(splits={"train": frame}, labels=titles), folder, "", tabs=tabs)


def test_labels_of_documents_and_of_the_table_are_numbered_in_sorted_order(tmp_path: Path) -> None:
    assert output(tmp_path).number_labels() == {"x y": 0, "y": 1, "z": 2}
    assert (tmp_path / "labels.tsv").read_text() == "label\ttitle\nx y\t\ny\tWhy\nz\t\n"
    assert list(output(tmp_path).titles()) == ["x y", "Why", "z"]


@pytest.mark.parametrize(("tabs", "texts", "count"), [(True, ["a b", "c\td"], 1), (False, ["a b", "c d"], 2)])
def test_breaks_are_counted(tmp_path: Path, tabs: bool, texts: list[str], count: int) -> None:
    out = output(tmp_path, tabs)
    assert [text for _, text, _ in out.rows("train")] == texts
    list(out.rows("train"))  # a second reading counts no document twice
    assert f"of {count} texts became blanks" in out.remarks("ids")[0]
    assert out.remarks("ids")[1] == "this format does not hold ids"


def test_labels_that_the_format_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 labels cannot be written in this format, such as 'x y'"):
        output(tmp_path).refuse_signs(" ", "the labels")
