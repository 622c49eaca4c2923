"""The format `libmultilabel`."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_datasets.formats import libmultilabel
from round_trips import PLAIN, Promise, one_field, round_trip

from plant_cli.api import DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(libmultilabel, PLAIN, Promise(one_field, ids=True))


@pytest.mark.parametrize(
    ("line", "row"), [("E11 I10\tfever and cough again", ("train-1", ["E11", "I10"])), ("7\tE11\tfever", ("7", ["E11"]))]
)
def test_with_and_without_ids(tmp_path: Path, line: str, row: tuple[str, list[str]]) -> None:
    (tmp_path / "train.txt").write_text(line + "\n" + line.replace("7", "8") + "\nlost\n")
    dataset = libmultilabel.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().select("doc_id", "labels").row(0) == row
    assert "line 3: 1 fields" in dataset.remarks[0]


def test_a_table_with_names_of_columns_is_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("codes\tnote\nE11\tfever and a cough that is long\n")
    assert libmultilabel.recognise(DataSection(path=str(tmp_path / "x.tsv"))) is None


def test_label_numbers_with_weights_or_without_any_are_text2text(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for heads in (("0::0.1,1::0.2", "2::1"), ("0,1", "", "2")):
        path.write_text("".join(f"{head}\ta text that is much longer than its labels\n" for head in heads))
        assert libmultilabel.recognise(DataSection(path=str(path))) is None
