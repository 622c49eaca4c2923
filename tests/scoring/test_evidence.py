"""Evidence in texts: attention added up over words, or the words that reasons name."""

from __future__ import annotations

import numpy as np
import pytest

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.explanations import _join, _mark_words, add_to_words, find_evidence
from plant_cli.scoring.models import ModelSource


def test_tokens_are_added_up_over_the_words_that_they_spell() -> None:
    tokens = np.array([[0, 3], [3, 5], [5, 6], [7, 9], [20, 22]])  # the last two lie between and behind the words
    words = np.array([[0, 5], [5, 7], [10, 14]])
    assert add_to_words(tokens, np.array([0.25, 0.5, 1.0, 2.0, 4.0]), words).tolist() == [0.75, 1.0, 0.0]
    assert add_to_words(tokens, np.ones(5), np.zeros((0, 2), dtype=np.int64)).tolist() == []
    assert add_to_words(np.zeros((0, 2), dtype=np.int64), np.zeros(0), words).tolist() == [0.0, 0.0, 0.0]


def test_words_that_reasons_name_count_wherever_they_stand() -> None:
    assert _mark_words(["fever", "pain", "fever", "cough"], ("pain", "fever")).tolist() == [1, 1, 1, 0]
    assert _mark_words(["a"], ()).tolist() == [0]


def test_attention_and_named_words_count_the_same() -> None:
    attention = np.array([0.6, 0.2, 0.1, 0.1])
    assert _join(attention, np.array([0.0, 1.0, 0.0, 1.0])).tolist() == pytest.approx([0.3, 0.35, 0.05, 0.3])
    assert _join(attention / 2, np.array([0.0, 1.0, 0.0, 1.0])).tolist() == pytest.approx([0.3, 0.35, 0.05, 0.3])  # half lies between words
    assert _join(attention, np.zeros(4)).tolist() == pytest.approx(attention.tolist())
    assert _join(np.zeros(2), np.array([1.0, 0.0])).tolist() == [1, 0]
    assert _join(np.zeros(2), np.zeros(2)).tolist() == [0, 0]


@pytest.mark.parametrize("network", [True, False])
def test_of_a_trained_model(clinic, network) -> None:  # type: ignore[no-untyped-def]
    clinic("mig")
    clinic("finetune", "finetune.init=random", f"finetune.network={str(network).lower()}")
    context = RequestRunner(Request(registry=installed(), run_path=clinic.path, sets=clinic.sets)).open("suggest")
    corpus = context.corpus()
    texts = list(corpus.split("test").texts[:3])
    labels = [[0, 1], [], [2]]
    source = ModelSource(folder=clinic.path / "finetune", corpus=corpus, component=context.component, machine=context.machine)
    found = find_evidence(source, texts, labels, SilentReporter())
    assert [len(own) for own in found] == [2, 0, 1]
    for text, own in zip(texts, found, strict=True):
        for one in own:
            words = [text[start:end].lower() for start, end in one.spans.tolist()]
            assert words == [text[start:end].lower() for _, start, end in corpus.analyser.words(text)]
            assert len(one.weights) == len(words)
            assert (one.weights >= 0).all()
            assert one.weights.sum() == pytest.approx(1) if network else set(one.weights) <= {0.0, 1.0}
