"""Why a label: the scorer that adds most first, with its words, title or training documents."""

from __future__ import annotations

import numpy as np
import pytest

from plant_cli.api import Reason, SilentReporter
from plant_cli.scoring.scorers import explain_labels
from tests.scoring.test_inference_scorers import fit


def explain(text: str, labels: list[int], trust: float = 1.0) -> list[Reason]:
    """By scorers that count alike for every label."""
    scored = fit().scorers.read([text], SilentReporter(), "texts", keep_words=True)
    [found] = explain_labels(scored, np.full(4, trust, dtype=np.float32), np.array([labels], dtype=np.int64).reshape(1, -1))
    return found


def numbers(reason: str) -> list[float]:
    return [float(part.split(" +")[1].split(" ")[0]) for part in reason.split("; ")]


def test_reasons_name_scorers_and_words() -> None:
    found = explain("a patient with fever and chills", [0, 2])
    right, wrong = (reason.text for reason in found)
    assert "fever" in right
    assert "fever" in found[0].words
    assert set(found[0].words) <= {"a", "patient", "with", "fever", "and", "chills"}
    named = [part.split(" +")[0] for part in right.split("; ")]
    assert set(named) <= {"words", "titles", "neighbours", "linear"}
    assert numbers(right) == sorted(numbers(right), reverse=True)
    assert len(wrong) < len(right)


def test_numbers_are_what_is_left_beside_a_network() -> None:
    [alone], [beside] = (explain("a patient with fever and chills", [0], trust) for trust in (1.0, 0.5))
    assert len(numbers(beside.text)) >= 1
    for half, whole in zip(numbers(beside.text), numbers(alone.text), strict=False):
        assert abs(half - whole / 2) <= 0.1


def test_no_labels_no_reasons() -> None:
    assert explain("a", []) == []


def test_documents_must_be_kept_in_words() -> None:
    scored = fit().scorers.read(["fever"], SilentReporter(), "texts")
    with pytest.raises(ValueError, match="not kept in words"):
        explain_labels(scored, np.ones(4, dtype=np.float32), np.array([[0]]))


def test_what_the_network_adds_stands_among_the_scorers() -> None:
    scored = fit().scorers.read(["a patient with fever and chills"], SilentReporter(), "texts", keep_words=True)
    labels, trust = np.array([[0, 2, 1]]), np.ones(4, dtype=np.float32)
    [alone] = explain_labels(scored, trust, labels)
    [found] = explain_labels(scored, trust, labels, np.array([[99.0, 0.04, -3.0]]))
    assert found[0] == Reason(text=f"network +99.0; {alone[0].text}", words=alone[0].words)
    assert found[1:] == alone[1:]


def test_a_label_that_nothing_speaks_for_has_no_reason() -> None:
    scored = fit().scorers.read(["zzz"], SilentReporter(), "texts", keep_words=True)
    nothing = np.zeros(4, dtype=np.float32)
    assert explain_labels(scored, nothing, np.array([[0]]), np.array([[-1.0]])) == [[Reason(text="")]]
    assert explain_labels(scored, nothing, np.array([[0]]), np.array([[1.25]])) == [[Reason(text="network +1.2")]]


def test_scorers_see_the_words_of_one_document_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever walks through a vocabulary would otherwise do so once for each text, over the words of all."""
    scored = fit().scorers.read(["fever and chills", "a broken leg", "fever"], SilentReporter(), "texts", keep_words=True)
    seen: list[int] = []
    for scorer in scored.scorers.scorers:
        explain = scorer.explain
        monkeypatch.setattr(
            type(scorer), "explain", lambda self, document, own, told=explain: seen.append(len(document.vocabulary)) or told(document, own)
        )
        break
    explain_labels(scored, np.ones(4, dtype=np.float32), np.array([[0], [0], [0]]))
    assert seen == [3] * 4 + [3] * 4 + [1] * 4
