"""Documents, labels and passages of a report, by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from plant_report.marked_documents import (
    choose_documents,
    choose_labels,
    cut_passages,
    summarise,
    write_marked_documents,
)
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError
from plant_cli.evaluation.aligned import Predictions
from plant_cli.evaluation.gold import read_gold
from plant_cli.scoring.decisions import write_thresholds
from plant_cli.scoring.explanations import NO_SPANS
from tests.plugins.plant_report.conftest import find, tell


def test_documents_from_the_best_to_the_worst():
    frame = pl.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(9)],
            "F1": [i / 10 for i in range(9)],
            "gold": [1] * 8 + [0],
            "assigned": [1] * 8 + [0],
        }
    )
    assert choose_documents(frame, 3) == ["d7", "d3", "d0"]  # the last has no label at all
    assert choose_documents(frame, 50) == [f"d{i}" for i in range(7, -1, -1)]
    assert choose_documents(frame.head(0), 3) == []
    assert (
        summarise({"gold": 2, "assigned": 3, "tp": 1, "F1": 0.4})
        == "labels: 2 gold, 3 assigned, 1 of these right; F1 40.0"
    )


@pytest.mark.parametrize("threshold", [0.5, np.array([0.5, 0.5, 0.5, 0.5])])
def test_labels_of_a_document_by_state(systems, open_corpus, threshold):
    gold = replace(
        read_gold(open_corpus(), "test"), matrix=csr_array(np.array([[1, 0, 1, 1, 1]])), indexed=4
    )
    predictions = Predictions(
        top=np.array([[0, 1, 2, 3, -1]]), scores=np.array([[0.9, 0.8, 0.7, 0.1, 0.05]]), unknown=1
    )
    assert choose_labels(predictions, gold, threshold, 0) == [
        (0, "right", 0.9),
        (2, "right", 0.7),
        (1, "wrong", 0.8),
        (3, "missed", 0.1),
    ]


def place(text, *words):
    return np.array(
        [[text.index(word), text.index(word) + len(word)] for word in words], dtype=np.int64
    )


def test_passages_hold_the_text_around_the_strongest_words():
    text = "fever " + "x " * 100 + "and\na cough " + "y " * 100
    passages = cut_passages(
        text, tell(place(text, "fever", "and", "cough"), [1.0, 0.0, 0.5]), NO_SPANS
    )
    assert {passage.text: passage.strength for passage in passages if passage.strength} == {
        "fever": 3,
        "cough": 2,
    }
    joined = "".join(passage.text for passage in passages)
    assert joined.startswith("fever x")
    assert joined.endswith(" …")
    assert "\n" not in joined
    assert len(joined) < 300


def test_neighbours_share_one_passage():
    text = "acute fever and chills"
    [first, *_] = passages = cut_passages(
        text, tell(place(text, "acute", "fever", "and", "chills"), [0.0, 1.0, 0.0, 1.0]), NO_SPANS
    )
    assert "".join(passage.text for passage in passages) == text
    assert first.text == "acute "
    assert [
        p.strength for p in cut_passages("word", tell(np.array([[0, 4]]), [1.0]), NO_SPANS)
    ] == [3]


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [-0.5, -0.5]])
def test_where_no_word_stands_out_there_is_no_passage(weights):
    text = "one two"
    assert (
        cut_passages(text, tell(place(text, "one", "two")[: len(weights)], weights), NO_SPANS) == []
    )


def test_gold_spans_are_shown_whoever_found_them():
    text = "x " * 100 + "acute fever and chills " + "y " * 100
    passages = cut_passages(
        text, tell(place(text, "fever"), [1.0]), place(text, "fever and", "acute")
    )
    assert [(passage.text, passage.strength) for passage in passages if passage.gold] == [
        ("acute", 0),
        ("fever", 3),
        (" and", 0),
    ]
    assert sum(len(passage.text) for passage in passages) < 200
    alone = cut_passages(text, tell(NO_SPANS, []), place(text, "chills"))
    assert [passage.text for passage in alone if passage.gold] == ["chills"]


def test_documents_show_their_recorded_labels_and_reasons(systems, open_corpus):
    asked = []

    def remember(texts, labels):
        asked.extend(zip(texts, labels, strict=True))
        return find(texts, labels)

    section = write_marked_documents(systems[1], 3, open_corpus, remember)
    assert len(section.documents) == 3
    assert all(text.startswith("test ") for text, _ in asked)
    recorded = {row["doc_id"]: row for row in systems[1].read_documents().iter_rows(named=True)}
    for document in section.documents:
        states = [label.state for label in document.labels]
        row = recorded[document.doc_id]
        assert (states.count("right"), states.count("wrong")) == (
            min(2, row["tp"]),
            min(1, row["assigned"] - row["tp"]),
        )
    assert section.documents[-1].labels[0].passages[0].text == "test"
    assert section.documents[-1].labels[0].reason == "base +0.0; words +1.0 (by words)"
    assert "stronger the mark" in section.text[0]


def test_labels_are_assigned_by_the_threshold_of_the_evaluation(evaluate, open_corpus, tmp_path):
    gold = read_gold(open_corpus(), "test")
    [system] = evaluate(threshold=0.85)
    assert system.read_threshold(gold) == 0.85
    chosen = [0.85, 0.05, 0.05, 0.05, 0.05, 0.05]
    write_thresholds(tmp_path / "chosen", chosen, "precision=0.9", open_corpus().labels.hash)
    [system] = evaluate(thresholds=str(tmp_path / "chosen" / "thresholds.json"))
    assert system.read_threshold(gold).tolist() == chosen
    [system] = evaluate()
    assert system.read_threshold(gold) == 0.5


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("none", "as --documents 0 asks"),
        ("foreign", "has no model of its own"),
        ("broken", "the model is gone (x); plant finetune --force."),
        ("no corpus", "data.parquet"),
        ("no predictions", "predict"),
        ("other gold", "the gold labels have changed; `plant eval --force`"),
    ],
)
def test_a_sentence_says_why_documents_are_left_out(systems, open_corpus, tmp_path, case, sentence):
    def fail(texts, labels):
        raise ArtefactError(
            "the model is gone", where="x", expected="y", todo="plant finetune --force"
        )

    system = replace(systems[0], stages={}) if case == "foreign" else systems[0]
    if case == "no corpus":
        (tmp_path / "data.parquet").unlink()
    if case == "no predictions":
        (tmp_path / "run" / "predict" / "predictions.parquet").unlink()
    if case == "other gold":
        system = replace(system, metrics=system.metrics.model_copy(update={"gold": "0" * 64}))
    section = write_marked_documents(system, 0 if case == "none" else 2, open_corpus, fail)
    assert sentence in section.missing[0]
    assert list(section.documents) == []
