"""The format `annif-tsv`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import annif_tsv
from round_trips import PLAIN, Promise, one_field, round_trip

from plant_cli.api import DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(annif_tsv, PLAIN, Promise(one_field))


def test_a_file_in_another_encoding_is_reported_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_bytes("oil\t<http://a/1> <http://a/2>\ncaf\u00e9\t<http://a/1>\n".encode("latin-1"))
    dataset = annif_tsv.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect()["labels"].to_list() == [["http://a/1", "http://a/2"]]
    assert "line 2, column 4: byte 0xe9 is not UTF-8" in dataset.remarks[0]
    named = annif_tsv.load(DataSection(path=str(tmp_path), encoding="latin-1"), NoOptions())
    assert named.splits["train"].collect()["text"].to_list() == ["oil", "caf\u00e9"]


def test_utf_16_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes("caf\u00e9\t<http://a/1>\n".encode("utf-16"))
    assert annif_tsv.load(DataSection(path=str(tmp_path)), NoOptions()).splits["train"].collect()["text"].to_list() == ["caf\u00e9"]
