"""Explanations: the parts of a label's log-odds, their words, and the sums that they make."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scoring.conftest import clinic as small_clinic
from scoring.conftest import fit

from plant_cli.api import Reason, SilentReporter, UsageError
from plant_cli.data.word_analysis import PLAIN
from plant_cli.scoring.calibration import Calibration, IsotonicMap
from plant_cli.scoring.explanations import BY_ATTENTION, LEAST_WEIGHT, Explanation, explain
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.label_residuals import LabelResiduals
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.opened_models import OpenModel, open_model
from plant_cli.scoring.score_sums import join_reasons
from plant_cli.scoring.top_labels import Scoring

TEXT = "Chills and fever, nightly fever"
STRAIGHT = Calibration(
    linear=FrequencyLinear(
        knots=np.array([1.0, 10.0]), weights=np.array([[0.5, 1.0]]), bias=np.array([-1.0, 0.0])
    )
)
BENT = replace(
    STRAIGHT,
    maps=(
        IsotonicMap(
            least=1, logits=np.array([-9.0, -1.0, 0.5]), values=np.array([-7.0, -6.0, 3.0])
        ),
    ),
)


def build(calibration: Calibration = STRAIGHT) -> TrainedModel:
    scorers = fit().scorers
    return TrainedModel(
        combination=Combination(
            scorers=scorers, calibration=calibration, train_counts=scorers.train_counts
        ),
        analyser=PLAIN,
    )


def explain_all(model: TrainedModel, text: str) -> list[Explanation]:
    return explain(model, text, range(4), small_clinic()[1], SilentReporter())


def score(model: TrainedModel, text: str) -> Any:
    scores = np.zeros(4)
    top = model.score([text], Scoring(name="texts", k=4, batch=1, reporter=SilentReporter()))
    scores[top.labels[0]] = top.scores[0]
    return scores


def check_sums(found: list[Explanation], scores: Any) -> None:
    for one, shown in zip(found, scores, strict=True):
        assert one.score == pytest.approx(shown, rel=1e-5)
        assert one.log_odds == pytest.approx(logit(one.score), abs=1e-6)
        assert one.log_odds == pytest.approx(
            one.base + sum(part.log_odds for part in one.parts), abs=1e-6
        )


@pytest.mark.parametrize("calibration", [STRAIGHT, BENT])
@pytest.mark.parametrize("text", [TEXT, "fever zzz qqq xyzzy", "zzz", ""])
def test_base_and_parts_are_the_log_odds_that_are_shown(
    calibration: Calibration, text: str
) -> None:
    """Also behind isotonic maps, and where a text is drawn to base rates."""
    model = build(calibration)
    found = explain_all(model, text)
    check_sums(found, score(model, text))
    assert [part.name for part in found[0].parts] == ["words", "titles", "neighbours", "linear"]
    assert text in (TEXT, "fever zzz qqq xyzzy") or not any(
        part.log_odds for one in found for part in one.parts
    )


def test_the_log_odds_of_an_added_label_are_those_that_are_shown() -> None:
    """Whichever is higher: by its examples, or by its name alone."""
    model = build()
    assert model.combination is not None
    scorers = model.combination.scorers
    assert scorers is not None
    old, counts = scorers.fusion, -scorers.train_counts
    by_name = np.array([0.0, 1.0, 0.5, 0.5, *[0.0] * (len(old.weights) - 4)])[:, None]
    fusion = replace(
        old,
        knots=np.append(0, old.knots),
        weights=np.hstack([by_name, old.weights]),
        bias=np.append(old.bias[0], old.bias),
    )
    scorers = replace(scorers, fusion=fusion, train_counts=counts)
    added = replace(
        model, combination=replace(model.combination, scorers=scorers, train_counts=counts)
    )
    found, before = explain_all(added, TEXT), explain_all(model, TEXT)
    check_sums(found, score(added, TEXT))
    assert [
        one.log_odds > other.log_odds + 1e-6 for one, other in zip(found, before, strict=True)
    ].count(True) in (1, 2, 3)


@pytest.mark.parametrize("calibration", [STRAIGHT, BENT])
def test_a_label_with_a_residual_has_a_weight_of_its_own(calibration: Calibration) -> None:
    """Its parts add up to what is shown, and no other label changes."""
    plain = build(calibration)
    assert plain.combination is not None
    scorers = plain.combination.scorers
    assert scorers is not None
    own = np.linspace(0.5, -0.5, len(scorers.fusion.weights) + 1)[None]
    one = LabelResiduals(labels=np.array([2]), added=own)
    plain, model = (
        replace(
            plain,
            combination=replace(plain.combination, scorers=replace(scorers, residuals=residuals)),
        )
        for residuals in (None, one)
    )
    found, before = explain_all(model, TEXT), explain_all(plain, TEXT)
    check_sums(found, score(model, TEXT))
    assert [one.log_odds != other.log_odds for one, other in zip(found, before, strict=True)] == [
        False,
        False,
        True,
        False,
    ]


def test_words_add_up_to_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.scoring.explanations.LEAST_WEIGHT", 0.0)
    monkeypatch.setattr(
        "plant_cli.scoring.known_words.COMMON", 1.0
    )  # "and" is in more than a fifth of train
    for one in explain_all(build(), TEXT):
        for part in one.parts:
            assert part.weights.sum() == pytest.approx(part.log_odds, abs=1e-4)


def test_words_are_where_they_are_in_the_text() -> None:
    found = explain_all(build(), TEXT)[0]
    linear = next(part for part in found.parts if part.name == "linear")
    assert [TEXT[start:end] for start, end in linear.spans.tolist()] == ["Chills", "fever", "fever"]
    assert (
        linear.weights[0] > linear.weights[1] == linear.weights[2] > 0
    )  # fever counts as much, once for each place


def test_a_common_word_is_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    def mark(text: str) -> set[str]:
        return {
            text[start:end]
            for part in explain_all(build(), text)[0].parts
            for start, end in part.spans.tolist()
        }

    assert "fever" in mark(TEXT)
    monkeypatch.setattr("plant_cli.scoring.known_words.COMMON_FROM", 1)
    assert mark(TEXT) == {"nightly"}


def test_words_of_all_parts_together_and_the_parts_in_words() -> None:
    found = explain_all(build(), TEXT)[0]
    spans, weights = found.join_words()
    assert [TEXT[start:end] for start, end in spans.tolist()] == [
        "Chills",
        "fever",
        "nightly",
        "fever",
    ]
    assert weights.sum() == pytest.approx(sum(part.weights.sum() for part in found.parts))
    best = max(found.parts, key=lambda part: part.log_odds)
    assert found.reason.startswith(f"base {found.base:+.1f}; {best.name} +{best.log_odds:.1f} (")
    nothing = explain_all(build(), "")[0]
    assert (nothing.reason, len(nothing.join_words()[0])) == (f"base {nothing.base:+.1f}", 0)


@pytest.mark.parametrize("calibration", [STRAIGHT, BENT])
def test_the_reason_in_words_adds_up_to_the_log_odds(calibration: Calibration) -> None:
    """Also where a part speaks against the label."""
    found, texts = explain_all(build(calibration), TEXT), []
    for one in found:
        shown = [float(number) for number in re.findall(r"(?:^|; )\w+ ([+-][\d.]+)", one.reason)]
        assert sum(shown) == pytest.approx(one.log_odds, abs=0.05 * (1 + len(one.parts)))
        texts.append(one.reason)
    model = build(calibration)
    top = model.score(
        [TEXT], Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), reasons=True)
    )
    bases = [re.findall(r"base [+-][\d.]+", text)[0] for text in texts]
    assert [reason.text.split(";")[0] for reason in top.reasons[0]] == [
        bases[label] for label in top.labels[0].tolist()
    ]
    assert join_reasons(-1.0, {"words": (-0.4, Reason(text="cough"))}).text == (
        "base -1.0; words -0.4"
    )


def test_a_long_text_keeps_its_marked_words() -> None:
    """A word that adds next to nothing at each of its places is marked by what it adds in all."""
    text = "Fever fever " * 2000
    found = explain_all(build(), text)[0]
    assert max(part.log_odds for part in found.parts) > 0.1
    for part in found.parts:
        assert abs(part.weights).max(initial=0.0) < LEAST_WEIGHT
    spans, sums = found.sum_words(text)
    assert len(spans) == 4000
    assert sums == pytest.approx(np.full(4000, sum(part.weights.sum() for part in found.parts)))


def test_as_json() -> None:
    found = explain_all(build(), TEXT)[0].to_json()
    assert list(found) == ["label", "title", "score", "log_odds", "base", "parts"]
    assert list(found["parts"][0]) == ["name", "log_odds", "note", "words"]
    assert list(found["parts"][0]["words"][0]) == ["start", "end", "weight"]


def test_a_network_alone_marks_no_common_word(clinic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def train() -> OpenModel:
        clinic(
            "finetune",
            "finetune.init=random",
            "finetune.head=random",
            "finetune.scorers=none",
            force=True,
        )
        return open_model(clinic.path)

    def count_marks(opened: OpenModel) -> int:
        return len(opened.explain(text, [opened.labels.ids[0]])[0].join_words()[0])

    clinic("mig")
    monkeypatch.setattr("plant_cli.scoring.known_words.COMMON", 0.0)
    monkeypatch.setattr(
        "plant_cli.scoring.known_words.COMMON_FROM", 0
    )  # every word of train is common
    every = train()
    text = " ".join(sorted(every.model.common)[:5])
    assert count_marks(every) == 0
    monkeypatch.undo()
    assert count_marks(train()) > 0


@pytest.mark.parametrize("network", [True, False])
def test_of_a_trained_run(clinic: Any, network: bool) -> None:
    clinic("mig")
    clinic(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        f"finetune.scorers={'none' if network else '[words, titles, neighbours, linear]'}",
        f"finetune.network={str(network).lower()}",
    )
    opened = open_model(clinic.path)
    text = "a cough and a fever"
    suggested = opened.suggest([text], k=5)[0]
    found = opened.explain(text, [one.label for one in suggested])
    check_sums(found, [one.score for one in suggested])
    assert [one.title for one in found] == [one.title for one in suggested]
    assert (found[0].parts[0].name == "network") is network
    if network:
        assert len(found[0].parts[0].spans)
        assert not found[0].parts[0].note  # its decoder has the closed form
    with pytest.raises(UsageError, match="there is no label 'nowhere'"):
        opened.explain(text, ["nowhere"])


def test_a_decoder_without_the_closed_form_shows_its_attention_and_says_so(clinic: Any) -> None:
    clinic("mig")
    clinic(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "model.decoder={name: joint-laat, lstm: 8, inner: 8, context: 4}",
    )
    opened = open_model(clinic.path)
    text = "a cough and a fever"
    suggested = opened.suggest([text], k=5)[0]
    found = opened.explain(text, [one.label for one in suggested])
    check_sums(found, [one.score for one in suggested])
    part = max((one.parts[0] for one in found), key=lambda part: abs(part.log_odds))
    assert (part.name, part.note) == ("network", BY_ATTENTION)
    shares = part.weights / part.log_odds  # its attention, which adds up to 1 over all tokens
    assert len(shares)
    assert (shares > 0).all()
    assert shares.sum() <= 1 + 1e-6
