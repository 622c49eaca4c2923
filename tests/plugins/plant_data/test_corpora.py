"""`plant data`: make, stats, split, convert, check, info and drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import write_documents
from round_trips import write_format

from plant_cli.api import ColumnQuestion, DataError, Dataset, SilentReporter, UsageError


@pytest.fixture
def made(act: Any, tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    act("data make", dataset="synthetic-clinic", documents=100, labels=20, seed=0, output=str(path))
    return path


def test_make_writes_the_same_bytes_again_with_labels_and_evidence(
    act: Any, made: Path, tmp_path: Path
) -> None:
    assert {path.name for path in made.parent.iterdir()} == {
        "data.parquet",
        "data.labels.parquet",
        "data.evidence.parquet",
    }
    assert pl.read_parquet(made).columns == ["doc_id", "text", "labels", "split"]
    again = tmp_path / "again.parquet"
    act("data make", dataset="synthetic-clinic", documents=100, labels=20, seed=0, output=again)
    assert again.read_bytes() == made.read_bytes()
    act("data make", dataset="synthetic-clinic", documents=50, labels=20, output=made, force=True)
    assert pl.read_parquet(made).height == 50


def test_stats_say_what_is_there(act: Any, made: Path) -> None:
    result = act("data stats", data={"path": made})
    assert result.data["splits"]["train"]["documents"] == 75
    assert result.data["labels"] == 20
    assert ("documents", 75, 10, 15) in [tuple(row) for row in result.tables[0].rows]
    assert sum(row[1] for row in result.tables[1].rows) == 20  # type: ignore[misc]


def test_split_parts_all_documents_anew(act: Any, made: Path, tmp_path: Path) -> None:
    result = act(
        "data split", data={"path": made}, output=tmp_path / "out", test=0.2, validation=0.1, seed=1
    )
    assert result.data["documents"] == {"train": 70, "validation": 10, "test": 20}
    assert act("data stats", data={"path": tmp_path / "out"}).data["labels"] == 20


def test_split_keeps_groups_together(act: Any, tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {
            "doc_id": [str(i) for i in range(100)],
            "text": [f"text {i}" for i in range(100)],
            "labels": [["a"]] * 100,
        }
    )
    rows.with_columns(patient=pl.Series([f"p{i % 20}" for i in range(100)])).write_parquet(
        tmp_path / "notes.parquet"
    )
    act(
        "data split",
        data={"path": tmp_path / "notes.parquet", "group_column": "patient"},
        output=tmp_path / "s.parquet",
        test=0.3,
    )
    places = (
        pl.read_parquet(tmp_path / "s.parquet")
        .select(pl.col("doc_id").cast(pl.Int64) % 20, "split")
        .unique()
    )
    assert places["doc_id"].is_duplicated().sum() == 0
    assert places["split"].n_unique() == 3


def test_convert_puts_labels_right_and_warns_of_guesses(act: Any, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("body\tcodes\none\t a ;a;b\n")
    reporter = SilentReporter()
    data = {"text_column": "body", "labels_column": "codes"}
    act(
        "data convert",
        reporter=reporter,
        data=data,
        path=tmp_path / "x.tsv",
        output=tmp_path / "y.jsonl",
    )
    row = pl.read_ndjson(tmp_path / "y.jsonl").row(0, named=True)
    assert (row["text"], row["labels"]) == ("one", ["a", "b"])
    assert "split 80/10/10" in reporter.warnings[0]


@pytest.mark.parametrize("name", ["annif-jsonl", "annif-folder"])
def test_convert_writes_formats_of_other_tools_and_reads_them_by_content(
    act: Any, made: Path, tmp_path: Path, name: str
) -> None:
    reporter = SilentReporter()
    act(
        "data convert",
        reporter=reporter,
        path=made,
        output=tmp_path / "out",
        to=name,
        compression="gz",
    )
    assert any("gold evidence" in warning for warning in reporter.warnings)
    back = tmp_path / "back.parquet"
    result = act("data convert", reporter=reporter, path=tmp_path / "out", output=back)
    assert any(name in note for note in reporter.notes)
    before, after = pl.read_parquet(made), pl.read_parquet(back)
    assert result.data["documents"] == {"train": 75, "validation": 10, "test": 15}
    assert sorted(map(sorted, after["labels"].to_list())) == sorted(
        map(sorted, before["labels"].to_list())
    )
    titled = [
        dict(pl.read_parquet(path).select("label", "title").rows())
        for path in (tmp_path / "back.labels.parquet", made.parent / "data.labels.parquet")
    ]
    assert {label: titled[0][label] for row in after["labels"] for label in row}.items() <= titled[
        1
    ].items()


def test_convert_refuses_what_it_cannot_write(act: Any, made: Path, tmp_path: Path) -> None:
    act("data convert", path=made, output=tmp_path / "out", to="annif-csv")
    with pytest.raises(UsageError, match="there already"):
        act("data convert", path=made, output=tmp_path / "out", to="annif-csv")
    act("data convert", path=made, output=tmp_path / "out", to="annif-tsv", force=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "train.tsv",
        "validation.tsv",
        "test.tsv",
    }


@pytest.mark.parametrize("of", [1, 3])
@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_shares_of_convert_are_the_whole_together(
    act: Any, made: Path, tmp_path: Path, name: str, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.data.documents.DOCUMENTS_IN_MEMORY", 7)
    source = tmp_path / "from" / name
    act("data convert", path=made, output=source)
    whole = act("data convert", path=source, output=tmp_path / "whole")
    parts = [
        act("data convert", path=source, output=tmp_path / "parts", shard=f"{n}/{of}")
        for n in range(1, of + 1)
    ]
    for split, documents in whole.data["documents"].items():
        assert sum(part.data["documents"][split] for part in parts) == documents
    assignments = [
        sum(row[2] for part in parts for row in part.tables[0].rows if row[0] == split)
        for split in whole.data["documents"]
    ]  # type: ignore[misc]
    assert assignments == [row[2] for row in whole.tables[0].rows]
    for table in sorted((tmp_path / "whole").iterdir()):
        found = sorted((tmp_path / "parts").glob(f"{table.stem}-*")) or [
            tmp_path / "parts" / table.name
        ]
        assert pl.concat(pl.read_parquet(path) for path in found).equals(pl.read_parquet(table))
    joined = [
        act("data stats", data={"path": tmp_path / folder}).data for folder in ("whole", "parts")
    ]
    assert joined[0] == joined[1]


def test_a_share_that_is_missing_or_written_twice(act: Any, made: Path, tmp_path: Path) -> None:
    act("data convert", path=made, output=tmp_path / "x", shard="1/2")
    with pytest.raises(DataError, match="not all shards of the split test"):
        act("data stats", data={"path": tmp_path / "x"})
    with pytest.raises(UsageError, match="there already"):
        act("data convert", path=made, output=tmp_path / "x", shard="1/2")
    act("data convert", path=made, output=tmp_path / "x", shard="2/2")
    assert act("data stats", data={"path": tmp_path / "x"}).data["labels"] == 20


def test_bad_rows_are_left_out_with_a_warning(act: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "text,labels,split\na fever,a,train\nb,c,d,e\nsome cough,b,train\n"
    )
    data, reporter = {"path": tmp_path / "x.csv"}, SilentReporter()
    act("data stats", reporter=reporter, data={**data, "rejects": tmp_path / "rejects.tsv"})
    assert "1 rows cannot be read" in reporter.warnings[0]
    assert "4 fields" in (tmp_path / "rejects.tsv").read_text()


def test_every_command_finds_the_columns_as_train_does(act: Any, tmp_path: Path) -> None:
    """A table whose text and labels have their usual names keeps the ids that it had before."""
    rows = "".join(
        f"k{row},A text about {'hearts' if row % 2 else 'bones'} and case {row},{tags},me\n"
        for row, tags in enumerate(["Heart; Bone", "Bone", "Heart", "Stroke; Bone", "Stroke"] * 8)
    )
    (tmp_path / "data.csv").write_text(f"Key,Abstract Note,Manual Tags,Editor\n{rows}")
    out = tmp_path / "out.parquet"
    act("data convert", path=str(tmp_path / "data.csv"), output=str(out))
    found = pl.read_parquet(out).sort("doc_id")
    assert found["doc_id"][0] == "k0"
    assert set(found["labels"].explode()) == {"Heart", "Bone", "Stroke"}
    (tmp_path / "data.csv").write_text(f"Key,text,labels,Editor\n{rows}")
    act("data convert", path=str(tmp_path / "data.csv"), output=str(out), force=True)
    assert "1" in pl.read_parquet(out)["doc_id"]


def test_two_columns_that_fit_alike_are_both_named_by_every_command(
    act: Any, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text(
        "text,tags,keywords\n" + "some words of a text,a; b,c; d\nand of another,b,d\n" * 9
    )
    with pytest.raises(ColumnQuestion) as asked:
        act("data stats", data={"path": tmp_path / "data.csv"})
    assert asked.value.choices.keys() == {"tags", "keywords"}


def test_several_columns_of_text(act: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("title,abstract,labels,split\nA fever,with cough,a,train\n")
    act(
        "data convert",
        path=tmp_path / "x.csv",
        output=tmp_path / "y.parquet",
        data={"text_column": "title,abstract"},
    )
    assert pl.read_parquet(tmp_path / "y.parquet")["text"].to_list() == ["A fever\nwith cough"]


@pytest.fixture
def check(act: Any) -> Any:
    """`check(path, {section data}, **options)`."""
    return lambda path, data=None, **options: act(
        "data check", data={"path": path, **(data or {})}, **options
    )


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    path = tmp_path / "spoilt.csv"
    same = "the same text in two splits"
    path.write_text(
        f"doc_id,text,labels,split\np,{same},a,train\nq,{same},a;b,test\n"
        "r,another text altogether, A ,train\n"
    )
    return path


def test_a_sound_corpus(check: Any, made: Path) -> None:
    result = check(made, fail_on_warning=True)
    assert [finding for finding in result.data["findings"] if finding["level"] != "note"] == []
    assert result.failure is None


def test_what_is_wrong_is_listed_and_fail_on_warning_fails_after_the_table(
    check: Any, spoilt: Path
) -> None:
    result = check(spoilt)
    assert result.failure is None
    assert {finding["what"] for finding in result.data["findings"]} >= {
        "documents have a text that another split also has",
        "labels differ from another only by case, blanks, hidden characters or the form of accents",
    }
    failed = check(spoilt, fail_on_warning=True)
    assert failed.tables[0].rows == result.tables[0].rows
    assert failed.failure is not None
    assert (failed.failure.exit_code, "checks found something wrong" in failed.failure.what) == (
        4,
        True,
    )


def test_what_would_stop_a_run_is_listed_and_fails(check: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"doc_id": 1, "text": "", "labels": [], "split": "train"}\n' * 2
    )
    result = check(tmp_path / "x.jsonl")
    assert [finding["level"] for finding in result.data["findings"]][:3] == [
        "fatal",
        "fatal",
        "fatal",
    ]
    assert result.failure is not None
    assert result.failure.exit_code == 4


def test_gold_evidence(check: Any, made: Path) -> None:
    beside = made.parent / "data.evidence.parquet"
    evidence = pl.read_parquet(beside)
    evidence.with_columns(
        end=pl.when(pl.int_range(pl.len()) < 3).then(9999).otherwise("end")
    ).write_parquet(beside)
    worst, *_ = check(made).data["findings"]
    assert (worst["level"], worst["count"]) == ("fatal", 3)
    assert worst["what"] == "evidence spans lie outside the text of their document"


def test_a_cleaned_copy_passes_and_every_change_is_listed(
    check: Any, spoilt: Path, tmp_path: Path
) -> None:
    result = check(spoilt, fix=tmp_path / "clean.parquet")
    assert [Path(path).name for path in result.data["written"]] == [
        "clean.parquet",
        "clean.parquet.changes.tsv",
    ]
    changes = pl.read_csv(tmp_path / "clean.parquet.changes.tsv", separator="\t")
    assert changes.columns == ["split", "doc_id", "change"]
    assert "left out: another split has its text" in changes["change"].to_list()
    again = check(tmp_path / "clean.parquet")
    assert [finding for finding in again.data["findings"] if finding["level"] == "warning"] == []


def test_a_corpus_that_was_repaired_is_no_failure_and_says_how(check: Any, tmp_path: Path) -> None:
    path, clean = tmp_path / "x.csv", tmp_path / "clean.csv"
    rows = [
        "a,a text of some length,x,train",
        "a,another text of some length, x ,test",
        "b,,x,test",
        "c,another text of some length,x,test",
    ]
    path.write_text("doc_id,text,labels,split\n" + "\n".join(rows) + "\n")
    assert check(path).failure is not None
    result = check(path, fix=clean)
    assert result.failure is None
    assert result.next_step == f"plant mig {clean}"
    assert dict(result.tables[1].rows) == {
        "labels trimmed, repeated and empty ones removed": 1,
        "left out: it has no text": 1,
        "left out: it repeats one that has its labels now": 1,
        "got an id of its own": 1,
    }


def test_a_cleaned_copy_keeps_the_evidence_that_a_run_keeps(check: Any, tmp_path: Path) -> None:
    path, clean = tmp_path / "x.parquet", tmp_path / "clean.parquet"
    labels = [["heart failure", "asthma"], ["Heart Failure"], ["Heart Failure"]]
    texts = [f"a patient with heart failure and asthma, number {i} of {i * i}" for i in range(3)]
    pl.DataFrame(
        {"doc_id": ["a", "b", "c"], "text": texts, "labels": labels, "split": ["train"] * 3}
    ).write_parquet(path)
    spans = [
        ("a", "heart failure", 15, 28),
        ("b", "Heart Failure ", 15, 28),
        ("c", "asthma", 33, 39),
        ("c", "asthma", 0, 9),
    ]
    evidence = pl.DataFrame(spans, schema=["doc_id", "label", "start", "end"], orient="row")
    evidence.write_parquet(tmp_path / "x.evidence.parquet")
    result = check(path, fix=clean)
    kept = pl.read_parquet(tmp_path / "clean.evidence.parquet")
    assert kept.rows() == [("a", "Heart Failure", 15, 28), ("b", "Heart Failure", 15, 28)]
    assert dict(result.tables[1].rows)["left out: a span of evidence"] == 2
    changes = pl.read_csv(tmp_path / "clean.parquet.changes.tsv", separator="\t").rows()
    assert ("train", "c", "left out: a span of evidence of 'asthma', 33 to 39") in changes


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("b,,x,train\n", "the corpus holds no documents"),
        ("b,a text of some length,,train\nc,,x,train\n", "1 checks found something wrong"),
    ],
)
def test_a_copy_that_is_still_not_sound_is_a_failure(
    check: Any, tmp_path: Path, rows: str, said: str
) -> None:
    (tmp_path / "x.csv").write_text(f"doc_id,text,labels,split\n{rows}")
    result = check(tmp_path / "x.csv", fix=tmp_path / "clean.csv")
    assert result.tables[0].rows
    assert result.failure is not None
    assert (result.failure.exit_code, result.failure.what) == (4, said)
    assert result.failure.where == str(tmp_path / "clean.csv")


def test_fail_on_warning_judges_the_copy_too(check: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "doc_id,text,labels,split\na,a text of some length,x,train\nb,another text of some "
        "length,,train\n"
    )
    assert check(tmp_path / "x.csv", fix=tmp_path / "a.csv").failure is None
    failure = check(tmp_path / "x.csv", fix=tmp_path / "b.csv", fail_on_warning=True).failure
    assert failure is not None
    assert "documents have no label" in failure.todo


def test_a_backbone_to_compare_with(check: Any, made: Path) -> None:
    findings = check(made, backbone="tiny").data["findings"]
    assert all("twice" not in finding["what"] for finding in findings)
    cut = {"name": "tiny", "max_tokens": 8}
    found = check(made, backbone=cut).data["findings"]
    assert sum("longer than the backbone tiny reads" in finding["what"] for finding in found) == 3


def test_a_row_that_cannot_be_read_and_a_warning_are_two_options(check: Any, spoilt: Path) -> None:
    """Each fails for its own reason: --strict at the first bad row, --fail-on-warning after the
    table of findings.
    """
    assert check(spoilt, {"strict": True}).failure is None
    spoilt.write_text(spoilt.read_text() + "b,c,d,e,f\n")
    assert check(spoilt, fail_on_warning=True).tables[0].rows


def test_info_lists_corpora_and_shows_a_card(act: Any) -> None:
    assert {"eurlex-4k", "codiesp", "tibkat"} <= {row[0] for row in act("data info").tables[0].rows}
    result = act("data info", name="eurlex-4k")
    assert ("licence", result.data["licence"]) in [tuple(row) for row in result.tables[0].rows]
    assert [row[1] for row in result.tables[1].rows] == [15_449, 15_539]


def test_a_download_is_counted_beside_the_expected_counts(act: Any, tmp_path: Path) -> None:
    frame = pl.LazyFrame({"doc_id": ["1"], "text": ["a"], "labels": [["x"]]})
    write_format("pecos", Dataset(splits={"train": frame, "test": frame}), tmp_path)
    result = act("data info", name="eurlex-4k", path=tmp_path)
    assert result.data["found"] == {"train": 1, "test": 1, "labels": 1, "label names": 1}
    assert tuple(result.tables[1].rows[-1]) == ("your download", 1, None, 1, 1, 1)


def test_drift_names_labels_and_json_has_all_of_them(act: Any, tmp_path: Path) -> None:
    before = write_documents(
        tmp_path / "a.parquet",
        *(("train", f"fever and cough {'x' * i}", ["R50"]) for i in range(1, 41)),
    )
    labels = (["R50"], ["U07"])
    later = (("train", f"fever and covid {'y' * i}", labels[i % 2]) for i in range(1, 41))
    after = write_documents(tmp_path / "b.parquet", *later)
    (tmp_path / "v.csv").write_text("label,title\nU07,Covid-19\nR50,Fever\n")
    result = act(
        "data drift", before=before, after=after, limit=3, data={"vocabulary": tmp_path / "v.csv"}
    )
    titles = [table.title for table in result.tables]
    assert titles[0].endswith("b.parquet")
    assert "Labels that are assigned less often (1)" in titles
    assert "New labels (1)" in titles
    assert next(table for table in result.tables if table.title == "New labels (1)").rows == [
        ("U07", "Covid-19", 0, 0.0, 20, 0.5)
    ]
    assert result.data["unseen_share"] == 0.5
    assert {row["label"]: row["title"] for row in result.data["labels"]} == {
        "U07": "Covid-19",
        "R50": "Fever",
    }
    assert {"covid", "cough"} <= {row["word"] for row in result.data["words"]}
