"""What scorers alone take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Choice, ScorerSpec, SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.registry import installed
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.scorer_files import write_scorers
from plant_cli.scoring.scorer_fitting import fit_scorers
from plant_cli.scoring.scorers import Combination
from plant_cli.training import planner as scorers
from tests.scoring.conftest import clinic


class Corpus:
    """A corpus of one split."""

    def __init__(self) -> None:
        self.train, self.labels = clinic(60)
        self.analyser = PLAIN

    def split(self, name: str) -> Any:
        return self.train


def draw_corpus(documents: int, *, words: int, labels: int) -> tuple[Split, LabelTable]:
    """Documents of 40 words and 3 labels, both as unequally frequent as in life."""
    chance = np.random.default_rng(0)
    names = ["".join(chance.choice(list("abcdefghijklmnopqrstuvwxyz"), 6)) for _ in range(words)]
    often = 1 / np.arange(1, words + 1)
    texts = [" ".join(names[word] for word in chance.choice(words, 40, p=often / often.sum())) for _ in range(documents)]
    gold = np.zeros((documents, labels), dtype=np.int64)
    rare = 1 / np.arange(1, labels + 1)
    for row in range(documents):
        gold[row, chance.choice(labels, 3, replace=False, p=rare / rare.sum())] = 1
    unseen = csr_array((documents, 0), dtype=np.int64)
    split = Split(name="train", doc_ids=[f"d{row}" for row in range(documents)], texts=texts, gold=csr_array(gold), unseen=unseen)
    ids = [f"l{label}" for label in range(labels)]
    return split, LabelTable(ids=ids, titles=[None] * labels, train_counts=gold.sum(axis=0).tolist())


def test_all_grows_with_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "SAMPLE", 20)
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in ("words", "linear")]
    corpus: Any = Corpus()
    found = scorers.plan_scorers(corpus, chosen, SilentReporter())
    assert found.measured
    assert found.seconds > 0
    assert found.memory["scorers"] > 0
    assert found.work == {"documents": 60, "labels": 4}


def test_a_scorer_says_itself_what_grows_faster_than_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is called, and by its options."""
    monkeypatch.setattr(scorers, "SAMPLE", 20)
    spec, options = installed().resolve(ScorerSpec, Choice(name="words"))
    named = replace(spec, name="kernel", memory=lambda options, documents: options.terms * documents**2 * 10**6)
    corpus: Any = Corpus()
    found = scorers.plan_scorers(corpus, [(named, options)], SilentReporter())
    assert found.memory["scorers"] == 1000 * 60**2 * 10**6


def test_the_disk_of_scorers_is_foretold_from_how_their_tensors_grow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Coefficients grow with the square of the documents, what two scorers share counts once: within a quarter of what is written."""
    monkeypatch.setattr(scorers, "SAMPLE", 80)
    corpus: Any = Corpus()
    corpus.train, corpus.labels = draw_corpus(600, words=3000, labels=120)
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in ("words", "neighbours", "linear")]
    said = scorers.plan_scorers(corpus, chosen, SilentReporter()).disk["result"]
    fitted = fit_scorers(chosen, corpus.train, corpus.labels, PLAIN, SilentReporter(), seed=0)
    assert fitted is not None
    combination = Combination(
        scorers=fitted.scorers, calibration=Calibration(linear=fitted.scorers.fusion), train_counts=fitted.scorers.train_counts
    )
    write_scorers(tmp_path, combination, {}, "hash", "words")
    written = sum(path.stat().st_size for path in (tmp_path / "scorers").iterdir())
    assert (tmp_path / "scorers" / "_shared.safetensors").exists()
    assert said == pytest.approx(written, rel=0.25)
