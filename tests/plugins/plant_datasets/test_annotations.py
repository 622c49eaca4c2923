"""Exports of annotation tools: which question, and whose answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plant_datasets.annotations import ANNOTATIONS
from plant_datasets.label_columns import find_columns

from plant_cli.api import DataError, DataSection, NoOptions
from plant_cli.kit import scan_table

TASK = {
    "id": 1,
    "data": {"text": "a text"},
    "annotations": [
        {"completed_by": who, "result": [{"from_name": name, "value": {"choices": choices}}]}
        for who, name, choices in (
            (1, "topic", ["X", "Y"]),
            (2, "topic", ["Y", "Z"]),
            (3, "topic", ["Y"]),
            (1, "mood", ["glad"]),
        )
    ],
}


def labels(folder: Path, **named: Any) -> list[str]:
    (folder / "train.json").write_text(json.dumps([TASK]))
    dataset = ANNOTATIONS.load(DataSection(path=str(folder), **named), NoOptions())
    return dataset.splits["train"].collect()["labels"].to_list()[0]


def test_several_questions_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"answers to 2 questions: topic .X, Y, Z.; mood .glad."
    ) as e:
        labels(tmp_path)
    assert e.value.todo == "name it: --question topic or --question mood"
    assert labels(tmp_path, question="mood") == ["glad"]
    with pytest.raises(DataError, match="no question 'temper'"):
        labels(tmp_path, question="temper")


@pytest.mark.parametrize(
    ("annotators", "found"), [("any", ["X", "Y", "Z"]), ("majority", ["Y"]), ("2", ["Y", "Z"])]
)
def test_answers_of_several_people_follow_a_rule(
    tmp_path: Path, annotators: str, found: list[str]
) -> None:
    assert labels(tmp_path, question="topic", annotators=annotators) == found


def test_a_table_of_label_studio_has_its_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "annotation_id,annotator,created_at,id,text,topic\n"
        '9,1,2022,0,a,"{""choices"": [""X, Y"", ""Z""]}"\n8,1,2022,1,b,"X, Y"\n'
    )
    tables, data, _ = find_columns({str(path): (scan_table(path), "")}, DataSection(path=str(path)))
    assert data.labels_column == "topic"
    found = tables[str(path)][0].collect()["topic"].to_list()
    assert found == [["X, Y", "Z"], ["X, Y"]]
