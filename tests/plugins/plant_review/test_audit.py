"""Labels that may be wrong or missing: planted errors come first, and no document's own labels
enter its probability.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import run_at

from plant_cli.api import Result, UsageError
from plant_cli.scoring.review_sheets import REVIEW_COLUMNS

LABELS, WORDS = 6, 5
FITTED = ("finetune.network=false", "finetune.scorers=[words, neighbours]")
WRONG = {f"train-{number}": number for number in (3, 40, 77)}
POOR = {f"train-{number}": number for number in (11, 58, 90)}


def make_documents(split: str, number: int) -> pl.DataFrame:
    """Texts of the words of two labels each, among words that tell nothing."""
    draw, rows = np.random.default_rng(len(split)), []
    for document in range(number):
        own = [(document + step) % LABELS for step in (0, 1 + document // LABELS % 2)]
        told = [f"word{label}x{draw.integers(WORDS)}" for label in own for _ in range(3)]
        said = [*told, *(f"noise{draw.integers(30)}" for _ in range(4))]
        rows.append(
            {
                "doc_id": f"{split}-{document}",
                "text": " ".join(draw.permutation(said).tolist()),
                "labels": sorted(f"label{label}" for label in own),
            }
        )
    return pl.DataFrame(rows)


def exchange(
    frame: pl.DataFrame,
) -> tuple[pl.DataFrame, set[tuple[str, str]], set[tuple[str, str]]]:
    """The documents with a wrong label in some and a label less in others, and these pairs."""
    wrong, missing, changed = set(), set(), []
    for row in frame.iter_rows(named=True):
        own = list(row["labels"])
        if row["doc_id"] in WRONG:
            strange = next(f"label{label}" for label in range(LABELS) if f"label{label}" not in own)
            wrong.add((row["doc_id"], strange))
            own.append(strange)
        elif row["doc_id"] in POOR:
            missing.add((row["doc_id"], own.pop()))
        changed.append(sorted(own))
    return frame.with_columns(labels=pl.Series(changed)), wrong, missing


class Audited:
    """A run on documents with planted errors."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"
        corpus = folder / "corpus"
        corpus.mkdir()
        frame, self.wrong, self.missing = exchange(make_documents("train", 120))
        frame.write_parquet(corpus / "train.parquet")
        make_documents("validation", 30).write_parquet(corpus / "validation.parquet")
        self.train = frame
        run_at(self.run, "finetune", *FITTED, flags={"data": {"path": str(corpus)}})

    def audit(self, **options: Any) -> Result:
        return run_at(self.run, "audit", flags={"audit": options}, force=True)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return Audited(tmp_path_factory.mktemp("audited"))


def list_pairs(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["document"], row["label"]) for row in rows]


def test_planted_errors_come_first(audited: Audited) -> None:
    found = audited.audit(limit=3)
    assert set(list_pairs(found.data["doubtful"])) == audited.wrong
    assert set(list_pairs(found.data["missing"])) == audited.missing
    assert [table.rows[0][0] for table in found.tables] == [
        found.data[kind][0]["document"] for kind in ("doubtful", "missing")
    ]


def test_a_missing_label_has_its_words_as_reason(audited: Audited) -> None:
    for row in audited.audit(limit=3).data["missing"]:
        assert f"word{row['label'].removeprefix('label')}x" in row["why"]
        assert row["why"].startswith("base ")


def test_the_labels_of_a_document_do_not_enter_its_probability(
    audited: Audited, tmp_path: Path
) -> None:
    """With other labels, documents of one part have the same probabilities to the last bit."""
    part = np.random.default_rng(0).permutation(120) % 5 == 2
    ids = {doc_id for doc_id, own in zip(audited.train["doc_id"], part, strict=True) if own}
    swapped = pl.Series(
        [
            sorted(f"label{(int(label[-1]) + 3) % LABELS}" for label in labels) if own else labels
            for own, labels in zip(part, audited.train["labels"].to_list(), strict=True)
        ]
    )
    (tmp_path / "corpus").mkdir()
    other, run = audited.train.with_columns(labels=swapped), tmp_path / "run"
    other.write_parquet(tmp_path / "corpus" / "train.parquet")
    make_documents("validation", 30).write_parquet(tmp_path / "corpus" / "validation.parquet")
    run_at(run, "finetune", *FITTED, flags={"data": {"path": str(tmp_path / "corpus")}})
    given = {"limit": 120 * LABELS, "split": "train"}
    scores = []
    for where in (audited.run, run):
        data = run_at(where, "audit", flags={"audit": given}).data
        rows = [row for kind in ("doubtful", "missing") for row in data[kind]]
        scores.append(
            {
                (row["document"], row["label"]): row["probability"]
                for row in rows
                if row["document"] in ids
            }
        )
    assert len(scores[0]) == len(ids) * LABELS
    assert scores[0] == scores[1]


def test_documents_of_validation_are_judged_by_the_model_itself(audited: Audited) -> None:
    both, one = audited.audit(limit=1000), audited.audit(limit=1000, split="validation")
    splits = [
        {row["document"].partition("-")[0] for row in result.data["doubtful"]}
        for result in (both, one)
    ]
    assert splits == [{"train", "validation"}, {"validation"}]


def test_a_sheet_comes_back_as_corrections(audited: Audited, tmp_path: Path) -> None:
    sheet, corrected = tmp_path / "doubts.csv", tmp_path / "corrected.jsonl"
    result = audited.audit(limit=3, output=str(sheet))
    assert (result.data["doubtful"], result.data["missing"]) == (3, 3)
    frame = pl.read_csv(sheet)
    assert frame.columns == list(REVIEW_COLUMNS)
    assert frame["band"].to_list() == ["doubtful"] * 3 + ["missing"] * 3
    frame.with_columns(
        decision=pl.when(pl.col("band") == "doubtful")
        .then(pl.lit("reject"))
        .otherwise(pl.lit("accept"))
    ).write_csv(sheet)
    run_at(
        audited.run,
        "review import",
        flags={"review import": {"sheets": [str(sheet)], "output": str(corrected)}},
    )
    right = {row["doc_id"]: row["labels"] for row in make_documents("train", 120).to_dicts()}
    records = pl.read_ndjson(corrected).to_dicts()
    assert {row["doc_id"] for row in records} == {*WRONG, *POOR}
    assert all(sorted(row["labels"]) == right[row["doc_id"]] for row in records)


def test_small_probabilities_stay_apart_in_a_sheet(audited: Audited, tmp_path: Path) -> None:
    sheet = tmp_path / "doubts.jsonl"
    audited.audit(limit=20, output=str(sheet))
    frame = pl.read_ndjson(sheet)
    assert (frame["score"] > 0).all()
    texts = dict(audited.train.select("doc_id", "text").rows())
    assert all(texts.get(row["doc_id"], row["text"]) == row["text"] for row in frame.to_dicts())


def test_a_label_without_another_document_is_not_doubted(tmp_path: Path) -> None:
    frame = make_documents("train", 60)
    labels = frame["labels"].to_list()
    labels[7] = [*labels[7], "alone"]
    (tmp_path / "corpus").mkdir()
    frame.with_columns(labels=pl.Series(labels)).write_parquet(
        tmp_path / "corpus" / "train.parquet"
    )
    run = tmp_path / "run"
    run_at(run, "finetune", *FITTED, flags={"data": {"path": str(tmp_path / "corpus")}})
    data = run_at(run, "audit", flags={"audit": {"limit": 1000}}).data
    assert "alone" not in {row["label"] for row in data["doubtful"]}
    assert len(data["doubtful"]) == sum(map(len, labels)) - 1


def test_a_label_that_is_never_suggested_is_not_judged(audited: Audited, tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = {"data": {"path": str(audited.folder / "corpus")}}
    run_at(run, "finetune", *FITTED, "finetune.exclude=[label2]", flags=flags)
    data = run_at(run, "audit", flags={"audit": {"limit": 1000}}).data
    assert "label2" not in {row["label"] for kind in data for row in data[kind]}


def test_what_cannot_be_audited_is_said(audited: Audited, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sheet goes by this name"):
        audited.audit(output=str(tmp_path / "doubts.pdf"))
