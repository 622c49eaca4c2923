"""Labels for new texts: the same scores as `predict`, from a table or a text, on screen or in a file; bad input is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_datasets.synthetic_clinic.generator import generate

from plant_cli.api import ArtefactError, DataError, UsageError


@pytest.fixture
def trained(clinic: Any) -> Any:
    for stage in ("mig", "pretrain-attn"):
        clinic(stage)
    clinic("finetune", "finetune.epochs=1")

    def suggest(**options: Any) -> Any:
        return clinic("suggest", flags={"suggest": options})

    suggest.run = clinic
    return suggest


def test_the_scores_of_new_texts_are_those_of_predict(trained: Any, tmp_path: Path) -> None:
    trained.run("predict")
    expected = pl.read_parquet(trained.run.path / "predict" / "predictions.parquet")
    new = generate(documents=120, labels=12, seed=3).splits["test"].collect()
    new.select("doc_id", "text").write_csv(tmp_path / "new.csv")
    trained(path=str(tmp_path / "new.csv"), top_k=12, output=str(tmp_path / "out.parquet"))
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found["doc_id"].to_list() == expected["doc_id"].to_list() == new["doc_id"].to_list()
    assert found["labels"].to_list() == expected["labels"].to_list()
    for ours, theirs in zip(found["scores"].to_list(), expected["scores"].to_list(), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_one_text_is_labelled_on_screen(trained: Any) -> None:
    result = trained(text="fever and cough", top_k=3)
    rows = result.tables[0].rows
    assert len(rows) == 3
    assert {row[4] for row in rows} <= {"yes", "no"}
    assert [row[3] for row in rows] == sorted((row[3] for row in rows), reverse=True)


def test_only_assigned_labels_if_asked_for_and_documents_without_any_stay(trained: Any, tmp_path: Path) -> None:
    table = tmp_path / "new.jsonl"
    pl.DataFrame({"text": ["fever", "cough", "nothing at all"]}).write_ndjson(table)
    everything = trained(path=str(table), output=str(tmp_path / "all.csv"))
    some = trained(path=str(table), output=str(tmp_path / "some.jsonl"), assigned=True)
    assert some.summary["suggestions"] < everything.summary["suggestions"]
    assert pl.read_ndjson(tmp_path / "some.jsonl")["doc_id"].to_list() == ["1", "2", "3"]


def test_columns_of_other_types_and_gaps_in_them_are_read(trained: Any, tmp_path: Path) -> None:
    table = tmp_path / "new.parquet"
    pl.DataFrame({"doc_id": [7, None, 9], "text": [39, 40, None]}).write_parquet(table)
    trained(path=str(table), output=str(tmp_path / "out.parquet"))
    assert pl.read_parquet(tmp_path / "out.parquet")["doc_id"].to_list() == ["7", "2", "9"]


@pytest.mark.parametrize(
    ("options", "content", "error", "said"),
    [
        ({}, None, UsageError, "nothing to label"),
        ({"path": "new.csv", "text": "both"}, "text\na\n", UsageError, "both"),
        ({"path": "gone.csv"}, None, DataError, "gone.csv"),
        ({"path": "new.csv"}, "txt\nfever\n", DataError, "no column 'text'"),
        ({"path": "new.csv"}, "text\n", DataError, "no rows"),
        ({"path": "new.csv", "output": "new.csv"}, "text\nfever\n", UsageError, "there already"),
        ({"path": "gone.csv", "output": "new.docx"}, None, DataError, "no table format goes by the name 'new.docx'"),
        ({"text": "fever", "tag": "other"}, None, ArtefactError, "finetune-other"),
    ],
    ids=str,
)
def test_bad_input_is_named(
    trained: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    content: str | None,
    error: type[Exception],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "new.csv").write_text(content)
    with pytest.raises(error, match=said):
        trained(**options)
