"""Trained models: saved, loaded, opened from Python, explained, and the same whatever is asked
with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring.conftest import clinic, fit

from plant_cli.api import ArtefactError, Interrupted, SilentReporter
from plant_cli.data.word_analysis import PLAIN
from plant_cli.registry import installed
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.explanations import add_to_words
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.opened_models import open_model
from plant_cli.scoring.scorer_files import read_scorers, write_scorers
from plant_cli.scoring.top_labels import Scoring

TEXTS = ["chills and fever", "the leg is broken", "", "nightly cough"]
CALIBRATION = Calibration(
    linear=FrequencyLinear(
        knots=np.array([1.0, 10.0]), weights=np.array([[0.5, 1.0]]), bias=np.array([-1.0, 0.0])
    )
)


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    scorers = fit().scorers
    return TrainedModel(
        combination=Combination(
            scorers=scorers, calibration=CALIBRATION, train_counts=scorers.train_counts
        ),
        analyser=PLAIN,
    )


def test_every_label_has_a_probability_and_parts_have_scores_of_their_own(
    model: TrainedModel,
) -> None:
    top = model.score(
        TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), parts=True)
    )
    assert top.labels.shape == (4, 4)
    assert (np.sort(top.labels, axis=1) == np.arange(4)).all()
    assert (np.diff(top.scores, axis=1) <= 0).all()
    assert top.labels[[0, 1, 3], 0].tolist() == [0, 2, 3]
    assert set(top.parts) == {"words", "titles", "neighbours", "linear"}
    assert top.parts["titles"].labels[0, 0] == 0


def test_documents_stand_alone(model: TrainedModel) -> None:
    together = model.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
    alone = model.score(TEXTS[1:2], Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
    assert np.array_equal(alone.labels[0], together.labels[1])
    np.testing.assert_allclose(alone.scores[0], together.scores[1], atol=1e-6)


def test_documents_are_scored_some_after_others(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[int, Any] = {}
    scoring = Scoring(
        name="texts",
        k=3,
        batch=1,
        reporter=SilentReporter(),
        parts=True,
        reasons=True,
        keep=lambda rows, logits: kept.update(zip(rows.tolist(), logits, strict=True)),
    )
    whole, logits = model.score(TEXTS, scoring), dict(kept)
    monkeypatch.setattr("plant_cli.scoring.fused_scorers.DOCUMENTS_SCORED", 3)
    found = model.score(TEXTS, scoring)
    for one, other in ((whole, found), (whole.parts["titles"], found.parts["titles"])):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-6)
    assert (found.assigned_share, found.reasons) == (
        pytest.approx(whole.assigned_share),
        whole.reasons,
    )
    assert sorted(kept) == list(range(len(TEXTS)))
    np.testing.assert_allclose(kept[3], logits[3], rtol=1e-5)
    assert model.scorers is not None
    joined = model.scorers.score(model.split(TEXTS), SilentReporter(), "texts")
    assert (len(joined), joined.pairs.rows.max()) == (4, 3)


def test_saved_and_loaded(model: TrainedModel, tmp_path: Path) -> None:
    _, labels = clinic()
    write_scorers(tmp_path, model.combination, {}, labels.hash, PLAIN.hash)
    again = TrainedModel(
        combination=read_scorers(tmp_path, labels, PLAIN, installed().resolve), analyser=PLAIN
    )
    one, other = (
        m.score(TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
        for m in (model, again)
    )
    assert np.array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_every_logit_that_is_handed_on_is_the_one_that_the_best_are_chosen_by(
    model: TrainedModel,
) -> None:
    kept = np.full((4, 4), np.nan, dtype=np.float32)
    top = model.score(
        TEXTS, Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), keep=kept.__setitem__)
    )
    assert np.array_equal(top.labels, np.argsort(-kept, axis=1, kind="stable"))
    logits = np.take_along_axis(kept, top.labels, axis=1).astype(np.float64)
    assert np.allclose(1 / (1 + np.exp(-logits)), top.scores, rtol=1e-12)
    assert top.assigned_share == (kept >= 0).mean()


def test_scoring_stops_when_it_is_asked_to(model: TrainedModel) -> None:
    with pytest.raises(Interrupted):
        model.score(
            TEXTS,
            Scoring(
                name="texts", k=4, batch=1, reporter=SilentReporter(), should_stop=lambda: True
            ),
        )


@pytest.mark.parametrize("tensors", [{}, {"words": np.frombuffer(b"[", dtype=np.uint8)}])
def test_damaged_arrays_of_a_scorer_are_refused(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tensors: dict[str, Any]
) -> None:
    _, labels = clinic()
    monkeypatch.setattr(type(model.scorers.scorers[0].scorer), "tensors", lambda _: tensors)
    write_scorers(tmp_path, model.combination, {}, labels.hash, PLAIN.hash)
    with pytest.raises(ArtefactError, match="the scorer 'words' cannot be made again: ") as caught:
        read_scorers(tmp_path, labels, PLAIN, installed().resolve)
    assert caught.value.where == str(tmp_path)


def test_reasons_are_told_in_the_same_reading(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    spell = type(PLAIN).spell
    monkeypatch.setattr(
        type(PLAIN), "spell", lambda self, text: read.append(text) or spell(self, text)
    )
    top = model.score(
        TEXTS, Scoring(name="texts", k=2, batch=1, reporter=SilentReporter(), reasons=True)
    )
    assert read == TEXTS
    assert [len(own) for own in top.reasons] == [2, 2, 2, 2]
    assert "fever" in top.reasons[0][0].words
    assert (
        model.score(TEXTS, Scoring(name="texts", k=2, batch=1, reporter=SilentReporter())).reasons
        == ()
    )


ASKED = ["a cough and a fever", "pain in the left leg", ""]


@pytest.fixture
def trained_clinic(clinic: Any) -> Any:
    for stage in ("mig", "pretrain-attn", "finetune"):
        clinic(stage)
    return clinic


def test_it_suggests_what_the_command_suggests(trained_clinic: Any, tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("doc_id,text\n" + "".join(f"{row},{text}\n" for row, text in enumerate(ASKED)))
    before = {path: path.stat().st_mtime_ns for path in trained_clinic.path.rglob("*")}
    found = open_model(str(trained_clinic.path)).suggest(ASKED, k=3)
    table = trained_clinic("suggest", flags={"suggest": {"path": str(texts), "top_k": 3}}).tables[0]
    assert [
        [str(row), s.label, s.title, s.assigned] for row, text in enumerate(found) for s in text
    ] == [
        [document, label, title, band == "assign"]
        for document, label, title, _, _, band in table.rows
    ]
    assert [(s.score, s.threshold) for text in found for s in text] == [
        pytest.approx((row[3], np.inf if row[4] == "never" else row[4]), rel=5e-3)
        for row in table.rows
    ]
    assert {path: path.stat().st_mtime_ns for path in trained_clinic.path.rglob("*")} == before


def test_a_tag_and_values_of_the_call_count(trained_clinic: Any) -> None:
    trained_clinic("finetune", tag="other", flags={"finetune": {"init": "random"}})
    plain, other = (
        open_model(trained_clinic.path, tag, sets=["machine.precision=bf16"])
        for tag in (None, "other")
    )
    assert str(plain.model.hardware.dtype) == "torch.bfloat16"
    assert plain.suggest(ASKED[:1]) != other.suggest(ASKED[:1])
    assert len(plain.suggest(ASKED[:1], k=1000)[0]) == len(plain.labels)
    assert plain.suggest([]) == []


def test_what_is_missing_is_named(clinic: Any, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no run"):
        open_model(tmp_path / "nowhere")
    clinic("mig")
    with pytest.raises(ArtefactError, match="the stage 'finetune' has not run"):
        open_model(clinic.path)


def test_tokens_are_added_up_over_the_words_that_they_spell() -> None:
    tokens = np.array(
        [[0, 3], [3, 5], [5, 6], [7, 9], [20, 22]]
    )  # the last two lie between and behind the words
    words = np.array([[0, 5], [5, 7], [10, 14]])
    assert add_to_words(tokens, np.array([0.25, 0.5, 1.0, 2.0, 4.0]), words).tolist() == [
        0.75,
        1.0,
        0.0,
    ]
    assert add_to_words(tokens, np.ones(5), np.zeros((0, 2), dtype=np.int64)).tolist() == []
    assert add_to_words(np.zeros((0, 2), dtype=np.int64), np.zeros(0), words).tolist() == [
        0.0,
        0.0,
        0.0,
    ]
    nested = np.array([[0, 6], [0, 4], [5, 6], [7, 9]])  # type2, type, 2, of
    assert add_to_words(np.array([[0, 4], [5, 6], [7, 9]]), np.ones(3), nested).tolist() == [
        2.0,
        0.0,
        0.0,
        1.0,
    ]
