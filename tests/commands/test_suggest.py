"""Labels for new texts: the same scores as `predict`, from a table or a text, on screen or in a
file; bad input is named.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from builders import record_again
from plant_formats.synthetic_clinic import generate
from scipy.sparse import load_npz

from plant_cli.api import DataError, ResourceError, SilentReporter, UsageError
from plant_cli.data.printed_tables import format_cell
from plant_cli.scoring import suggestion_files
from plant_cli.scoring.fused_scorers import FusedScorers
from plant_cli.scoring.opened_models import open_model
from plant_cli.scoring.suggested_documents import (
    KeptDocuments,
    SuggestedDocument,
    Suggesting,
    keeping,
    round_score,
)
from plant_cli.scoring.suggestion_files import find_form, write_suggestions


@pytest.fixture
def trained(prepared: Any) -> Any:
    clinic = prepared("planted")

    def suggest(*, reporter: Any = None, **options: Any) -> Any:
        return clinic("suggest", reporter=reporter or SilentReporter(), flags={"suggest": options})

    suggest.run = clinic
    return suggest


@pytest.fixture
def listener() -> SilentReporter:
    return SilentReporter()


def heard(listener: SilentReporter) -> list[str]:
    """The warnings, but for those that a text tells the model little: the clinic knows no
    English.
    """
    return [warning for warning in listener.warnings if "tell the model" not in warning]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"doc_id": [["a", "b"]], "text": ["fever"]}, "'doc_id' holds lists or objects"),
        ({"doc_id": [{"a": 1}], "text": ["fever"]}, "'doc_id' holds lists or objects"),
        ({"doc_id": [b"\xff"], "text": ["fever"]}, "'doc_id' holds bytes"),
        ({"doc_id": ["a"], "text": [["fever", "cough"]]}, "'text' holds lists or objects"),
        ({"text": [timedelta(1)]}, "the column 'text' holds bytes or times"),
    ],
)
def test_columns_that_are_no_text_are_named(
    trained: Any, tmp_path: Path, frame: dict[str, list[Any]], said: str
) -> None:
    table = tmp_path / "new.parquet"
    pl.DataFrame(frame).write_parquet(table)
    with pytest.raises(DataError, match=said) as caught:
        trained(path=str(table))
    assert str(table) in caught.value.where


def test_the_micro_batch_changes_nothing_and_the_best_labels_come_first(
    trained: Any, tmp_path: Path
) -> None:
    generate(documents=120, labels=12, seed=3).splits["test"].collect().select(
        "doc_id", "text"
    ).write_csv(tmp_path / "new.csv")
    one, many = (
        trained(path=str(tmp_path / "new.csv"), micro_batch=size, top_k=3).tables[0].rows
        for size in (1, 64)
    )
    assert [row[:3] for row in one] == [row[:3] for row in many]
    assert [row[3] for row in one[:3]] == sorted((row[3] for row in one[:3]), reverse=True)
    assert {row[5] for row in one} <= {"assign", "review", "reject"}


def test_the_answers_to_all_shares_are_those_to_all_texts(trained: Any, tmp_path: Path) -> None:
    texts = tmp_path / "new.parquet"
    rows = range(7)
    pl.DataFrame({"doc_id": [f"d{row}" for row in rows], "text": ["fever"] * 7}).write_parquet(
        texts
    )
    trained(path=str(texts), output=str(tmp_path / "whole.parquet"))
    for number in (1, 2, 3):
        part = str(tmp_path / f"part-{number}.parquet")
        trained(path=str(texts), output=part, shard=f"{number}/3")
    assert pl.read_parquet(tmp_path / "part-2.parquet")["doc_id"].to_list() == ["d2", "d3"]
    parts = pl.read_parquet(tmp_path / "part-*.parquet")
    assert parts.equals(pl.read_parquet(tmp_path / "whole.parquet"))


def test_texts_and_labels_of_an_object_store(
    trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = fsspec.filesystem("memory")
    store.mkdir("clinic")
    frame = pl.DataFrame({"doc_id": ["a", "b"], "text": ["fever", "cough"]})
    frame.write_parquet(tmp_path / "new.parquet")
    store.put_file(str(tmp_path / "new.parquet"), "clinic/new.parquet")
    trained(path=str(tmp_path / "new.parquet"), output=str(tmp_path / "here.parquet"))
    trained(path="memory://clinic/new.parquet", output="memory://clinic/labels.parquet")
    found = pl.read_parquet(store.cat_file("clinic/labels.parquet"))
    assert found.equals(pl.read_parquet(tmp_path / "here.parquet"))
    with pytest.raises(UsageError, match="would replace"):
        trained(path="memory://clinic/new.parquet", output="memory://clinic/new.parquet")


def test_a_stream_has_no_shares(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.BytesIO(b'{"text": "fever"}\n')
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines))
    with pytest.raises(UsageError, match="a stream has no shares"):
        trained(path="-", shard="1/2")


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


def test_new_texts_are_in_utf8_or_in_the_encoding_that_is_named(
    trained: Any, tmp_path: Path
) -> None:
    """The run's corpus may have come in another one."""
    table = "doc_id,text\n1,fièvre and cough\n"
    (tmp_path / "utf8.csv").write_text(table, encoding="utf-8")
    (tmp_path / "old.csv").write_text(table, encoding="cp1252")
    expected = trained(path=str(tmp_path / "utf8.csv")).tables[0].rows
    assert trained(path=str(tmp_path / "old.csv"), encoding="cp1252").tables[0].rows == expected
    with pytest.raises(DataError, match="not UTF-8") as caught:
        trained(path=str(tmp_path / "old.csv"))
    assert "--encoding" in caught.value.what


def test_scores_far_below_a_hundredth_can_be_told_from_the_threshold(trained: Any) -> None:
    path = trained.run.path / "finetune" / "bands.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"value": [4.1234e-10] * len(content["value"])}))
    record_again(path.parent)
    table = trained(text="fever and cough", top_k=3).tables[0]
    assert [column.name for column in table.columns] == [
        "document",
        "label",
        "title",
        "score",
        "threshold",
        "band",
    ]
    for row in table.rows:
        assert float(f"{row[3]:.3g}") == row[3]
        assert row[4:] == [4.12e-10, "assign"]
        assert format_cell(row[4], table.columns[4]) == "4.12e-10"


@pytest.mark.parametrize(
    ("score", "shown"),
    [(0.12345, 0.123), (4.5678e-5, 4.57e-5), (0.99951, 0.9995), (0.99998, 0.99998), (1.0, 1.0)],
)
def test_only_certainty_is_shown_as_certain(score: float, shown: float) -> None:
    assert round_score(score) == shown


def test_titles_and_what_is_assigned_stand_in_the_file(trained: Any, tmp_path: Path) -> None:
    shown = trained(text="fever and cough", top_k=3)
    for name in ("out.csv", "out.parquet", "out.jsonl"):
        written = trained(text="fever and cough", top_k=3, output=str(tmp_path / name))
        assert written.tables == ()
        assert written.data == {"written": [str(tmp_path / name)], **shown.summary}
    columns = ["doc_id", "labels", "titles", "scores", "bands"]
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.columns == pl.read_ndjson(tmp_path / "out.jsonl").columns == columns
    row = found.row(0, named=True)
    assert row["titles"] == [cells[2] for cells in shown.tables[0].rows]
    assert row["bands"] == [cells[5] for cells in shown.tables[0].rows]
    pairs = pl.read_csv(tmp_path / "out.csv")
    assert pairs.columns == ["doc_id", "rank", "label", "title", "score", "threshold", "band"]
    assert pairs["rank"].to_list() == [1, 2, 3]
    assert pairs["label"].to_list() == row["labels"]
    assert pairs["title"].to_list() == row["titles"]
    assert pairs["score"].to_list() == pytest.approx(row["scores"])
    assert pairs["band"].to_list() == row["bands"]


DOCUMENTS = (
    SuggestedDocument(
        doc_id="a",
        labels=["flu", "cold"],
        titles=["=Flu", None],
        scores=[0.5, 0.4],
        thresholds=[0.25, None],
        bands=["assign", "review"],
        why=["words +1.0 (cough)", ""],
        heading="A cough",
        text="A cough since Monday",
    ),
    SuggestedDocument(doc_id="b"),
)


def test_a_table_of_pairs_has_a_row_for_a_document_without_suggestions(tmp_path: Path) -> None:
    write_suggestions(tmp_path / "out.tsv", DOCUMENTS, ".tsv", [], ["why"])
    assert (tmp_path / "out.tsv").read_text().splitlines() == [
        "doc_id\trank\tlabel\ttitle\tscore\tthreshold\tband",
        "a\t1\tflu\t'=Flu\t0.5\t0.25\tassign",
        "a\t2\tcold\t\t0.4\t\treview",
        "b\t\t\t\t\t\t",
    ]


def test_columns_that_nothing_is_in_are_not_written(tmp_path: Path) -> None:
    write_suggestions(tmp_path / "out.parquet", DOCUMENTS, ".parquet", [], ["title", "why"])
    rows = pl.read_parquet(tmp_path / "out.parquet").rows()
    assert rows == [("a", ["flu", "cold"], [0.5, 0.4], ["assign", "review"]), ("b", [], [], [])]


def test_json_lines_on_standard_input_are_answered_one_by_one(
    trained: Any, monkeypatch: pytest.MonkeyPatch, listener: SilentReporter
) -> None:
    """The answer to a line is there before the next line is read; one that cannot be read has
    an answer, too.
    """
    order: list[str] = []

    class Asking(io.BytesIO):
        lines = iter([b'{"doc_id": "a", "text": "fever"}\n', b"{\n", b'{"text": "cough"}', b""])

        def read1(self, size: int | None = -1) -> bytes:
            order.append("asked")
            return next(self.lines)

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Asking()))
    given = {"path": "-", "top_k": 2, "threshold": 1e-9}
    found = trained.run("suggest", reporter=listener, speak=order.append, flags={"suggest": given})
    assert [one if one == "asked" else json.loads(one)["doc_id"] for one in order] == [
        "asked",
        "a",
        "asked",
        "2",
        "asked",
        "asked",
        "3",
    ]
    assert (found.tables, found.summary["documents"]) == ((), 3)
    assert "standard input, line 2 cannot be read: it is not JSON in UTF-8" in listener.warnings


def test_a_stopped_command_goes_on_after_the_last_whole_text(
    trained: Any, monkeypatch: pytest.MonkeyPatch, listener: SilentReporter, tmp_path: Path
) -> None:
    new, out, part = tmp_path / "new.csv", tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    generate(documents=120, labels=12, seed=3).splits["test"].collect().select(
        "doc_id", "text"
    ).write_csv(new)
    trained(path=str(new), output=str(tmp_path / "whole.jsonl"))
    read: list[list[str]] = []
    suggest = Suggesting.suggest

    def stop(self: Suggesting, ids: list[str], texts: list[str]) -> Any:
        read.append(ids)
        if len(read) == 3:
            raise KeyboardInterrupt
        return suggest(self, ids, texts)

    monkeypatch.setattr(suggestion_files, "TEXTS_TOGETHER", 5 * suggestion_files.NETWORK_SHARE)
    monkeypatch.setattr(Suggesting, "suggest", stop)
    with pytest.raises(KeyboardInterrupt):
        trained(path=str(new), output=str(out), reporter=listener)
    assert (
        f"10 texts are done and kept in {part}: the same command goes on after them"
        in listener.notes
    )
    part.write_bytes(part.read_bytes()[:-9])  # killed while it wrote
    with pytest.raises(
        UsageError, match="the beginning of other suggestions: the model or the options differ"
    ):
        trained(path=str(new), output=str(out), top_k=3)
    trained(path=str(new), output=str(out), reporter=listener)
    assert f"goes on after 9 texts, which are kept in {part}" in listener.notes
    assert read[3] == [read[1][-1]]
    ours, whole = pl.read_ndjson(out), pl.read_ndjson(tmp_path / "whole.jsonl")
    assert ours.drop("scores").equals(whole.drop("scores"))
    assert ours["scores"].explode().to_list() == pytest.approx(
        whole["scores"].explode().to_list(), abs=1e-5
    )
    assert not part.exists()


def test_other_texts_are_not_joined_to_a_beginning(tmp_path: Path) -> None:
    kept = KeptDocuments(tmp_path / "x.part", {}, anew=False)
    kept.add(DOCUMENTS)
    again = KeptDocuments(tmp_path / "x.part", {}, anew=False)
    assert (list(again), again.number) == (list(DOCUMENTS), 2)
    with pytest.raises(UsageError, match="the texts differ"):
        list(again.skip(iter([(["a"], ["another text"])])))
    assert KeptDocuments(tmp_path / "x.part", {}, anew=True).number == 0


def test_two_commands_do_not_write_the_same_suggestions(tmp_path: Path) -> None:
    with keeping(tmp_path / "x.csv", {}, SilentReporter(), anew=False) as kept:
        kept.add(DOCUMENTS)
        second = keeping(tmp_path / "x.csv", {}, SilentReporter(), anew=True)
        with pytest.raises(ResourceError, match="another command writes these suggestions"), second:
            pass
        assert list(kept) == list(DOCUMENTS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "to"),
    [
        *[
            (name, None)
            for name in ("out.parquet", "out.jsonl", "out.csv", "out.tsv", "out.trec", "out.npz")
        ],
        ("out.json", "annif"),
        ("out.jsonl.gz", None),
        ("out.txt", "xml"),
        ("out.txt", "trec"),
    ],
)
def test_the_file_is_read_by_eval(trained: Any, tmp_path: Path, name: str, to: str | None) -> None:
    test = generate(documents=120, labels=12, seed=3).splits["test"].collect()
    test.select("doc_id", "text").write_parquet(tmp_path / "new.parquet")
    output = tmp_path / name
    trained(path=str(tmp_path / "new.parquet"), top_k=12, output=str(output), to=to)
    order = output.with_name(f"{name}.labels.txt")
    given = {
        "predictions": str(output),
        "bootstrap": 0,
        **({"label_order": str(order)} if order.exists() else {}),
    }
    ours, theirs = (
        trained.run("eval", tag=tag, flags={"eval": options}).data
        for tag, options in ((None, {"bootstrap": 0}), ("x", given))
    )
    assert (to == "xml" or name.endswith(".npz")) == order.exists()
    assert theirs["documents"] == len(test)
    for metric in ("P@5", "nDCG@5", "R@10"):
        assert theirs["metrics"][metric]["value"] == pytest.approx(ours["metrics"][metric]["value"])


def test_other_tools_get_what_they_read(tmp_path: Path) -> None:
    labels = ["cold", "cough", "flu"]
    for name, form in (
        ("a.jsonl", "annif"),
        ("a.json", "annif"),
        ("a.trec", "trec"),
        ("a.txt", "xml"),
        ("a.npz", "npz"),
    ):
        write_suggestions(
            tmp_path / name, DOCUMENTS, find_form(tmp_path / name, form, force=False), labels
        )
    entries = [
        {
            "document_id": "a",
            "results": [
                {"uri": "flu", "label": "=Flu", "notation": None, "score": 0.5},
                {"uri": "cold", "label": "cold", "notation": None, "score": 0.4},
            ],
        },
        {"document_id": "b", "results": []},
    ]
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == entries
    assert json.loads((tmp_path / "a.json").read_text()) == entries
    assert (
        tmp_path / "a.trec"
    ).read_text() == "a\tQ0\tflu\t1\t0.5\tplant\na\tQ0\tcold\t2\t0.4\tplant\n"
    assert (tmp_path / "a.txt").read_text() == "2 3\n2:0.5 0:0.4\n\n"
    assert load_npz(tmp_path / "a.npz").toarray().tolist() == [[0.4, 0.0, 0.5], [0.0, 0.0, 0.0]]
    assert (
        (tmp_path / "a.npz.labels.txt").read_text()
        == (tmp_path / "a.txt.labels.txt").read_text()
        == "cold\ncough\nflu\n"
    )
    write_suggestions(
        tmp_path / "b.trec", [replace(DOCUMENTS[0], doc_id="a\tb\n c")], "trec", labels
    )
    assert (tmp_path / "b.trec").read_text().startswith("a%09b%0A c\tQ0\tflu\t")
    with pytest.raises(UsageError, match="already"):
        find_form(tmp_path / "a.txt", "xml", force=False)
    with pytest.raises(UsageError, match="the format npz has another name"):
        find_form(tmp_path / "b.txt", "npz", force=False)


def test_annifs_json_on_the_screen_and_a_format_without_a_file(trained: Any) -> None:
    said: list[str] = []
    trained.run(
        "suggest",
        speak=said.append,
        flags={"suggest": {"text": "fever", "to": "annif", "top_k": 1}},
    )
    [entry] = map(json.loads, said)
    assert (entry["document_id"], len(entry["results"])) == ("text", 1)
    with pytest.raises(UsageError, match="no file is named for the format trec"):
        trained(text="fever", to="trec")


def test_predictions_are_written_in_these_formats_too(trained: Any, tmp_path: Path) -> None:
    trained.run("predict", flags={"predict": {"output": str(tmp_path / "p.trec"), "top_k": 3}})
    expected = pl.read_parquet(trained.run.path / "predict" / "predictions.parquet")
    lines = [line.split("\t") for line in (tmp_path / "p.trec").read_text().splitlines()]
    assert [line[2] for line in lines] == expected["labels"].explode().to_list()
    assert [float(line[4]) for line in lines] == expected["scores"].explode().to_list()


def test_the_ids_of_the_runs_corpus_are_not_lost(
    clinic: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    clinic("mig", "data.id_column=case_id")
    clinic(
        "finetune",
        "data.id_column=case_id",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
    )
    table, out = tmp_path / "new.csv", tmp_path / "out.parquet"
    table.write_text("CASE_ID,text\n17,fever\n4,cough\n")
    with pytest.raises(DataError, match="no column 'case_id'") as caught:
        clinic("suggest", flags={"suggest": {"path": str(table), "output": str(out)}})
    assert "did you mean 'CASE_ID'?" in caught.value.expected
    assert "--id-column" in caught.value.todo
    assert not out.exists()
    given = {"path": str(table), "output": str(out), "id_column": "CASE_ID"}
    clinic("suggest", flags={"suggest": given}, reporter=listener)
    assert pl.read_parquet(out)["doc_id"].to_list() == ["17", "4"]
    table.write_text("case_id,text\n21,fever\n")
    clinic(
        "suggest", flags={"suggest": {**given, "id_column": None}}, reporter=listener, force=True
    )
    assert pl.read_parquet(out)["doc_id"].to_list() == ["21"]
    assert listener.warnings == []


def test_rows_are_never_numbered_in_silence_where_there_may_be_ids(
    trained: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("CASE_ID,sex,text\n17,f,fever\n4,f,cough\n")
    trained(path=str(table), reporter=listener)
    (warning,) = heard(listener)
    assert "numbered by row" in warning
    assert "'CASE_ID'" in warning
    assert "'sex'" not in warning
    table.write_text("text\nfever\ncough\n")
    trained(path=str(table), reporter=listener)
    assert len(heard(listener)) == 1


def test_ids_that_repeat_or_are_missing_are_told(
    trained: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("doc_id,text\na,fever\nb,cough\na,fever\n,cough\n")
    trained(path=str(table), reporter=listener)
    assert heard(listener) == [
        "1 of 4 texts have no id in 'doc_id': the number of the row is taken instead",
        "2 of 4 texts share their id with another: 'a'",
    ]


def test_only_assigned_labels_if_asked_for_and_documents_without_any_stay(
    trained: Any, tmp_path: Path
) -> None:
    table = tmp_path / "new.jsonl"
    pl.DataFrame({"text": ["fever", "cough", "nothing at all"]}).write_ndjson(table)
    everything = trained(path=str(table), output=str(tmp_path / "all.csv"))
    some = trained(path=str(table), output=str(tmp_path / "some.jsonl"), assigned=True)
    assert some.summary["suggestions"] < everything.summary["suggestions"]
    assert pl.read_ndjson(tmp_path / "some.jsonl")["doc_id"].to_list() == ["1", "2", "3"]


def test_all_assigned_labels_are_found_or_it_is_said_that_there_may_be_more(
    trained: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    file = trained.run.path / "finetune" / "bands.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "value": [1e-9] * len(content["value"])}))
    record_again(file.parent)
    found = trained(text="fever", assigned=True, reporter=listener)
    assert (found.summary["suggestions"], heard(listener)) == (12, [])
    assert (
        trained(text="fever", assigned=True, top_k=3, reporter=listener).summary["suggestions"] == 3
    )
    assert heard(listener) == [
        "in 1 texts the last of the 3 labels that were looked at is assigned: --top-k 30 looks "
        "at more"
    ]


def test_nothing_is_suggested_for_an_empty_text(
    trained: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    table = tmp_path / "new.jsonl"
    pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["fever", " ", None]}).write_ndjson(table)
    trained(path=str(table), output=str(tmp_path / "found.jsonl"), reporter=listener)
    found = pl.read_ndjson(tmp_path / "found.jsonl")
    assert found["doc_id"].to_list() == ["a", "b", "c"]
    assert [bool(labels) for labels in found["labels"].to_list()] == [True, False, False]
    assert heard(listener) == ["2 of 3 texts are empty: nothing is suggested for them"]
    assert listener.warnings[1:] == [
        "1 of 3 texts tell the model nothing: no word is one that it learned from; the network "
        "alone, which reads parts of words, "
        "suggests labels (a)"
    ]


def test_excluded_labels_are_neither_suggested_nor_predicted_nor_assigned(
    clinic: Any, tmp_path: Path
) -> None:
    """What `finetune` excludes is kept with the model; figures and threshold of validation know
    of it; eval counts them as missed.
    """
    given = {"network": False, "scorers": ["words"]}
    clinic("finetune", flags={"finetune": given})
    best = clinic(
        "suggest",
        flags={
            "suggest": {
                "text": generate(documents=120, labels=12, seed=3)
                .splits["test"]
                .collect()["text"][0]
            }
        },
    )
    first, second = (row[1] for row in best.tables[0].rows[:2])
    (tmp_path / "never.txt").write_text(f"{first}\nno such label\n")
    clinic(
        "finetune",
        tag="some",
        flags={"finetune": {**given, "exclude": [str(tmp_path / "never.txt")]}},
    )
    judged = pl.read_parquet(clinic.path / "finetune-some" / "validation.parquet").explode(
        "labels", "scores"
    )
    assert set(judged.filter(pl.col("labels") == first)["scores"]) == {0.0}
    assert judged.filter(pl.col("labels") != first)["scores"].min() > 0.0
    clinic("predict", tag="some", flags={"predict": {"top_k": 100, "exclude": [second]}})
    folder = clinic.path / "predict-some"
    for path in (folder / "predictions.parquet", *(folder / "parts").glob("*.parquet")):
        listed = set(pl.read_parquet(path)["labels"].explode().to_list())
        assert len(listed) == 10
        assert not listed & {first, second}
    found = clinic("eval", tag="some", flags={"eval": {"bootstrap": 0}}).data
    assert found["labels_never"]["listed"] == 2
    rows = open_model(clinic.path, "some").suggest(
        ["fever", best.tables[0].rows[0][2] or ""], k=100
    )
    assert {one.label for text in rows for one in text}.isdisjoint({first})
    with pytest.raises(DataError, match="no label is named 'nowhere'"):
        clinic("suggest", flags={"suggest": {"text": "fever", "exclude": ["nowhere"]}})


UNKNOWN = ["qwertz asdfgh", "20241234 5678901", "Иванов", " "]


def test_without_a_network_nothing_is_suggested_for_a_text_of_unknown_words(
    prepared: Any, listener: SilentReporter, tmp_path: Path
) -> None:
    """As text, folder, table and from Python; a usual text beside them is as it was alone."""
    scorers = prepared("scorers")

    def suggest(**options: Any) -> Any:
        return scorers("suggest", reporter=listener, flags={"suggest": options})

    usual = generate(documents=120, labels=12, seed=3).splits["test"].collect()["text"][0]
    rows = suggest(text=usual).tables[0].rows
    assert (len(rows) > 0, listener.warnings) == (True, [])
    assert suggest(text=UNKNOWN[0]).summary["suggestions"] == 0
    assert listener.warnings == [
        "1 of 1 texts tell the model nothing: no word is one that it learned from; nothing is "
        "suggested for them (text)"
    ]
    texts = [*UNKNOWN, usual]
    (tmp_path / "folder").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "folder" / f"{number}.txt").write_text(text)
    pl.DataFrame({"doc_id": [*"01234"], "text": texts}).write_csv(tmp_path / "new.csv")
    for path in ("folder", "new.csv"):
        found = suggest(path=str(tmp_path / path)).tables[0].rows
        assert [row[0] for row in found] == ["4"] * len(rows)
        assert [row[1:] for row in found] == [row[1:] for row in rows]
        assert "3 of 5 texts tell the model nothing" in listener.warnings[-1]
        assert listener.warnings[-1].endswith("(0, 1, 2)")
    answers = open_model(scorers.path, reporter=listener).suggest(texts)
    assert [len(answer) for answer in answers] == [0, 0, 0, 0, len(rows)]
    assert listener.warnings[-1].endswith("(text 1, text 2, text 3)")


def test_columns_of_other_types_and_gaps_in_them_are_read(trained: Any, tmp_path: Path) -> None:
    table = tmp_path / "new.parquet"
    pl.DataFrame({"doc_id": [7, None, 9], "text": [39, 40, None]}).write_parquet(table)
    trained(path=str(table), output=str(tmp_path / "out.parquet"))
    assert pl.read_parquet(tmp_path / "out.parquet")["doc_id"].to_list() == ["7", "2", "9"]


def test_a_model_with_a_network_says_why(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    score = FusedScorers.score
    monkeypatch.setattr(
        FusedScorers,
        "score",
        lambda self, documents, *given: (
            read.append(len(documents)) or score(self, documents, *given)
        ),
    )
    table = trained(text="fever and cough", top_k=3, why=True).tables[0]
    assert table.columns[-1].name == "why"
    assert all(row[-1].startswith("base ") for row in table.rows)
    assert any(" +" in row[-1] for row in table.rows)
    assert read == [1]


@pytest.mark.parametrize(("same", "said"), [(2, False), (3, True)])
def test_labels_with_the_same_score_are_explained(
    trained: Any, monkeypatch: pytest.MonkeyPatch, same: int, said: bool
) -> None:
    answer = Suggesting.answer

    def tie(self: Suggesting, *given: Any) -> Any:
        for documents in answer(self, *given):
            yield [
                replace(
                    one, scores=[0.9 - 0.1 * max(0, at - same + 1) for at in range(len(one.scores))]
                )
                for one in documents
            ]

    monkeypatch.setattr(Suggesting, "answer", tie)
    notes = trained(text="fever and cough", top_k=5).tables[0].notes
    line = f"up to {same} labels of a text have exactly the same score"
    assert any(note.startswith(line) for note in notes) is said
