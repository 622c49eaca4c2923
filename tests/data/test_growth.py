"""A corpus that is read again: what is new, changed or gone, which split documents keep, and
what new ones have that is different.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from builders import SCHEMA

from plant_cli.api import DataError, DataSection, Dataset, SilentReporter
from plant_cli.data.corpus_files import DOCUMENTS_FILE
from plant_cli.data.growth import EarlierReading
from plant_cli.data.prepare import prepare
from plant_cli.data.store import StoredCorpus

Rows = list[tuple[str, str, list[str]]]
TRAIN: Rows = [
    (f"t{n}", f"{('law', 'waves')[n % 2]} in chapter {n}", ["AB"[n % 2]]) for n in range(20)
]
TEST: Rows = [("x0", "law of waves", ["A"]), ("x1", "waves of law", ["B"])]
HELD = DataSection(validation_minimum=4)


def read(
    folder: Path, train: Rows, test: Rows = TEST, earlier: Path | None = None
) -> tuple[StoredCorpus, SilentReporter]:
    splits = {
        name: pl.LazyFrame(rows, schema=SCHEMA, orient="row")
        for name, rows in (("train", train), ("test", test))
    }
    reporter = SilentReporter()
    known = None if earlier is None else EarlierReading.of(earlier)
    return prepare(
        Dataset(splits=splits, files=["x.parquet"]), HELD, folder, reporter, known
    ), reporter  # type: ignore[arg-type]


def grow(
    tmp_path: Path, train: Rows, test: Rows = TEST
) -> tuple[StoredCorpus, StoredCorpus, SilentReporter]:
    before, _ = read(tmp_path / "before", TRAIN)
    after, reporter = read(tmp_path / "after", train, test, tmp_path / "before")
    return before, after, reporter


NEW: Rows = [("n0", "law once more", ["A"]), ("n1", "nothing like it", ["C"])]
CASES: dict[str, tuple[Rows, str]] = {
    "added": ([*TRAIN, *NEW], "2 new documents (2 in train)"),
    "added at the beginning": ([*NEW, *TRAIN], "2 new documents (2 in train)"),
    "removed": (TRAIN[:-1], "0 new documents, 1 gone"),
    "changed": (
        [(TRAIN[0][0], "another text", ["A"]), *TRAIN[1:]],
        "0 new documents, 1 with another text",
    ),
    "corrected": (
        [(TRAIN[0][0], TRAIN[0][1], ["B"]), *TRAIN[1:]],
        "0 new documents, 1 with other labels",
    ),
    "other ids": (
        [(f"id {name}", text, labels) for name, text, labels in [*TRAIN, NEW[0]]],
        "1 new documents (1 in train)",
    ),
    "nothing": (TRAIN, "0 new documents"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_changed_is_told_and_validation_stays_validation(tmp_path: Path, name: str) -> None:
    train, said = CASES[name]
    before, after, reporter = grow(tmp_path, train)
    assert f"the corpus of the run has grown: {said}" in reporter.notes
    texts = {text for _, text, _ in train}
    assert set(after.split("validation").texts) == set(before.split("validation").texts) & texts
    assert set(after.split("train").texts) == texts - set(before.split("validation").texts)
    assert (after.data_hash == before.data_hash) == (name == "nothing")


def test_labels_keep_their_ids(tmp_path: Path) -> None:
    before, after, _ = grow(tmp_path, [*TRAIN, *NEW])
    assert (before.labels.ids, after.labels.ids) == (["A", "B"], ["A", "B", "C"])
    assert after.record.analyser == before.record.analyser


def test_new_documents_that_repeat_validation_or_test_are_left_out(tmp_path: Path) -> None:
    before, _ = read(tmp_path / "before", TRAIN)
    held = before.split("validation").texts[0]
    leaks: Rows = [("n2", TEST[0][1], ["A"]), ("n3", held, ["A"])]
    after, reporter = read(tmp_path / "after", [*TRAIN, *NEW, *leaks], earlier=tmp_path / "before")
    assert (
        "2 new training documents are left out: validation or test has their text (n2, n3)"
        in reporter.warnings
    )
    assert not {"n2", "n3"} & {*after.split("train").doc_ids, *after.split("validation").doc_ids}
    assert len(after.split("train")) == len(before.split("train")) + len(NEW)
    again, reporter = read(tmp_path / "again", [*TRAIN, *NEW, *leaks], earlier=tmp_path / "after")
    assert again.sizes == after.sizes


def test_another_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="only 2 of the 22 documents of the run are in this corpus"
    ) as caught:
        grow(tmp_path, [(f"o{n}", f"something else {n}", ["A"]) for n in range(30)])
    assert "--run NEW" in caught.value.todo


def test_a_run_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    read(tmp_path / "before", TRAIN)
    (tmp_path / "before" / DOCUMENTS_FILE).unlink()
    with pytest.raises(DataError, match="does not know the texts of its documents"):
        EarlierReading.of(tmp_path / "before")


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([("law", "A")], None),
        (
            [("money and prices", "C")],
            "words are more or less frequent; 100% of their assignments are of new labels",
        ),
    ],
)
def test_new_documents_that_differ_are_told(
    tmp_path: Path, new: list[tuple[str, str]], said: str | None
) -> None:
    many: Rows = [(f"m{n}", f"{('law', 'waves')[n % 2]} of {n}", ["AB"[n % 2]]) for n in range(60)]
    read(tmp_path / "before", many)
    other = [("waves", "B")] if said is None else new
    added: Rows = [
        (f"n{n}", f"{word} of {n}{n}", [label])
        for n, (word, label) in enumerate(10 * [*new, *other])
    ]
    _, reporter = read(tmp_path / "after", [*many, *added], earlier=tmp_path / "before")
    drifts = [note for note in reporter.notes if note.startswith("drift: ")]
    assert [said in note for note in drifts] == ([] if said is None else [True])
