"""`plant data check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import DataError, Request, Result, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage


def act(name: str, data: dict[str, Any], **options: Any) -> Result:
    flags = {name: options, "data": data}
    return run_stage(Request(registry=installed(), run_path=Path("nowhere"), flags=flags, reporter=SilentReporter()), name)


def check(path: Path, **options: Any) -> Result:
    return act("data check", {"path": str(path)}, **options)


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    act("data make", {}, dataset="synthetic-clinic", documents=100, labels=20, seed=0, output=str(path))
    return path


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    path = tmp_path / "spoilt.csv"
    same = "the same text in two splits"
    path.write_text(f"text,labels,split\n{same},a,train\n{same},a;b,test\nanother text altogether, A ,train\n")
    return path


def test_a_sound_corpus(clinic: Path) -> None:
    result = check(clinic, fail_on_warning=True)
    assert [finding for finding in result.data["findings"] if finding["level"] != "note"] == []
    assert result.failure is None


def test_what_is_wrong_is_listed_and_fail_on_warning_fails_after_the_table(spoilt: Path) -> None:
    result = check(spoilt)
    assert result.failure is None
    assert {finding["what"] for finding in result.data["findings"]} >= {
        "documents have a text that another split also has",
        "labels differ from another only by case or blanks",
    }
    failed = check(spoilt, fail_on_warning=True)
    assert failed.tables[0].rows == result.tables[0].rows
    assert failed.failure is not None
    assert (failed.failure.exit_code, "checks found something wrong" in failed.failure.what) == (4, True)


def test_what_would_stop_a_run_is_listed_and_fails(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"doc_id": 1, "text": "", "labels": [], "split": "train"}\n' * 2)
    result = check(tmp_path / "x.jsonl")
    assert [finding["level"] for finding in result.data["findings"]][:3] == ["fatal", "fatal", "fatal"]
    assert result.failure is not None
    assert result.failure.exit_code == 4


def test_gold_evidence(clinic: Path) -> None:
    beside = clinic.parent / "data.evidence.parquet"
    evidence = pl.read_parquet(beside)
    evidence.with_columns(end=pl.when(pl.int_range(pl.len()) < 3).then(9999).otherwise("end")).write_parquet(beside)
    worst, *_ = check(clinic).data["findings"]
    assert (worst["level"], worst["count"]) == ("fatal", 3)
    assert worst["what"] == "evidence spans lie outside the text of their document"


def test_a_cleaned_copy_passes_and_every_change_is_listed(spoilt: Path, tmp_path: Path) -> None:
    result = check(spoilt, fix=str(tmp_path / "clean.parquet"))
    assert [Path(path).name for path in result.data["written"]] == ["clean.parquet", "clean.parquet.changes.tsv"]
    changes = pl.read_csv(tmp_path / "clean.parquet.changes.tsv", separator="\t")
    assert changes.columns == ["split", "doc_id", "change"]
    assert "left out: another split has its text" in changes["change"].to_list()
    again = check(tmp_path / "clean.parquet")
    assert [finding for finding in again.data["findings"] if finding["level"] == "warning"] == []


def test_a_corpus_that_was_repaired_is_no_failure_and_says_how(tmp_path: Path) -> None:
    path, clean = tmp_path / "x.csv", tmp_path / "clean.csv"
    rows = [
        "a,a text of some length,x,train",
        "a,another text of some length, x ,test",
        "b,,x,test",
        "c,another text of some length,x,test",
    ]
    path.write_text("doc_id,text,labels,split\n" + "\n".join(rows) + "\n")
    assert check(path).failure is not None
    result = check(path, fix=str(clean))
    assert result.failure is None
    assert result.next_step == f"plant mig {clean}"
    assert dict(result.tables[1].rows) == {
        "labels trimmed, repeated and empty ones removed": 1,
        "left out: it has no text": 1,
        "left out: it repeats one that has its labels now": 1,
        "got an id of its own": 1,
    }


def test_a_cleaned_copy_keeps_the_evidence_that_a_run_keeps(tmp_path: Path) -> None:
    path, clean = tmp_path / "x.parquet", tmp_path / "clean.parquet"
    labels = [["heart failure", "asthma"], ["Heart Failure"], ["Heart Failure"]]
    texts = [f"a patient with heart failure and asthma, number {i} of {i * i}" for i in range(3)]
    pl.DataFrame({"doc_id": ["a", "b", "c"], "text": texts, "labels": labels, "split": ["train"] * 3}).write_parquet(path)
    spans = [("a", "heart failure", 15, 28), ("b", "Heart Failure ", 15, 28), ("c", "asthma", 33, 39), ("c", "asthma", 0, 9)]
    evidence = pl.DataFrame(spans, schema=["doc_id", "label", "start", "end"], orient="row")
    evidence.write_parquet(tmp_path / "x.evidence.parquet")
    result = check(path, fix=str(clean))
    kept = pl.read_parquet(tmp_path / "clean.evidence.parquet")
    assert kept.rows() == [("a", "Heart Failure", 15, 28), ("b", "Heart Failure", 15, 28)]
    assert dict(result.tables[1].rows)["left out: a span of evidence"] == 2
    changes = pl.read_csv(tmp_path / "clean.parquet.changes.tsv", separator="\t").rows()
    assert ("train", "c", "left out: a span of evidence of 'asthma', 33 to 39") in changes


@pytest.mark.parametrize(
    ("rows", "said"),
    [("b,,x,train\n", "the corpus holds no documents"), ("b,a text of some length,,train\nc,,x,train\n", "1 checks found something wrong")],
)
def test_a_copy_that_is_still_not_sound_is_a_failure(tmp_path: Path, rows: str, said: str) -> None:
    (tmp_path / "x.csv").write_text(f"doc_id,text,labels,split\n{rows}")
    result = check(tmp_path / "x.csv", fix=str(tmp_path / "clean.csv"))
    assert result.tables[0].rows
    assert result.failure is not None
    assert (result.failure.exit_code, result.failure.what) == (4, said)
    assert result.failure.where == str(tmp_path / "clean.csv")


def test_fail_on_warning_judges_the_copy_too(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("doc_id,text,labels,split\na,a text of some length,x,train\nb,another text of some length,,train\n")
    assert check(tmp_path / "x.csv", fix=str(tmp_path / "a.csv")).failure is None
    failure = check(tmp_path / "x.csv", fix=str(tmp_path / "b.csv"), fail_on_warning=True).failure
    assert failure is not None
    assert "documents have no label" in failure.todo


def test_a_backbone_to_compare_with(clinic: Path) -> None:
    findings = check(clinic, backbone="tiny").data["findings"]
    assert all("twice" not in finding["what"] for finding in findings)
    cut = {"name": "tiny", "max_tokens": 8}
    found = check(clinic, backbone=cut).data["findings"]
    assert sum("longer than the backbone tiny reads" in finding["what"] for finding in found) == 3


def test_strict_stops_at_rows_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels,split\na fever,a,train\nb,c,d,e\n")
    with pytest.raises(DataError, match="4 fields"):
        act("data check", {"path": str(tmp_path / "x.csv"), "strict": True})


def test_a_row_that_cannot_be_read_and_a_warning_are_two_options(spoilt: Path) -> None:
    """Each fails for its own reason: --strict at the first bad row, --fail-on-warning after the table of findings."""
    assert act("data check", {"path": str(spoilt), "strict": True}).failure is None
    spoilt.write_text(spoilt.read_text() + "b,c,d,e\n")
    assert check(spoilt, fail_on_warning=True).tables[0].rows
