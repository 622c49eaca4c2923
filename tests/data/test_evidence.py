"""Gold evidence: what is wrong with it, what is kept of it, and how a run knows it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import ArtefactError, DataError
from plant_cli.api.options import DataSection
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus

SECTION = DataSection(path="x.parquet")
SPANS = [("a", "C1", 0, 13), ("e", "Z0", 10, 25), ("d", "C1", 4, 9), ("a", " B1 ", 18, 23), ("a", "C1", 6, 13), ("d", "C1", 4, 9)]
Span = tuple[str | None, str | None, int | None, int | None]


def with_evidence(dataset: Dataset, *spans: Span) -> Dataset:
    return replace(dataset, evidence=pl.LazyFrame(spans, schema=["doc_id", "label", "start", "end"], orient="row"))


def test_spans_go_to_their_documents_in_every_split(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(with_evidence(dataset, *SPANS), SECTION, tmp_path, reporter)
    found = {name: corpus.split(name).evidence for name in corpus}
    train, validation, test = (found[name] or pytest.fail(f"{name} has no evidence") for name in ("train", "validation", "test"))
    assert (train.rows.tolist(), train.labels) == ([0, 0, 0], ["C1", "B1", "C1"])
    assert train.spans.tolist() == [[0, 13], [18, 23], [6, 13]]
    assert (validation.rows.tolist(), validation.spans.tolist()) == ([0], [[4, 9]])  # given twice, and kept once
    assert (test.rows.tolist(), test.labels) == ([0], ["Z0"])  # a label that train does not have
    assert not [warning for warning in reporter.warnings if "evidence" in warning]


def test_without_evidence_nothing_is_said_or_written(dataset: Dataset, tmp_path: Path) -> None:
    corpus = prepare(dataset, SECTION, tmp_path, SilentReporter())
    assert corpus.split("train").evidence is None
    assert not (tmp_path / "evidence.parquet").exists()


def test_evidence_of_held_out_documents_goes_with_them(dataset: Dataset, tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": [f"d{i}" for i in range(10)], "text": [f"words no {i}" for i in range(10)], "labels": [["L"]] * 10})
    spans: list[Span] = [(f"d{i}", "L", 0, 2) for i in range(10)]
    corpus = prepare(with_evidence(Dataset(splits={"train": train}), *spans), SECTION, tmp_path, SilentReporter())
    for name, count in (("train", 8), ("validation", 2)):
        found = corpus.split(name).evidence  # type: ignore[arg-type]
        assert found is not None
        assert found.rows.tolist() == list(range(count))


@pytest.mark.parametrize(
    ("span", "what"),
    [
        (("a", "C1", 9, 9), "end where they begin"),
        (("a", "C1", 9, 4), "end where they begin"),
        (("a", "C1", None, 4), "end where they begin"),
        (("a", "C1", -1, 4), "outside the text"),
        (("a", "C1", 0, 24), "outside the text"),
    ],
)
def test_spans_that_hold_nothing_stop_a_run(dataset: Dataset, tmp_path: Path, span: Span, what: str) -> None:
    with pytest.raises(DataError, match=f"^2 evidence spans .*{what}") as caught:
        prepare(with_evidence(dataset, *SPANS, span, span), SECTION, tmp_path, SilentReporter())
    assert f"row 7: 'a', 'C1', {span[2]} to {span[3]}" in caught.value.where
    assert "--evidence" in caught.value.todo
    assert not (tmp_path / "splits.json").exists()


def test_a_span_may_end_with_the_text(dataset: Dataset, tmp_path: Path) -> None:
    end = len("heart failure and fever")
    evidence = prepare(with_evidence(dataset, ("a", "C1", 0, end)), SECTION, tmp_path, SilentReporter()).split("train").evidence
    assert evidence is not None
    assert evidence.spans.tolist() == [[0, end]]


def test_spans_of_nothing_that_is_there_are_counted_and_left_out(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    strange: list[Span] = [("nobody", "C1", 0, 4), (None, "C1", 0, 4), ("a", "A9", 0, 4)]
    corpus = prepare(with_evidence(dataset, *SPANS, *strange), SECTION, tmp_path, reporter)
    said = [warning for warning in reporter.warnings if "evidence" in warning]
    assert said[0].startswith("2 evidence spans are of documents that the corpus does not have; they are left out (evidence: row 7")
    assert said[1].startswith("1 evidence spans name a label that their document does not have; they are left out (evidence: row 9")
    assert len(pl.read_parquet(tmp_path / "evidence.parquet")) == 5
    evidence = corpus.split("train").evidence
    assert evidence is not None
    assert len(evidence.rows) == 3


def test_a_missing_column_is_named(dataset: Dataset, tmp_path: Path) -> None:
    wrong = replace(dataset, evidence=pl.LazyFrame({"doc_id": ["a"], "label": ["C1"], "begin": [0], "end": [4]}))
    with pytest.raises(DataError, match="no column 'start'") as caught:
        prepare(wrong, SECTION, tmp_path, SilentReporter())
    assert "begin" in caught.value.where


def test_a_run_knows_its_evidence_again(dataset: Dataset, tmp_path: Path) -> None:
    first = prepare(with_evidence(dataset, *SPANS), SECTION, tmp_path, SilentReporter())
    plain = prepare(dataset, SECTION, tmp_path / "plain", SilentReporter())
    assert first.data_hash == plain.data_hash  # evidence says nothing of what a network learns
    again = open_corpus(tmp_path, lambda: dataset).split("train").evidence
    assert again is not None
    assert again.spans.tolist() == [[0, 13], [18, 23], [6, 13]]
    path = tmp_path / "evidence.parquet"
    pl.read_parquet(path).head(2).write_parquet(path)
    with pytest.raises(ArtefactError, match=r"'evidence.parquet' of the run's corpus is damaged"):
        open_corpus(tmp_path, lambda: dataset)
    path.unlink()
    with pytest.raises(ArtefactError, match=r"'evidence.parquet' of the run's corpus is gone"):
        open_corpus(tmp_path, lambda: dataset)


def test_fractions_are_no_positions_in_a_text(dataset: Dataset, tmp_path: Path) -> None:
    spans = pl.LazyFrame([("a", "C1", 0.5, 2.7)], schema=["doc_id", "label", "start", "end"], orient="row")
    with pytest.raises(DataError, match="have no such position"):
        prepare(replace(dataset, evidence=spans), SECTION, tmp_path, SilentReporter())
