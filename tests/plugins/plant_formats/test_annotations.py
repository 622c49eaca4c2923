"""Exports of annotation tools: which question, and whose answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plant_formats.annotations import ANNOTATIONS
from plant_formats.label_columns import find_columns
from plant_formats.people_columns import choose_person

from plant_cli.api import DataError, DataSection, NoOptions, SilentReporter, UsageError
from plant_cli.data.loading import load_dataset
from plant_cli.kit import scan_table
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

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


@pytest.mark.parametrize(
    ("annotators", "found"), [("any", ["X", "Y", "Z"]), ("majority", ["Y"]), ("2", ["Y", "Z"])]
)
def test_rows_of_json_min_are_one_document_for_all_who_answered(
    tmp_path: Path, annotators: str, found: list[str]
) -> None:
    rows = [
        {"id": task, "annotation_id": 10 * task + who, "annotator": who, "text": f"text {task}"}
        | {"topic": {"choices": choices}}
        for who, choices in ((1, ["X", "Y"]), (2, ["Y", "Z"]), (3, ["Y"]))
        for task in (7, 8)
    ]
    (tmp_path / "train.json").write_text(json.dumps(rows))
    data = DataSection(path=str(tmp_path), annotators=annotators)
    dataset = ANNOTATIONS.load(data, NoOptions())
    read = dataset.splits["train"].collect()
    assert read["doc_id"].to_list() == ["7", "8"]
    assert read["labels"].to_list() == [found, found]
    said = any("2 documents have answers of several people" in one for one in dataset.remarks)
    assert said == (annotators != "2")


@pytest.mark.parametrize("asked", [{"question": "topic"}, {"annotators": "majority"}])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", "text,labels\na text,a\nanother,b\n"),
        (
            "data.jsonl",
            '{"text": "a text", "labels": ["a"]}\n{"text": "another", "labels": ["b"]}\n',
        ),
        ("data.txt", "__label__a a text\n__label__b another\n"),
        (
            "notes.jsonl",
            '{"text": "a text", "cats": {"a": 1.0}}\n{"text": "b", "cats": {"b": 1}}\n',
        ),
        ("tasks.jsonl", '{"text": "a text", "label": "a", "answer": "accept"}\n'),
    ],
)
def test_questions_and_people_are_refused_where_there_are_none(
    tmp_path: Path, name: str, content: str, asked: dict[str, str]
) -> None:
    (tmp_path / name).write_text(content)
    context = make_context(components=installed(), reporter=SilentReporter())
    with pytest.raises((DataError, UsageError)) as error:
        load_dataset(context, DataSection(path=str(tmp_path / name), **asked))
    assert next(iter(asked)) in error.value.where + error.value.what


def test_a_table_of_label_studio_without_the_person_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("annotation_id,annotator,created_at,id,text,topic\n9,1,2022,0,a text,X\n")
    tables = {str(path): (scan_table(path), "")}
    with pytest.raises(DataError, match="nobody called 'ann' answered") as error:
        choose_person(tables, DataSection(path=str(path), annotators="ann"))
    assert error.value.expected == "any, majority or one of 1"
    with pytest.raises(DataError, match="no question 'mood'"):
        find_columns(tables, DataSection(path=str(path), question="mood"))


WRAPPED = [
    {"id": 1, "text": "a longer text", "label": ["X"]},
    {"id": 2, "text": "b", "label": ["Y"]},
]


@pytest.mark.parametrize(
    "value",
    [
        {"version": 1, "examples": WRAPPED},
        {"examples": WRAPPED, "version": {"by": "me"}},
        {"examples": WRAPPED},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_list_in_an_object_is_read_whatever_stands_beside_it(
    tmp_path: Path, value: dict[str, Any], indent: int | None, suffix: str
) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_text(json.dumps(value, indent=indent))
    data = DataSection(path=str(path))
    assert ANNOTATIONS.recognise(data) == "JSON of doccano (labels of the first document: X)"
    frames = [part.collect() for part in ANNOTATIONS.load(data, NoOptions()).splits.values()]
    assert sorted(row for frame in frames for row in frame.rows()) == [
        ("1", "a longer text", ["X"]),
        ("2", "b", ["Y"]),
    ]


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


@pytest.mark.parametrize(
    ("annotators", "found"), [("any", ["X", "Y", "Z"]), ("majority", ["Y"]), ("2", ["Y", "Z"])]
)
def test_a_table_of_label_studio_follows_the_rule_of_annotators(
    tmp_path: Path, annotators: str, found: list[str]
) -> None:
    path = tmp_path / "data.csv"
    rows = [
        f'{who},{who},2022,7,a text,"{{""choices"": {choices}}}"\n'
        for who, choices in ((1, '[""X"", ""Y""]'), (2, '[""Y"", ""Z""]'), (3, '[""Y""]'))
    ]
    path.write_text("annotation_id,annotator,created_at,id,text,topic\n" + "".join(rows))
    context = make_context(components=installed(), reporter=SilentReporter())
    dataset = load_dataset(context, DataSection(path=str(path), annotators=annotators))
    [labels] = [part.collect()["labels"].to_list() for part in dataset.splits.values()]
    assert labels == [found]
    said = any("who differ on 1, such as" in remark for remark in dataset.remarks)
    assert said == (annotators != "2")


def test_options_of_prodigy_name_labels_that_are_numbers(tmp_path: Path) -> None:
    options = [{"id": 0, "text": "Asthma"}, {"id": 1, "text": "Stroke"}]
    example = {"text": "wheeze", "options": options, "accept": [1], "answer": "accept"}
    (tmp_path / "train.jsonl").write_text(json.dumps(example) + "\n")
    dataset = ANNOTATIONS.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.labels is not None
    assert dict(dataset.labels.select("label", "title").collect().rows())["1"] == "Stroke"
    assert not any("labels are numbers" in one for one in dataset.remarks)
