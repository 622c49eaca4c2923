"""What words tell a model, and what becomes of documents that tell it nothing or little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from scoring.conftest import clinic, fit

from plant_cli.api import SilentReporter
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.known_words import KnownWords, warn_of_unknown

TRAIN = ["the fever rises", "the fever falls", "the cough", "the leg"]
SAME = Calibration(
    linear=FrequencyLinear(knots=np.array([1.0, 10.0]), weights=np.ones((1, 2)), bias=np.zeros(2))
)


def split(*texts: str) -> Any:
    return number_words(map(PLAIN.spell, texts))


def learn(enough: float = 2.0, share: float = 0.0) -> KnownWords:
    """Words of four documents, and one that only names of labels have."""
    counts = {"the": 4, "fever": 2, "rises": 1, "falls": 1, "cough": 1, "leg": 1}
    return KnownWords(
        words=tuple(counts),
        frequencies=np.array([*counts.values()]),
        named=("bronchitis",),
        documents=4,
        enough=enough,
        share=share,
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", 0.0),
        ("qwertz asdfgh", 0.0),
        ("2024 1234 56", 0.0),
        ("the", 0.0),  # all have it
        ("fever", np.log(5 / 3)),
        ("fever fever the fever", np.log(5 / 3)),  # once is enough
        ("qwertz leg", np.log(5 / 2)),
        ("bronchitis", np.log(5 / 1)),
        ("coughs", np.log(5 / 2) * 3 / 5),  # of its n-grams, three are of "cough"
        ("lego", 0.0),  # of these, one is of "leg"
        ("bronchitis with cough and fever", 2.0),  # more than enough
    ],
)
def test_what_words_tell(text: str, told: float) -> None:
    [trust] = learn().trust(split(text))
    assert trust == pytest.approx(min(1.0, told / 2.0))


def test_a_text_of_another_language_is_not_believed_for_the_rare_words_that_train_happens_to_have() -> (
    None
):
    """Of nine words three are known; where usual texts know most, these are less than half of
    it.
    """
    text = split("leg falls bronchitis une est dans la sur ce")
    assert learn(share=0.8).trust(text) == pytest.approx((3 + 3) / (9 + 3) / 0.8)
    assert learn(share=0.4).trust(text) == 1.0


def test_what_is_usual_is_said_by_left_out_documents() -> None:
    """Of four documents each is asked as if it were not in train, where its own rare words are
    not known.
    """
    found = KnownWords.fit(split(*TRAIN), split("night cough"), np.arange(4))
    assert dict(zip(found.words, found.frequencies.tolist(), strict=True))["fever"] == 2
    assert (found.named, found.documents) == (("night",), 4)
    assert found.enough == 0.0  # two of four know nothing but "the"
    assert found.share == pytest.approx(0.5 * np.quantile([5 / 6, 5 / 6, 4 / 5, 4 / 5], 0.05))
    assert found.trust(split("the", "qwertz")).tolist() == [
        1.0,
        0.0,
    ]  # where usual documents tell nothing, words need but be known
    many = split(*(["fever cough"] * 3 + ["other"] * 200))
    assert KnownWords.fit(many, split(), np.arange(3)).enough == pytest.approx(2 * np.log(203 / 3))
    assert (
        KnownWords.fit(split(*["a b c d e"] * 3, *["other"] * 200), split(), np.arange(3)).enough
        == 10.0
    )


def test_a_document_is_drawn_to_base_rates_as_far_as_it_is_not_believed() -> None:
    logits, counts = np.array([3.0, -1.0]), np.array([2, 1])
    found = [learn().draw(logits, np.array(trust), counts) for trust in (1.0, 0.0, 0.5)]
    assert np.array_equal(found[0], logits)
    assert expit(found[1]) == pytest.approx([2 / 5, 1 / 5])
    assert found[2] == pytest.approx((logits + logit([2 / 5, 1 / 5])) / 2)


def test_a_text_of_unknown_words_has_base_rates_and_a_usual_one_is_as_before() -> None:
    """The same sparse, dense and pair by pair; labels of one base rate stand together, the
    frequent ones first.
    """
    scorers = fit().scorers
    counts = scorers.train_counts
    assert scorers.known is not None
    together = Combination(scorers=scorers, calibration=SAME, train_counts=counts)
    texts = split("patient has fever and chills", "qwertz asdfgh", "", "qwertz chills")
    scored = scorers.score(texts, SilentReporter(), "texts")
    assert scored.trust is not None
    assert scored.trust[1:3].tolist() == [0.0, 0.0]
    sparse = together.calibrate(scored)
    dense = sparse.dense(np.arange(4))
    assert expit(dense[1]) == pytest.approx(counts / 41, rel=1e-5)
    assert np.array_equal(dense[1], dense[2])
    assert sparse.top(4)[0][1].tolist() == np.argsort(-counts, kind="stable").tolist()
    np.testing.assert_allclose(scored.logits(np.arange(4)), dense, rtol=1e-5, atol=1e-5)
    rows, labels = np.divmod(np.arange(16), 4)
    np.testing.assert_allclose(scored.look_up(rows, labels), dense.ravel(), rtol=1e-5, atol=1e-5)
    before = Combination(
        scorers=replace(scorers, known=None), calibration=SAME, train_counts=counts
    )
    plain = before.calibrate(before.scorers.score(texts, SilentReporter(), "texts")).dense(
        np.arange(4)
    )  # type: ignore[union-attr]
    believed = scored.trust == 1
    assert np.array_equal(dense[believed], plain[believed])
    assert (
        expit(plain[1].max()) > 0.99
    )  # one n-gram of a title, met by chance, is all that scorers see


@pytest.mark.parametrize(
    ("network", "follows"), [(False, "nothing is suggested for them"), (True, "the network alone")]
)
def test_texts_that_tell_nothing_or_little_are_named(network: bool, follows: str) -> None:
    heard = SilentReporter()
    warn_of_unknown(
        ["a", "b", "c", "d"], np.array([0.0, 1.0, np.nan, 0.1]), heard, reads_pieces=network
    )
    nothing, little = heard.warnings
    assert nothing.startswith("1 of 4 texts tell the model nothing")
    assert (follows in nothing, nothing.endswith("(a)")) == (True, True)
    assert little.endswith("scores are near base rates (d)")
    warn_of_unknown([str(number) for number in range(9)], np.zeros(9), heard, reads_pieces=network)
    assert heard.warnings[-1].endswith("(0, 1, 2, 3, 4, …)")


def test_titles_of_labels_are_known_words() -> None:
    _, labels = clinic()
    assert fit().scorers.known is not None
    [trust] = fit().scorers.known.trust(split(str(labels.titles[0])))
    assert trust > 0
