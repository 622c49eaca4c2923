"""The format `annif-csv`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import annif_csv
from round_trips import PLAIN, Promise, round_trip

from plant_cli.api import DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(annif_csv, PLAIN, Promise(ids=True))


def test_metadata_and_quoted_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('document_id,title,text,subject_uris\nd1,T,"one\ntwo",<a> <b>\nd2,T,x\n,T,three,c\n')
    dataset = annif_csv.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("d1", "one\ntwo", ["a", "b"]), ("train-3", "three", ["c"])]
    assert "line 4: 3 fields, the first line has 4" in dataset.remarks[0]


def test_wrong_bytes_cost_their_own_document_alone(tmp_path: Path) -> None:
    rows = b'document_id,text,subject_uris\nd1,"one\n\xe9nd",<a>\nd2,"two\nlines",<b>\nd3,three,<c>\n'
    (tmp_path / "train.csv").write_bytes(rows)
    dataset = annif_csv.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("d2", "two\nlines", ["b"]), ("d3", "three", ["c"])]
    assert "line 3, column 1: byte 0xe9 is not UTF-8" in dataset.remarks[0]


def test_a_carriage_return_without_quotes_is_a_bad_row_and_with_them_a_sign(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(b'text,subject_uris\none\rtwo,<a>\n"three\rfour",<b>\nfive,<c>\n')
    dataset = annif_csv.load(DataSection(path=str(tmp_path), rejects=str(tmp_path / "bad.tsv")), NoOptions())
    assert dataset.splits["train"].collect()["text"].to_list() == ["three\rfour", "five"]
    assert "line 2: a carriage return stands in a field without quotes" in dataset.remarks[0]
    assert "one\rtwo,<a>" in (tmp_path / "bad.tsv").read_bytes().decode()
