"""The format `annif-folder`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.formats import annif_folder
from round_trips import PLAIN, Promise, round_trip

from plant_cli.api import DataError, DataSection, Dataset, NoOptions

test_what_is_written_is_read_again = round_trip(annif_folder, PLAIN, Promise(ids=True, titles=True))


def test_tsv_and_key_files_and_texts_without(tmp_path: Path) -> None:
    files = {"a.txt": "oil\n", "a.tsv": "<u1>\tOil\nno uri\n", "b.txt": "gas", "b.key": "gas prices\n", "c.txt": "lost"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    dataset = annif_folder.load(DataSection(path=str(tmp_path)), NoOptions())
    rows = {row[0]: row[1:] for frame in dataset.splits.values() for row in frame.collect().rows()}
    assert rows == {"a": ("oil\n", ["u1"]), "b": ("gas", ["gas prices"])}
    assert any("1 texts have neither" in remark for remark in dataset.remarks)
    assert any("a.tsv, line 2, column 1: no URI" in remark for remark in dataset.remarks)


def test_a_text_of_which_lines_cannot_be_read_is_left_out_whole(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_bytes(b"oil\n" + (b"M\xf6bel\n" if number else b""))
        (tmp_path / f"{number}.key").write_text("gas\n")
    dataset = annif_folder.load(DataSection(path=str(tmp_path)), NoOptions())
    assert [row for frame in dataset.splits.values() for row in frame.collect()["text"]] == ["oil\n"]
    assert any("2 texts have lines that cannot be read and are left out whole" in remark for remark in dataset.remarks)
    for number in range(3, 20):
        (tmp_path / f"{number}.txt").write_bytes(b"M\xf6bel\n")
        (tmp_path / f"{number}.key").write_text("gas\n")
    with pytest.raises(DataError, match="the texts are not UTF-8: more than 10 have bytes that are none"):
        annif_folder.load(DataSection(path=str(tmp_path)), NoOptions())
    dataset = annif_folder.load(DataSection(path=str(tmp_path), encoding="cp1252"), NoOptions())
    assert sum(frame.collect().height for frame in dataset.splits.values()) == 20


def test_ids_that_are_no_names_of_files_are_refused(tmp_path: Path) -> None:
    for name in ("a/b", "..", "x" * 300):
        dataset = Dataset(splits={"train": pl.LazyFrame({"doc_id": [name], "text": ["t"], "labels": [["l"]]})})
        with pytest.raises(DataError, match="can be no name of a file"):
            annif_folder.write(dataset, tmp_path, "")
    assert list(tmp_path.iterdir()) == []
