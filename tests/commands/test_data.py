from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import ArtefactError, ComponentError, DataError, PlantError, RecipeError, Request, Result, SilentReporter, UsageError
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage


def act(name: str, reporter: SilentReporter | None = None, data: dict[str, Any] | None = None, **options: Any) -> Result:
    name, force = f"data {name}", options.pop("force", False)
    flags = {name: options, "data": data or {}}
    reporter = reporter or SilentReporter()
    return run_stage(Request(registry=installed(), run_path=Path("nowhere"), flags=flags, reporter=reporter, force=force), name)


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    act("make", dataset="synthetic-clinic", documents=100, labels=20, seed=0, output=str(path))
    return path


def test_make_writes_the_corpus_with_labels_and_evidence_beside_it(clinic: Path) -> None:
    assert {path.name for path in clinic.parent.iterdir()} == {"data.parquet", "data.labels.parquet", "data.evidence.parquet"}
    assert pl.read_parquet(clinic).columns == ["doc_id", "text", "labels", "split"]


def test_make_is_repeatable_byte_for_byte(clinic: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.parquet"
    act("make", dataset="synthetic-clinic", documents=100, labels=20, seed=0, output=str(again))
    assert again.read_bytes() == clinic.read_bytes()


def test_make_refuses_to_overwrite_and_to_run_what_is_no_generator(clinic: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there already"):
        act("make", dataset="synthetic-clinic", output=str(clinic))
    act("make", dataset="synthetic-clinic", documents=50, labels=20, output=str(clinic), force=True)
    assert pl.read_parquet(clinic).height == 50
    with pytest.raises(ComponentError, match="'files' does not take documents"):
        act("make", dataset="files", documents=10, output=str(tmp_path / "x.csv"))
    with pytest.raises(ComponentError, match="no dataset named 'synthetic'"):
        act("make", dataset="synthetic", output=str(tmp_path / "x.csv"))


def test_stats_say_what_is_there(clinic: Path) -> None:
    result = act("stats", data={"path": str(clinic)})
    assert result.data["splits"]["train"]["documents"] == 75
    assert result.data["labels"] == 20
    assert ("documents", 75, 10, 15) in [tuple(row) for row in result.tables[0].rows]
    assert sum(row[1] for row in result.tables[1].rows) == 20  # type: ignore[misc]


def test_stats_need_training_documents(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels,split\nx,a,test\n")
    with pytest.raises(DataError, match="no training documents"):
        act("stats", data={"path": str(tmp_path / "x.csv")})


def test_split_parts_all_documents_anew(clinic: Path, tmp_path: Path) -> None:
    result = act("split", data={"path": str(clinic)}, output=str(tmp_path / "out"), test=0.2, validation=0.1, seed=1)
    assert result.data["documents"] == {"train": 70, "validation": 10, "test": 20}
    assert act("stats", data={"path": str(tmp_path / "out")}).data["labels"] == 20
    with pytest.raises(UsageError, match="leave no document to train on"):
        act("split", data={"path": str(clinic)}, output="x", test=0.6, validation=0.4)


def test_split_keeps_groups_together(tmp_path: Path) -> None:
    rows = pl.DataFrame({"doc_id": [str(i) for i in range(100)], "text": [f"text {i}" for i in range(100)], "labels": [["a"]] * 100})
    rows.with_columns(patient=pl.Series([f"p{i % 20}" for i in range(100)])).write_parquet(tmp_path / "notes.parquet")
    act("split", data={"path": str(tmp_path / "notes.parquet"), "group_column": "patient"}, output=str(tmp_path / "s.parquet"), test=0.3)
    places = pl.read_parquet(tmp_path / "s.parquet").select(pl.col("doc_id").cast(pl.Int64) % 20, "split").unique()
    assert places["doc_id"].is_duplicated().sum() == 0
    assert places["split"].n_unique() == 3


def test_convert_puts_labels_right_and_warns_of_guesses(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("body\tcodes\none\t a ;a;b\n")
    reporter = SilentReporter()
    data = {"text_column": "body", "labels_column": "codes"}
    act("convert", reporter, data=data, path=str(tmp_path / "x.tsv"), output=str(tmp_path / "y.jsonl"))
    row = pl.read_ndjson(tmp_path / "y.jsonl").row(0, named=True)
    assert (row["text"], row["labels"]) == ("one", ["a", "b"])
    assert "split 80/10/10" in reporter.warnings[0]


@pytest.mark.parametrize("name", ["stats", "check"])
def test_no_corpus_is_a_matter_of_usage(name: str) -> None:
    with pytest.raises(UsageError, match="no corpus was named"):
        act(name)


def test_bad_input_reaches_the_user_in_four_parts(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(PlantError) as caught:
        act("stats", data={"path": str(tmp_path / "x.parquet")})
    assert not isinstance(caught.value, ArtefactError)
    assert all((caught.value.what, caught.value.where, caught.value.expected, caught.value.todo))


def test_an_output_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=r"'data make\.output' cannot be ''"):
        act("make", dataset="synthetic-clinic", output="")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["annif-jsonl", "annif-folder"])
def test_convert_writes_formats_of_other_tools_and_reads_them_by_content(clinic: Path, tmp_path: Path, name: str) -> None:
    reporter = SilentReporter()
    act("convert", reporter, path=str(clinic), output=str(tmp_path / "out"), to=name, compression="gz")
    assert any("gold evidence" in warning for warning in reporter.warnings)
    back = tmp_path / "back.parquet"
    result = act("convert", reporter, path=str(tmp_path / "out"), output=str(back))
    assert any(name in note for note in reporter.notes)
    before, after = pl.read_parquet(clinic), pl.read_parquet(back)
    assert result.data["documents"] == {"train": 75, "validation": 10, "test": 15}
    assert sorted(map(sorted, after["labels"].to_list())) == sorted(map(sorted, before["labels"].to_list()))
    titled = [
        dict(pl.read_parquet(path).select("label", "title").rows())
        for path in (tmp_path / "back.labels.parquet", clinic.parent / "data.labels.parquet")
    ]
    assert {label: titled[0][label] for row in after["labels"] for label in row}.items() <= titled[1].items()


def test_convert_refuses_what_it_cannot_write(clinic: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'synthetic-clinic' has no writer"):
        act("convert", path=str(clinic), output=str(tmp_path / "out"), to="synthetic-clinic")
    act("convert", path=str(clinic), output=str(tmp_path / "out"), to="annif-csv")
    with pytest.raises(UsageError, match="there already"):
        act("convert", path=str(clinic), output=str(tmp_path / "out"), to="annif-csv")
    act("convert", path=str(clinic), output=str(tmp_path / "out"), to="annif-tsv", force=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"train.tsv", "validation.tsv", "test.tsv"}


@pytest.mark.parametrize("of", [1, 3])
@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_shares_of_convert_are_the_whole_together(
    clinic: Path, tmp_path: Path, name: str, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.data.documents.BATCH", 7)
    source = tmp_path / "from" / name
    act("convert", path=str(clinic), output=str(source))
    whole = act("convert", path=str(source), output=str(tmp_path / "whole"))
    parts = [act("convert", path=str(source), output=str(tmp_path / "parts"), shard=f"{n}/{of}") for n in range(1, of + 1)]
    for split, documents in whole.data["documents"].items():
        assert sum(part.data["documents"][split] for part in parts) == documents
    assignments = [sum(row[2] for part in parts for row in part.tables[0].rows if row[0] == split) for split in whole.data["documents"]]  # type: ignore[misc]
    assert assignments == [row[2] for row in whole.tables[0].rows]
    for table in sorted((tmp_path / "whole").iterdir()):
        found = sorted((tmp_path / "parts").glob(f"{table.stem}-*")) or [tmp_path / "parts" / table.name]
        assert pl.concat(pl.read_parquet(path) for path in found).equals(pl.read_parquet(table))
    joined = [act("stats", data={"path": str(tmp_path / folder)}).data for folder in ("whole", "parts")]
    assert joined[0] == joined[1]


def test_shares_of_convert_that_cannot_be(clinic: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="written into one folder"):
        act("convert", path=str(clinic), output=str(tmp_path / "x.parquet"), shard="1/2")
    with pytest.raises(UsageError, match="written as tables"):
        act("convert", path=str(clinic), output=str(tmp_path / "x"), to="annif-csv", shard="1/2")
    with pytest.raises(RecipeError, match="cannot be '3/2'"):
        act("convert", path=str(clinic), output=str(tmp_path / "x"), shard="3/2")
    act("convert", path=str(clinic), output=str(tmp_path / "x"), shard="1/2")
    with pytest.raises(DataError, match="not all shards of the split test"):
        act("stats", data={"path": str(tmp_path / "x")})
    with pytest.raises(UsageError, match="there already"):
        act("convert", path=str(clinic), output=str(tmp_path / "x"), shard="1/2")
    act("convert", path=str(clinic), output=str(tmp_path / "x"), shard="2/2")
    assert act("stats", data={"path": str(tmp_path / "x")}).data["labels"] == 20


def test_bad_rows_are_left_out_with_a_warning_kept_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels,split\na fever,a,train\nb,c,d,e\nsome cough,b,train\n")
    data, reporter = {"path": str(tmp_path / "x.csv")}, SilentReporter()
    act("stats", reporter, data={**data, "rejects": str(tmp_path / "rejects.tsv")})
    assert "1 rows cannot be read" in reporter.warnings[0]
    assert "4 fields" in (tmp_path / "rejects.tsv").read_text()
    with pytest.raises(DataError, match="4 fields"):
        act("stats", data={**data, "strict": True})


def test_several_columns_of_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("title,abstract,labels,split\nA fever,with cough,a,train\n")
    act("convert", path=str(tmp_path / "x.csv"), output=str(tmp_path / "y.parquet"), data={"text_column": "title,abstract"})
    assert pl.read_parquet(tmp_path / "y.parquet")["text"].to_list() == ["A fever\nwith cough"]
    with pytest.raises(DataError, match="no column 'abstrakt'"):
        act("stats", data={"path": str(tmp_path / "x.csv"), "text_column": "title,abstrakt"})
