"""Documents, labels and passages of a report, by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, MetricInput
from plant_cli.report.compared import Beside, lay_beside
from plant_cli.report.labels import Found, choose_documents, choose_labels, cut_passages, summarise, write_documents


def test_documents_from_the_best_to_the_worst():
    frame = pl.DataFrame(
        {"doc_id": [f"d{i}" for i in range(9)], "F1": [i / 10 for i in range(9)], "gold": [1] * 8 + [0], "assigned": [1] * 8 + [0]}
    )
    assert choose_documents(frame, 3) == ["d7", "d3", "d0"]  # the last has no label at all
    assert choose_documents(frame, 50) == [f"d{i}" for i in range(7, -1, -1)]
    assert choose_documents(frame.head(0), 3) == []


def test_labels_of_a_document_by_state():
    data = MetricInput(
        top=np.array([[0, 1, 2, 3]]),
        scores=np.array([[0.9, 0.8, 0.7, 0.1]]),
        gold=csr_array(np.array([[1, 0, 1, 1, 1]])),
        train_counts=np.ones(5, dtype=np.int64),
        train_documents=9,
    )
    [found] = choose_labels(data, [0])
    assert found == [(0, "right", 0.9), (2, "right", 0.7), (1, "wrong", 0.8), (3, "missed", 0.1)]


def place(text, *words):
    return np.array([[text.index(word), text.index(word) + len(word)] for word in words], dtype=np.int64)


def test_passages_hold_the_text_around_what_stands_out():
    text = "fever " + "x " * 100 + "and\na cough " + "y " * 100
    spans = place(text, "fever", "and", "cough")
    passages = cut_passages(text, spans, np.array([1.0, 0.0, 0.5]))
    marked = {passage.text: passage.strength for passage in passages if passage.strength}
    assert marked == {"fever": 3, "cough": 2} or marked == {"fever": 3}
    joined = "".join(passage.text for passage in passages)
    assert joined.startswith("fever x")
    assert joined.endswith(" …")
    assert "\n" not in joined
    assert len(joined) < 300


def test_neighbours_share_one_passage():
    text = "acute fever and chills"
    [first, *_] = passages = cut_passages(text, place(text, "acute", "fever", "and", "chills"), np.array([0.0, 1.0, 0.0, 1.0]))
    assert "".join(passage.text for passage in passages) == text
    assert first.text == "acute "


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [0.5, 0.5]])
def test_where_no_word_stands_out_there_is_no_passage(weights):
    text = "one two"
    assert cut_passages(text, place(text, "one", "two")[: len(weights)], np.array(weights)) == []


def test_one_word_stands_out_alone():
    assert [p.strength for p in cut_passages("word", np.array([[0, 4]]), np.array([1.0]))] == [3]


def test_texts_are_asked_for_once_and_unseen_labels_have_no_evidence(systems, families, open_corpus, silent):
    beside = lay_beside(systems, families, open_corpus, silent)
    asked = []

    def find(texts, labels):
        asked.extend(zip(texts, labels, strict=True))
        spans = np.array([[0, 4]], dtype=np.int64)
        return Found(network=False, texts=[[(spans, np.ones(1), f"reason {column}") for column in own] for own in labels])

    section = write_documents(systems[1], beside, 3, find)
    assert len(section.documents) == 3
    assert all(text.startswith("test ") for text, _ in asked)
    document = section.documents[-1]
    assert {one.state for one in document.evidence} <= {"right", "wrong", "missed"}
    assert document.evidence[0].passages[0].text == "test"
    assert document.evidence[0].reason.startswith("reason ")
    assert "words that its scorers name" in section.text[0]


@pytest.mark.parametrize("case", ["none", "unreadable", "foreign", "broken"])
def test_what_hinders_is_said(systems, families, open_corpus, silent, case):
    beside = (
        lay_beside(systems, families, open_corpus, silent)
        if case == "broken"
        else Beside(reason="no corpus; do x." if case == "unreadable" else "")
    )
    system = replace(systems[0], stages={}) if case == "foreign" else systems[0]

    def find(texts, labels):
        raise ArtefactError("the model is gone", where="x", expected="y", todo="plant finetune --force")

    section = write_documents(system, beside, 0 if case == "none" else 2, find)
    said = {
        "none": "--documents 0",
        "unreadable": "no corpus; do x.",
        "foreign": "another tool",
        "broken": "the model is gone (x); plant finetune --force.",
    }
    assert said[case] in section.missing[0]
    assert list(section.documents) == []


def test_summaries():
    assert summarise({"gold": 2, "assigned": 3, "tp": 1, "F1": 0.4}) == "labels: 2 gold, 3 assigned, 1 of these right; F1 40.0"
