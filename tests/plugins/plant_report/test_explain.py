"""Why labels have their scores: on the screen, as JSON, and on a page; texts that say nothing,
and labels that nobody knows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plant_network.reading import LiveReader
from rich.console import Console

from plant_cli.api import DataError, Passage, Reading, Request, Result, SilentReporter, Table
from plant_cli.cli.output import OUTPUT_FORMS, _colour
from plant_cli.data.store import StoredCorpus
from plant_cli.registry import installed
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.fused_scorers import FusedScorers
from plant_cli.scoring.opened_models import open_model
from plant_cli.scoring.top_labels import Scoring


@pytest.fixture
def run(prepared: Any) -> Any:
    """`plant explain` on scorers alone, or another run."""
    clinics: list[Any] = []

    def explain(kind: str = "scorers", reporter: Any = None, **options: Any) -> Any:
        clinics[:] = clinics or [prepared(kind)]
        return clinics[0](
            "explain", reporter=reporter or SilentReporter(), flags={"explain": options}
        )

    return explain


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of the run."""
    return tmp_path / "run"


@pytest.mark.parametrize("kind", ["planted", "scorers"])
def test_parts_and_base_are_the_log_odds_in_every_form(run: Any, kind: str) -> None:
    result = run(kind, text="a fever and a cough", top_k=2)
    assert len(result.tables) == 2
    for table in result.tables:
        amounts = {row[0]: row[1] for row in table.rows}
        total = amounts.pop("together")
        assert sum(amounts.values()) == pytest.approx(total, abs=0.05)
        assert set(amounts) == {"base", "words", "titles", "neighbours", "linear"} | (
            {"network"} if kind == "planted" else set()
        )
    lines = [json.loads(line) for line in OUTPUT_FORMS["jsonl"](result).splitlines()]
    assert json.loads(OUTPUT_FORMS["json"](result)) == lines
    assert [line["doc_id"] for line in lines] == ["text", "text"]
    for line in lines:
        assert line["base"] + sum(part["log_odds"] for part in line["parts"]) == pytest.approx(
            line["log_odds"], abs=1e-6
        )


def test_the_suggested_labels_or_those_that_are_named_by_id_or_title(run: Any, path: Path) -> None:
    ids = [line["label"] for line in run(text="a fever and a cough", top_k=3).data]
    opened = open_model(path)
    assert ids == [one.label for one in opened.suggest(["a fever and a cough"], k=3)[0]]
    last = opened.labels.ids[-1]
    for name in (last, opened.labels.titles[-1]):
        assert last in [line["label"] for line in run(text="a fever", label=(name,)).data]
    with pytest.raises(DataError, match="no label is named 'nonsense'") as caught:
        run(text="a fever", label=("nonsense",))
    assert caught.value.where == "--label nonsense"
    assert "plant labels apply" in caught.value.todo


def test_a_network_reads_a_text_once(run: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("planted", text="a fever")
    best, read = open_model(path).suggest(["a fever and a cough"], k=3)[0], []
    monkeypatch.setattr(
        LiveReader,
        "read",
        lambda self, rows, old=LiveReader.read: read.append(rows) or old(self, rows),
    )
    found = [
        (line["label"], pytest.approx(line["score"], rel=1e-5))
        for line in run("planted", text="a fever and a cough", top_k=3).data
    ]
    assert found == [(one.label, one.score) for one in best]
    assert len(read) == 1


def test_a_row_of_a_table_and_a_document_of_the_corpus(
    run: Any, path: Path, tmp_path: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("doc_id,text\na,a fever\nb,a cough\n")
    assert {line["doc_id"] for line in run(path=str(table)).data} == {"a", "b"}
    assert {line["doc_id"] for line in run(path=str(table), document="b").data} == {"b"}
    corpus = RequestRunner(Request(registry=installed(), run_path=path)).open("explain").corpus()
    document = corpus.gold_labels("test").doc_ids[0]
    found = run(document=document, top_k=1)
    assert [line["doc_id"] for line in found.data] == [document]
    assert any(part["words"] for part in found.data[0]["parts"])


def test_texts_are_scored_once_and_the_corpus_is_read_until_the_document(
    run: Any, path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    run(text="a fever")
    scored, read = list[int](), list[str]()
    score, stream = FusedScorers.score_some, StoredCorpus.stream

    def count(self: Any, documents: Any, *rest: Any) -> Any:
        scored.append(len(documents))
        return score(self, documents, *rest)

    def note(self: Any, name: Any) -> Any:
        read.append(name)
        return stream(self, name)

    monkeypatch.setattr(FusedScorers, "score_some", count)
    monkeypatch.setattr(StoredCorpus, "stream", note)
    table = tmp_path / "new.csv"
    table.write_text("doc_id,text\na,a fever\nb,a cough\n")
    run(path=str(table))
    assert (scored, read) == ([2], [])
    document = (
        RequestRunner(Request(registry=installed(), run_path=path))
        .open("explain")
        .corpus()
        .gold_labels("test")
        .doc_ids[0]
    )
    run(document=document)
    assert (scored, read) == ([2, 1], ["test"])
    with pytest.raises(DataError, match="there is no document 'nobody'"):
        run(document="nobody")
    assert read == ["test"]


def test_a_text_that_tells_nothing_has_no_reasons(run: Any, path: Path) -> None:
    """It is said; a label that is named has the base rate, and nothing else."""
    listener = SilentReporter()
    result = run(text="xyzzy", reporter=listener)
    assert (result.tables, result.data) == ([], [])
    assert any("tell the model nothing" in warning for warning in listener.warnings)
    [one] = run(text="xyzzy", label=(open_model(path).labels.ids[0],)).data
    assert one["base"] == pytest.approx(one["log_odds"])


def test_a_long_text_shows_its_best_sentences(run: Any, path: Path) -> None:
    run(text="a")
    words: Any = open_model(path).model.scorers.known.words  # type: ignore[union-attr]
    rare = words[len(words) // 2]
    text = "Nothing here. " * 60 + f"This is {rare} here. " + "Nothing here. " * 60
    [table, *_] = run(text=text, top_k=1).tables
    shown = "".join(passage.text for passage in table.passages)
    assert rare in shown
    assert len(shown) < 200
    assert shown.startswith("(+")


def test_a_page_marks_the_words_and_fetches_nothing(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "why.html"
    run(text="a fever & <b>cough</b> " * 50, html=str(page), top_k=1)
    html = page.read_text()
    assert "&lt;b&gt;" in html
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert "The whole text" in html


SCORERS = {f"5 by {name}" for name in ("words", "titles", "neighbours", "linear")}
NETWORK = {f"5 by {name}" for name in ("network", "attention", "gradient", "relevance")}


@pytest.mark.parametrize(("kind", "ways"), [("scorers", SCORERS), ("planted", SCORERS | NETWORK)])
def test_marked_words_are_measured_against_random_ones_and_gold_spans(
    run: Any, kind: str, ways: set[str]
) -> None:
    result = run(kind, measure="validation", scored=5)
    names = [row[0] for row in result.tables[0].rows]
    figures = {
        name: {key: bound["value"] for key, bound in result.data[name].items()} for name in names
    }
    assert figures.keys() - ways == {"marked words", "random words", "5 random words"}
    assert ways <= figures.keys()
    marked, drawn = figures["marked words"], figures["random words"]
    assert result.data["pairs"] > 0
    assert marked["without"] > drawn["without"]
    assert marked["alone"] < drawn["alone"]
    assert 0 <= drawn["f1"] < marked["f1"] <= 1
    for name in ways & {"5 by words", "5 by titles", "5 by relevance"}:
        assert figures[name]["f1"] > figures["5 random words"]["f1"], name


def test_an_evaluation_has_the_same_figures_of_documents_with_gold_spans(prepared: Any) -> None:
    clinic = prepared("scorers")
    whole = clinic("explain", flags={"explain": {"measure": "test", "scored": 1}}).data
    found = clinic("eval", flags={"eval": {"bootstrap": 0}})
    marks = found.data["marked_words"]
    assert marks["pairs"] == whole["pairs"]
    assert marks["figures"].keys() | {"split", "pairs"} == whole.keys()
    assert marks["figures"]["marked words"]["f1"] == whole["marked words"]["f1"]
    assert found.tables[-1].title.startswith(
        f"Marked words of test: {marks['pairs']} gold labels of {marks['documents']} documents"
    )
    for options in ({"metric": ["P@5"]}, {"explained": 0}):
        assert (
            "marked_words"
            not in clinic("eval", flags={"eval": {"bootstrap": 0, **options}}, force=True).data
        )


def test_attention_adds_up_and_gradients_are_those_of_the_hidden_states(
    run: Any, path: Path
) -> None:
    text, labels, step = "a fever and a cough", [3, 0], 0.02
    run("planted", text=text)
    model: Any = open_model(path).model
    words = model.split([text])
    spans, found = model.compare_tokens(text, words, labels)
    assert found["attention"].sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert found["gradient"].shape == (2, len(spans))
    reading = model._read(
        [text], words, Scoring(name="text", k=1, batch=1, reporter=SilentReporter())
    ).read(np.array([0]))
    moves = step * torch.eye(reading.hidden[0, 0].numel())
    for token in range(len(spans)):
        moved = torch.zeros(len(moves), *reading.hidden[0].shape).index_put(
            (torch.arange(len(moves)), torch.tensor(token)), moves
        )
        with torch.no_grad():
            ends = [
                model.network.decoder(
                    Reading.of(reading.hidden + way * moved, reading.mask.expand(len(moves), -1))
                )
                for way in (1, -1)
            ]
        slopes = (ends[0] - ends[1])[:, labels] / (2 * step)
        assert found["gradient"][:, token] == pytest.approx(
            slopes.norm(dim=0).tolist(), rel=0.02, abs=1e-4
        )


def test_marks_are_told_apart_without_colour() -> None:
    passages = [
        Passage(text="no "),
        Passage(text="fever", strength=3, by="scorers"),
        Passage(text="cough", strength=1, by="network"),
        Passage(text="pain", strength=2, by="both"),
        Passage(text="leg", strength=-2, by="scorers"),
    ]
    shown = "no [fever]{cough}[{pain}][−leg]"
    assert (
        OUTPUT_FORMS["table"](
            Result(tables=[Table(title="t", columns=[], rows=[], passages=passages)])
        ).splitlines()[1]
        == shown
    )
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as capture:
        console.print(_colour(passages))
    assert "\x1b[1;32m[fever]" in capture.get()
    assert _colour(passages).plain == shown
