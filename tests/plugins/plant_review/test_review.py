"""Sheets for reviewers, and training records from what they decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import Result, SilentReporter, UsageError
from plant_cli.data.tables import write_table
from plant_cli.scoring.review_sheets import REVIEW_COLUMNS


@pytest.fixture
def scored(prepared: Any, tmp_path: Path) -> Any:
    """`scored(**options)` runs `review export` of the test split, `scored.read(sheets, …)`
    reads what was decided.
    """
    clinic = prepared("scorers")

    def export(**options: Any) -> Result:
        return clinic("review export", flags={"review export": options})

    def read(
        rows: list[dict[str, Any]], reporter: SilentReporter | None = None, **options: Any
    ) -> tuple[Result, list[dict[str, Any]]]:
        sheet, out = tmp_path / "ann.jsonl", tmp_path / "corrected.jsonl"
        pl.DataFrame(rows).write_ndjson(sheet)
        given = {"sheets": [str(sheet)], "output": str(out), **options}
        found = clinic(
            "review import",
            flags={"review import": given},
            reporter=reporter or SilentReporter(),
            force=True,
        )
        return found, pl.read_ndjson(out).to_dicts()

    export.clinic, export.read = clinic, read  # type: ignore[attr-defined]
    return export


def row(doc_id: str, label: str, decision: str, **more: Any) -> dict[str, Any]:
    said = {
        "text": f"text of {doc_id}",
        "title": "",
        "band": "review",
        "who": "ann",
        "time": "2026-01-02",
        "decision": decision,
    }
    return {"doc_id": doc_id, "label": label, **said, **more}


def test_a_split_is_exported_with_evidence_and_a_few_other_labels(
    scored: Any, tmp_path: Path
) -> None:
    scored(output=str(tmp_path / "r.csv"), split="validation", others=2)
    frame = pl.read_csv(tmp_path / "r.csv")
    assert frame.columns == list(REVIEW_COLUMNS)
    assert frame.filter(band="reject").group_by("doc_id").len()["len"].max() == 2
    assert set(frame["decision"]) == {""}
    assert (frame["evidence"] != "").any()
    assert frame["text"].str.len_chars().max() <= 300
    assert (
        frame.group_by("doc_id", maintain_order=True)
        .agg(pl.col("score").is_sorted(descending=True))["score"]
        .all()
    )


def test_decisions_become_records(scored: Any) -> None:
    labels = list(pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"])
    a, b, c = labels[:3]
    rows = [
        row("1", a, "accept"),
        row("1", b, "reject"),
        row("1", c, "", band="assign"),
        row("2", a, "", band="assign"),
    ]
    found, records = scored.read(rows)
    assert records == [
        {"doc_id": "1", "text": "text of 1", "labels": [a], "reviewer": "ann", "time": "2026-01-02"}
    ]
    assert found.summary == {
        "documents": 1,
        "accepted": 1,
        "rejected": 1,
        "undecided": 2,
        "conflicts": 0,
    }
    _, records = scored.read(rows, undecided="keep")
    assert [(one["doc_id"], one["labels"], one["reviewer"]) for one in records] == [
        ("1", [c, a], "ann"),
        ("2", [a], ""),
    ]


def test_conflicts_are_listed_and_change_nothing(scored: Any) -> None:
    a, b, *_ = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"]
    found, records = scored.read(
        [
            row("1", a, "accept"),
            row("1", a, "reject", who="ben", time="2026-01-03"),
            row("1", b, "accept", who="ben"),
        ]
    )
    assert [(one["labels"], one["reviewer"]) for one in records] == [([b], "ben")]
    assert found.tables[1].rows == [["1", a, "", "ann: accept; ben: reject"]]
    assert found.data["conflicts"][0]["label"] == a


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-10-25T02:50:00+02:00", "2026-10-25T02:10:00+01:00"),  # the hour is repeated
        ("on Tuesday", "2026-01-01"),
    ],
)
def test_times_are_compared_as_moments(scored: Any, earlier: str, later: str) -> None:
    a, *_ = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"]
    rows = [row("1", a, "reject", time=later), row("1", a, "accept", time=earlier)]
    found, [record] = scored.read(rows)
    assert (found.summary["accepted"], found.summary["rejected"]) == (0, 1)
    assert record["time"] == later


def test_the_later_decision_of_one_person_counts(scored: Any) -> None:
    a, b, *_ = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"]
    rows = [
        row("1", a, "reject", time="2026-01-03"),
        row("1", a, "accept"),
        row("1", b, "accept"),
        row("1", b, "", time="2026-01-04"),
    ]
    found, [record] = scored.read(rows)
    assert (record["labels"], record["time"]) == ([b], "2026-01-03")
    assert (found.summary["accepted"], found.summary["rejected"], found.summary["conflicts"]) == (
        1,
        1,
        0,
    )


def test_a_decision_that_was_withdrawn_is_none(scored: Any) -> None:
    a, b, *_ = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"]
    rows = [
        row("new", a, "accept", time="2026-01-01"),
        row("new", b, "accept"),
        row("new", a, "withdraw"),
        row("other", a, "accept"),
        row("other", a, "withdraw"),  # within the same second
    ]
    found, records = scored.read(rows)
    assert [(one["doc_id"], one["labels"]) for one in records] == [("new", [b])]
    assert (found.data["accepted"], found.data["undecided"]) == (1, 2)


def test_rows_that_cannot_be_used_are_told_and_kept_aside(scored: Any, tmp_path: Path) -> None:
    frame = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")
    label, title = frame["label"][0], frame["title"][0]
    listener, sheet = SilentReporter(), tmp_path / "ann.jsonl"
    (tmp_path / "texts.csv").write_text("doc_id,text\n1,text of 1 and more\n")
    rows = [
        row("1", "", "accept", title=title, text=""),
        row("1", "retired", "accept"),
        row("one", label, "accept", text=""),
        row("1", "", "reject", title="?"),
    ]
    _, records = scored.read(rows, listener, texts=str(tmp_path / "texts.csv"))
    assert [(one["doc_id"], one["text"], one["labels"]) for one in records] == [
        ("1", "text of 1 and more", [label])
    ]
    aside = tmp_path / "corrected.aside.jsonl"
    assert listener.warnings == [
        f"the label is retired or unknown: 2 rows kept in {aside}, first 'retired' in {sheet}, "
        "row 2",
        f"the document is not known: 1 row kept in {aside}, first 'one' in {sheet}, row 3",
    ]
    assert pl.read_ndjson(aside)["why"].to_list() == ["the label is retired or unknown"] * 2 + [
        "the document is not known"
    ]


def test_an_import_that_was_killed_is_done_by_the_same_command(
    scored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"][0]
    sheet, out = tmp_path / "ann.jsonl", tmp_path / "corrected.jsonl"
    pl.DataFrame([row("1", label, "accept"), row("1", "retired", "accept")]).write_ndjson(sheet)
    flags = {"review import": {"sheets": [str(sheet)], "output": str(out)}}

    def end(table: pl.DataFrame, path: Path) -> None:
        if path == out:
            raise KeyboardInterrupt
        write_table(table, path)

    with monkeypatch.context() as patched:
        patched.setattr("plant_review.review.write_table", end)
        with pytest.raises(KeyboardInterrupt):
            scored.clinic("review import", flags=flags)
    aside = tmp_path / "corrected.aside.jsonl"
    assert aside.exists()
    scored.clinic("review import", flags=flags)
    assert out.exists()
    out.unlink()
    aside.write_text("of another import")
    with pytest.raises(UsageError, match="the output is there already"):
        scored.clinic("review import", flags=flags)
    assert not out.exists()


def test_a_row_with_its_whole_text_needs_no_other(scored: Any, tmp_path: Path) -> None:
    label = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"][0]
    (tmp_path / "texts.csv").write_text("doc_id,text\n1,another\n2,two\n")
    rows = [row("1", label, "accept"), row("2", label, "accept", text="")]
    _, records = scored.read(rows, texts=str(tmp_path / "texts.csv"))
    assert [(one["doc_id"], one["text"]) for one in records] == [("1", "text of 1"), ("2", "two")]


def test_corrections_go_into_the_corpus_of_the_reviewer(scored: Any, tmp_path: Path) -> None:
    a, b, c, d, *_ = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"]
    corpus, out, reporter = tmp_path / "corpus.csv", tmp_path / "out.csv", SilentReporter()
    corpus.write_text(
        f"doc_id,year,text,labels\n1,1999,text of 1,{a};{b}\n3,2001,text of "
        f"3,{c};{b}\n4,2002,Wholly different words,{a};{d}\n"
    )
    rows = [
        row("1", b, "reject"),
        row("1", c, "accept"),
        row("2", a, "accept"),
        row("4", b, "accept"),
        row("3", c, "accept"),
    ]
    rows += [row("3", b, "reject"), row("3", b, "accept", who="ben")]
    sheet = tmp_path / "ann.jsonl"
    pl.DataFrame(rows).write_ndjson(sheet)
    given = {"sheets": [str(sheet)], "output": str(out), "into": str(corpus)}
    found = scored.clinic("review import", flags={"review import": given}, reporter=reporter)
    assert out.read_text().splitlines() == [
        "doc_id,year,text,labels",
        f"1,1999,text of 1,{a};{c}",
        f"3,2001,text of 3,{c};{b}",
        f"4,2002,Wholly different words,{a};{d}",
        f"2,,text of 2,{a}",
    ]
    assert found.summary["conflicts"] == 1
    assert "the sheet shows another text of this document: 1 row kept in" in reporter.warnings[0]
    with pytest.raises(UsageError, match="the output would replace"):
        scored.read(rows, output=str(corpus), into=str(corpus))


def test_documents_of_the_run_keep_their_other_labels(scored: Any, tmp_path: Path) -> None:
    scored(output=str(tmp_path / "r.csv"), split="validation")
    frame = pl.read_csv(tmp_path / "r.csv", infer_schema=False)
    first = frame["doc_id"][0]
    frame.with_columns(
        decision=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("reject"))
    ).write_csv(tmp_path / "ben.csv")
    out = tmp_path / "c.jsonl"
    found = scored.clinic(
        "review import",
        flags={"review import": {"sheets": [str(tmp_path / "ben.csv")], "output": str(out)}},
    )
    [record] = pl.read_ndjson(out).to_dicts()
    assert (record["doc_id"], record["reviewer"], found.summary["rejected"]) == (first, "ben", 1)
    assert frame["label"][0] not in record["labels"]
    assert record["text"].startswith(frame["text"][0])


def test_a_document_of_the_run_with_the_same_id_but_another_text_is_not_corrected(
    scored: Any, tmp_path: Path
) -> None:
    scored(output=str(tmp_path / "r.csv"), split="validation")
    frame = (
        pl.read_csv(tmp_path / "r.csv", infer_schema=False)
        .head(2)
        .with_columns(decision=pl.lit("accept"))
    )
    texts = [frame["text"][0].replace("e", "?"), "Wholly different words"]
    frame.with_columns(text=pl.Series(texts)).write_csv(tmp_path / "ben.csv")
    listener, given = (
        SilentReporter(),
        {"sheets": [str(tmp_path / "ben.csv")], "output": str(tmp_path / "c.jsonl")},
    )
    found = scored.clinic("review import", flags={"review import": given}, reporter=listener)
    assert found.summary["accepted"] == 1
    assert listener.warnings[0].startswith(
        "the sheet shows another text of this document: 1 row kept in"
    )


def test_no_output_replaces_what_is_read(scored: Any, tmp_path: Path) -> None:
    sheet = tmp_path / "ann.jsonl"
    with pytest.raises(UsageError, match="the output would replace"):
        scored.read([row("1", "a", "accept")], output=f"{tmp_path}/./ann.jsonl")
    assert len(pl.read_ndjson(sheet)) == 1
    with pytest.raises(UsageError, match="the output would replace"):
        scored(path=str(sheet), output=f"{tmp_path}/./ann.jsonl")


def test_without_a_decision_there_is_nothing_to_write(scored: Any) -> None:
    label = pl.read_parquet(scored.clinic.path / "corpus" / "labels.parquet")["label"][0]
    with pytest.raises(UsageError, match="no document has a decision that can be used"):
        scored.read([row("1", label, "")])
    with pytest.raises(UsageError, match=r"used; the label is retired or unknown \(1 row\)"):
        scored.read([row("1", "retired", "accept")])
    with pytest.raises(UsageError, match="standard input cannot be read again"):
        scored(path="-", output="r.csv")
