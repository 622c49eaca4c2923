"""Reuters-21578, on stories that were made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_datasets.corpora.registration import ReutersOptions
from plant_datasets.corpora.reuters_21578 import load

from plant_cli.api import DataError, DataSection


def story(number: int, split: str, topics: str, text: str, labels: str = "<D>cocoa</D><D>sugar</D>") -> str:
    head = f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="9" NEWID="{number}">'
    return f"{head}\n<TOPICS>{labels}</TOPICS>\n<PLACES><D>brazil</D></PLACES>\n<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"


STORIES = [
    story(1, "TRAIN", "YES", "<TITLE>COCOA &amp; SUGAR</TITLE><DATELINE>BAHIA, </DATELINE><BODY>Showers continued.\n&#3;</BODY>"),
    story(2, "TEST", "YES", "<TITLE>GOLD</TITLE><BODY>Up &lt;XYZ>.</BODY>", labels=""),
    story(3, "TRAIN", "NO", "<BODY>No topics.</BODY>", labels=""),
    story(4, "NOT-USED", "YES", "<BODY>Unused.</BODY>"),
    story(5, "TRAIN", "BYPASS", "<BODY>Bypassed.</BODY>"),
    story(6, "TRAIN", "YES", "plain text of a brief story"),
    story(7, "TRAIN", "YES", ""),
]


def write(folder: Path, *more: str) -> DataSection:
    (folder / "reut2-000.sgm").write_text('<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join([*STORIES, *more]), encoding="latin-1")
    return DataSection(path=str(folder))


def test_modapte(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), ReutersOptions())
    assert dataset.splits["train"].collect().rows() == [
        ("1", "COCOA & SUGAR\n\nShowers continued.", ["cocoa", "sugar"]),
        ("6", "plain text of a brief story", ["cocoa", "sugar"]),
    ]
    assert dataset.splits["test"].collect().rows() == [("2", "GOLD\n\nUp <XYZ>.", [])]
    assert "1 stories have neither title nor body" in dataset.remarks[0]


def test_modlewis_and_all_categories(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), ReutersOptions(split="modlewis", categories="all"))
    train = dataset.splits["train"].collect()
    assert train["doc_id"].to_list() == ["1", "3", "6"]
    assert train["labels"].to_list()[0] == ["topic:cocoa", "topic:sugar", "place:brazil"]


def test_a_cut_file_and_no_file(tmp_path: Path) -> None:
    dataset = load(write(tmp_path, STORIES[0][:200]), ReutersOptions())
    assert "a story is not closed" in dataset.remarks[-1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no SGML files"):
        load(DataSection(path=str(tmp_path / "empty")), ReutersOptions())
