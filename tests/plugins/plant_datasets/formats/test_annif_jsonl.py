"""The format `annif-jsonl`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import annif_jsonl
from round_trips import ANY_LABEL, Promise, round_trip

from plant_cli.api import DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(annif_jsonl, ANY_LABEL, Promise(ids=True, titles=True))


def test_values_of_other_types_are_bad_rows(tmp_path: Path) -> None:
    lines = ['{"text": "oil", "subjects": [{"uri": "u", "label": {"en": "Oil"}}]}', '{"text": 2012}', '{"text": "half \\ud83d"}']
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    dataset = annif_jsonl.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("train-1", "oil", ["u"])]
    assert dataset.labels is None
    assert "line 2: not {text, subjects: [{uri}]}: a text is wanted, not int" in dataset.remarks[0]


def test_subjects_give_titles_and_bad_lines_are_named(tmp_path: Path) -> None:
    good = '{"document_id": "d", "text": "oil", "metadata": {}, "subjects": [{"uri": "u1", "label": "Oil"}, {"uri": "u2"}]}'
    (tmp_path / "train.jsonl").write_text(good + '\n{"text": 1\n{"subjects": []}\n')
    dataset = annif_jsonl.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("d", "oil", ["u1", "u2"])]
    assert dataset.labels is not None
    assert dataset.labels.collect().rows() == [("u1", "Oil"), ("u2", None)]
    assert "line 2, column" in dataset.remarks[0]
    assert "line 3: not {text, subjects: [{uri}]}" in dataset.remarks[0]
