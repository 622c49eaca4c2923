"""Tables with a row for each pair of text and label: rows of one document are joined, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import DataSection, Dataset, SilentReporter
from plant_cli.data.joined_rows import join_rows
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

TEXTS = [f"text number {number} of the corpus" for number in range(6)]
PAIRS = [(0, "a"), (0, "b"), (1, "a"), (2, "c"), (2, "a"), (2, "d"), (3, "b"), (4, "a"), (5, "c")]


def make(
    rows: list[tuple[str, str, list[str]]], **splits: list[tuple[str, str, list[str]]]
) -> Dataset:
    frames = {
        name: pl.DataFrame(
            {
                "doc_id": [row[0] for row in part],
                "text": [row[1] for row in part],
                "labels": [row[2] for row in part],
            },
            schema={"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)},
        ).lazy()
        for name, part in {"train": rows, **splits}.items()
    }
    return Dataset(splits=frames)  # type: ignore[arg-type]


def read(dataset: Dataset, split: Any = "train") -> dict[str, list[str]]:
    frame = dataset.splits[split].collect()
    return dict(zip(frame["doc_id"], frame["labels"].to_list(), strict=True))


def rows_of(ids: bool) -> list[tuple[str, str, list[str]]]:
    return [
        (f"D{text}" if ids else str(row), TEXTS[text], [label])
        for row, (text, label) in enumerate(PAIRS, start=1)
    ]


def test_rows_of_one_text_become_one_document() -> None:
    joined, remarks = join_rows(make(rows_of(ids=False)))
    labels = [["a", "b"], ["a"], ["c", "a", "d"], ["b"], ["a"], ["c"]]
    assert list(read(joined).values()) == labels
    assert remarks == [
        "the corpus: 9 rows hold 6 documents: rows of one text are joined, and their labels with "
        "them"
    ]


def test_rows_of_one_id_become_one_document() -> None:
    joined, remarks = join_rows(make(rows_of(ids=True)))
    assert read(joined)["D2"] == ["c", "a", "d"]
    assert len(read(joined)) == 6
    assert len(remarks) == 1


def test_a_corpus_in_pieces_is_joined_across_them() -> None:
    rows = rows_of(ids=False)
    dataset = make(rows)
    parts = [dataset.splits["train"].slice(start, 2) for start in range(0, len(rows), 2)]
    joined, _ = join_rows(dataset.with_parts({"train": parts}))
    assert list(read(joined).values())[2] == ["c", "a", "d"]
    assert sum(part.collect().height for part in joined.parts("train")) == 6


def test_a_document_of_several_splits_is_kept_where_training_does_not_see_it() -> None:
    rows = rows_of(ids=False)
    joined, remarks = join_rows(make(rows[:4], test=rows[4:]))
    assert TEXTS[2] not in joined.splits["train"].collect()["text"].to_list()
    assert set(read(joined, "test")["5"]) == {"c", "a", "d"}
    assert "1 documents stood in several splits" in remarks[0]


@pytest.mark.parametrize("labels", [["a"], ["a", "x"]], ids=["one", "several"])
def test_a_corpus_whose_records_all_repeat_in_another_split_still_trains(labels: list[str]) -> None:
    texts = [f"text number {number} of the corpus" for number in range(100)]
    train = [(f"train-{number}", text, labels) for number, text in enumerate(texts)]
    test = [(f"test-{number}", text, [*labels[1:], "b"]) for number, text in enumerate(texts)]
    joined, remarks = join_rows(make(train, test=test))
    sizes = {name: len(read(joined, name)) for name in ("train", "test")}
    assert sum(sizes.values()) == 100
    assert 30 < sizes["train"] < 70
    kept = [*read(joined).values(), *read(joined, "test").values()]
    assert all(set(found) == {*labels, "b"} for found in kept)
    assert "100 documents stood in several splits, and are now in one: that of a row" in remarks[0]


def test_rows_that_were_split_at_random_keep_the_shares_of_the_splits() -> None:
    split = ["train"] * 8 + ["validation", "test"]
    parts: dict[str, list[tuple[str, str, list[str]]]] = {"validation": [], "test": [], "train": []}
    for number in range(200):
        for row, name in enumerate(split):
            parts[name].append((f"{number}-{row}", f"text {number}", [f"label {row}"]))
    joined, _ = join_rows(make(parts.pop("train"), **parts))
    assert 140 < len(read(joined)) < 180
    assert all(len(found) == 10 for found in read(joined).values())


def test_rows_of_one_id_and_other_texts_are_refused(tmp_path: Path) -> None:
    rows = [("D0", TEXTS[0], ["a"]), ("D0", TEXTS[1], ["b"]), ("D1", TEXTS[2], ["a"])]
    joined, _ = join_rows(make(rows))
    with pytest.raises(Exception, match="share their id") as caught:
        prepare(joined, DataSection(), tmp_path, SilentReporter())
    assert "'D0', document 1 of train; 'D0', document 2 of train" in caught.value.where  # type: ignore[attr-defined]


def test_two_people_who_choose_several_labels_are_joined() -> None:
    rows = [("1", TEXTS[0], ["a", "b"]), ("2", TEXTS[0], ["b", "c"]), ("3", TEXTS[1], ["a", "c"])]
    joined, remarks = join_rows(make(rows))
    assert read(joined) == {"1": ["a", "b", "c"], "3": ["a", "c"]}
    assert "3 rows hold 2 documents" in remarks[0]


def test_records_that_share_a_title_stay_and_are_told() -> None:
    rows = [("r7", TEXTS[0], ["a", "b"]), ("r8", TEXTS[0], ["b", "c"]), ("r9", TEXTS[1], ["a"])]
    joined, remarks = join_rows(make(rows))
    assert len(read(joined)) == 3
    assert remarks == [
        "1 texts stand in several documents with different labels, and stay so "
        "(`plant data check --fix` joins them)"
    ]


def test_a_corpus_with_each_text_once_is_left_as_it_is() -> None:
    dataset = make([(str(number), text, ["a"]) for number, text in enumerate(TEXTS)])
    assert join_rows(dataset) == (dataset, [])


def test_evidence_follows_its_document() -> None:
    dataset = make(rows_of(ids=False))
    spans = pl.LazyFrame(
        {"doc_id": ["2", "9"], "label": ["b", "c"], "start": [0, 0], "end": [4, 4]}
    )
    joined, _ = join_rows(Dataset(splits=dataset.splits, evidence=spans))
    assert joined.evidence is not None
    assert joined.evidence.collect()["doc_id"].to_list() == ["1", "9"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_every_reader_joins(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame(
        {"text": [TEXTS[text] for text, _ in PAIRS], "labels": [label for _, label in PAIRS]}
    )
    path = tmp_path / f"data.{suffix}"
    frame.write_csv(path) if suffix == "csv" else frame.write_ndjson(path)
    context = make_context(components=installed(), reporter=SilentReporter())
    dataset = load_dataset(context, DataSection(path=str(path)))
    frames = [part.collect() for part in dataset.splits.values()]
    labels = {
        text: found for part in frames for text, found in part.select("text", "labels").iter_rows()
    }
    assert labels[TEXTS[2]] == ["c", "a", "d"]
    assert any("9 rows hold 6 documents" in remark for remark in dataset.remarks)
