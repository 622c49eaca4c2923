"""A model of scorers: saved, loaded, and the same whatever is asked with it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plant_cli.api import ArtefactError, Interrupted, SilentReporter
from plant_cli.data.analysers import PLAIN
from plant_cli.registry import installed
from plant_cli.scoring.fusion import Fusion
from plant_cli.scoring.models import Combination, ScorerModel, load_combination, save_combination
from plant_cli.scoring.top import Scoring
from tests.scoring.test_inference_scorers import clinic, fit

TEXTS = ["chills and fever", "the leg is broken", "", "nightly cough"]
CALIBRATION = Fusion(knots=np.array([1.0, 10.0]), weights=np.array([[0.5, 1.0]]), bias=np.array([-1.0, 0.0]))


@pytest.fixture(scope="module")
def model() -> ScorerModel:
    scorers = fit().scorers
    return ScorerModel(
        combination=Combination(scorers=scorers, calibration=CALIBRATION, train_counts=scorers.train_counts), scorers=scorers
    )


def test_every_label_has_a_probability_and_parts_have_scores_of_their_own(model: ScorerModel) -> None:
    top = model.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), parts=True))
    assert top.labels.shape == (4, 4)
    assert (np.sort(top.labels, axis=1) == np.arange(4)).all()
    assert (np.diff(top.scores, axis=1) <= 0).all()
    assert top.labels[[0, 1, 3], 0].tolist() == [0, 2, 3]
    assert set(top.parts) == {"words", "titles", "neighbours", "linear"}
    assert top.parts["titles"].labels[0, 0] == 0


def test_documents_stand_alone(model: ScorerModel) -> None:
    together = model.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
    alone = model.score(TEXTS[1:2], Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
    assert np.array_equal(alone.labels[0], together.labels[1])
    np.testing.assert_allclose(alone.scores[0], together.scores[1], atol=1e-6)


def test_saved_and_loaded(model: ScorerModel, tmp_path: Path) -> None:
    _, labels = clinic()
    corpus: Any = SimpleNamespace(labels=labels, analyser=PLAIN)
    save_combination(model.combination, tmp_path, corpus, {})
    loaded = load_combination(tmp_path, labels, PLAIN, installed().resolve)
    assert loaded is not None
    assert loaded.scorers is not None
    again = ScorerModel(combination=loaded, scorers=loaded.scorers)
    one, other = (m.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter())) for m in (model, again))
    assert np.array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_scoring_stops_when_it_is_asked_to(model: ScorerModel) -> None:
    with pytest.raises(Interrupted):
        model.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), should_stop=lambda: True))


@pytest.mark.parametrize("tensors", [{}, {"words": np.frombuffer(b"[", dtype=np.uint8)}])
def test_damaged_arrays_of_a_scorer_are_refused(
    model: ScorerModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tensors: dict[str, Any]
) -> None:
    _, labels = clinic()
    corpus: Any = SimpleNamespace(labels=labels, analyser=PLAIN)
    monkeypatch.setattr(type(model.scorers.scorers[0].scorer), "tensors", lambda _: tensors)
    save_combination(model.combination, tmp_path, corpus, {})
    with pytest.raises(ArtefactError, match="the scorer 'words' cannot be made again: ") as caught:
        load_combination(tmp_path, labels, PLAIN, installed().resolve)
    assert caught.value.where == str(tmp_path)


def test_reasons_are_told_in_the_same_reading(model: ScorerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    spell = type(PLAIN).spell
    monkeypatch.setattr(type(PLAIN), "spell", lambda self, text: read.append(text) or spell(self, text))
    top = model.score(TEXTS, Scoring(name="texts", k=2, batch=1, reporter=SilentReporter(), reasons=True))
    assert read == TEXTS
    assert [len(own) for own in top.reasons] == [2, 2, 2, 2]
    assert "fever" in top.reasons[0][0].words
    assert model.score(TEXTS, Scoring(name="texts", k=2, batch=1, reporter=SilentReporter())).reasons == ()
