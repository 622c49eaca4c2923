"""The format `text2text`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import text2text
from round_trips import ANY_LABEL, Promise, one_line, round_trip

from plant_cli.api import DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(text2text, ANY_LABEL, Promise(one_line, titles=True))


def test_weights_bad_rows_and_numbers_from_one(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\ufeff1::0.5,2::1\tone\nno tab\n2\ttwo\tand a tab\nx\tthree\n", encoding="utf-8")
    (tmp_path / "output-items.txt").write_text("desk\nlamp\n")
    dataset = text2text.load(DataSection(path=str(tmp_path), rejects=str(tmp_path / "rejects.tsv")), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("train-1", "one", ["0", "1"]), ("train-3", "two\tand a tab", ["1"])]
    assert "numbered from 1 to 2" in dataset.remarks[0]
    assert "2 rows cannot be read" in dataset.remarks[1]
    rejects = (tmp_path / "rejects.tsv").read_text().splitlines()
    assert rejects[0] == "file\tline\tcolumn\treason\tcontent"
    assert [line.split("\t")[1:4] for line in rejects[1:]] == [["2", "1", "there is no tab"], ["4", "1", "'x' are no label numbers"]]
