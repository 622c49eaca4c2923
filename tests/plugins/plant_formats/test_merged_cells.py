"""Tables from sheets whose cells are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataSection, Dataset, SilentReporter
from plant_cli.data.loading import load_dataset
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context


def read(path: Path) -> tuple[dict[str, list[str]], Dataset]:
    context = make_context(components=installed(), reporter=SilentReporter())
    dataset = load_dataset(context, DataSection(path=str(path)))
    rows = [
        row for frame in dataset.splits.values() for row in frame.collect().iter_rows(named=True)
    ]
    return {row["text"]: row["labels"] for row in rows}, dataset


def write(path: Path, *lines: str) -> Path:
    path.write_text("id,text,label\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("repeated", [False, True])
def test_a_text_stands_for_the_rows_below_that_have_none(tmp_path: Path, repeated: bool) -> None:
    documents = [f"{row},text {row},a{row % 3}" for row in range(20)]
    ids = range(20) if repeated else [""] * 20
    merged = [
        line
        for row, document in zip(ids, documents, strict=True)
        for line in (document, f"{row},,b", f"{row}, ,c")
    ]
    found, dataset = read(write(tmp_path / "sheet.csv", *merged))
    assert {text: sorted(labels) for text, labels in found.items()} == {
        f"text {row}": [f"a{row % 3}", "b", "c"] for row in range(20)
    }
    assert any("40 rows have a label and no text" in one for one in dataset.remarks)


@pytest.mark.parametrize(
    "further",
    [
        [",,b"],  # one row among many has lost its text
        [f"{row},,b" for row in range(20, 40)],  # ids of other documents
    ],
)
def test_a_row_that_lost_its_text_belongs_to_no_other(tmp_path: Path, further: list[str]) -> None:
    documents = [f"{row},text {row},a{row % 3}" for row in range(20)]
    found, dataset = read(write(tmp_path / "sheet.csv", *documents, *further))
    assert found["text 19"] == ["a1"]
    assert not any("and no text" in one for one in dataset.remarks)
