"""The words of a split are found once in a run, and again where they are not what they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import DataSection, Documents, SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.data.prepare import prepare
from plant_cli.data.shares import Shard
from plant_cli.runs.session import Session
from plant_cli.runs.word_store import open_words


@pytest.fixture
def corpus(dataset: Dataset, tmp_path: Path) -> Any:
    return prepare(
        dataset,
        DataSection(path="x.parquet", analyser="lemmas"),
        tmp_path / "corpus",
        SilentReporter(),
    )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path / "mig")


@pytest.fixture
def never_again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(
        "plant_cli.runs.word_store._write", lambda *given: pytest.fail("texts are split again")
    )


def spelt(documents: Documents) -> list[list[str]]:
    words = [documents.vocabulary[number] for number in documents.numbers]
    return [
        words[first:last]
        for first, last in zip(documents.ends[:-1], documents.ends[1:], strict=True)
    ]


def test_words_are_those_that_the_analyser_finds_and_are_found_once(
    corpus: Any, session: Session, never_again: Any
) -> None:
    first = open_words(session, corpus, "train")
    assert spelt(first.documents) == [
        corpus.analyser.spell(text) for text in corpus.split("train").texts
    ]
    assert first.forms == list(corpus.analyser.forms())
    never_again()
    again = open_words(session, corpus, "train")
    assert spelt(again.documents) == spelt(first.documents)
    assert again.documents.vocabulary == first.documents.vocabulary
    assert again.forms == first.forms


def test_a_shard_has_its_rows(
    corpus: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.data.store.DOCUMENTS_IN_MEMORY", 2)
    whole = spelt(open_words(session, corpus, "train").documents)
    for shard in (Shard(1, 2), Shard(2, 2)):
        assert (
            spelt(open_words(session, corpus, "train", shard=shard).documents) == whole[shard.rows]
        )


def test_another_analyser_or_another_corpus_has_words_of_its_own(
    corpus: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_words(session, corpus, "train")
    monkeypatch.setattr(corpus.analyser, "hash", "another")
    open_words(session, corpus, "train")
    monkeypatch.setattr(type(corpus), "data_hash", "another")
    open_words(session, corpus, "train")
    assert len(list(session.run_path.glob("cache/words-train-*"))) == 3


def test_damaged_words_are_found_again(corpus: Any, session: Session) -> None:
    first = open_words(session, corpus, "test")
    before = spelt(first.documents)
    [file] = session.run_path.glob("cache/words-test-*/numbers.bin")
    file.write_bytes(file.read_bytes()[:-4])
    assert spelt(open_words(session, corpus, "test").documents) == before
    assert "the words of test are made again" in session.reporter.warnings[0]  # type: ignore[attr-defined]


def test_texts_without_words_have_none(dataset: Dataset, session: Session, tmp_path: Path) -> None:
    frame = pl.LazyFrame({"doc_id": ["a", "b"], "text": ["1 2", "…"], "labels": [["x"], ["y"]]})
    corpus = prepare(
        Dataset(splits={"train": frame}),
        DataSection(path="x.parquet", words="letters"),
        tmp_path / "other",
        SilentReporter(),
    )
    assert spelt(open_words(session, corpus, "train").documents) == [[], []]


def test_texts_that_were_there_before_are_not_split_again(
    corpus: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_words(session, corpus, "train")
    spell, found = corpus.analyser.spell, []
    grown = replace(corpus, record=corpus.record.model_copy(update={"held_out": ["another"]}))
    more = replace(
        corpus.split("train"),
        texts=["something new", *corpus.split("train").texts],
        doc_ids=["n", *corpus.split("train").doc_ids],
    )
    monkeypatch.setattr(type(grown), "stream", lambda self, name: iter([more]))
    monkeypatch.setattr(
        type(corpus.analyser), "spell", lambda self, text: found.append(text) or spell(text)
    )
    again = open_words(session, grown, "train")
    assert found == ["something new"]
    assert spelt(again.documents) == [["something", "new"], *spelt(first.documents)]
    assert {*first.forms} <= {*again.forms}
