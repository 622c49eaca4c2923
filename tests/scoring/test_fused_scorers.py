"""Scorers fitted together: what they give, what becomes of those that fail, odd input, and
reasons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.sparse import csr_array
from scoring.conftest import NAMES, SIGNS, best, clinic, fit

from plant_cli.api import (
    Choice,
    ComponentError,
    DataError,
    Documents,
    FittedScorer,
    NoOptions,
    Reason,
    ScorerInput,
    ScorerSpec,
    SilentReporter,
    Split,
)
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.registry import installed
from plant_cli.scoring import scorer_fitting
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import (
    Combination,
    NamedScorer,
    ScorerError,
    ask,
    check_scores,
    score_parts,
)
from plant_cli.scoring.known_words import KnownWords
from plant_cli.scoring.score_sums import explain_labels
from plant_cli.scoring.scorer_fitting import fit_scorers
from tests.scoring.conftest import split_words


class Played:
    """A scorer that says what it is told."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    def score(self, documents: Documents) -> list[csr_array]:
        return [csr_array(np.tile(self.values, (len(documents), 1)).astype(np.float32))]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        return [Reason(text="")] * len(labels)

    def tensors(self) -> Mapping[str, Any]:
        return {"values": self.values}


def played(values: Sequence[float], error: Exception | None = None) -> ScorerSpec:
    def fit(options: NoOptions, given: ScorerInput) -> FittedScorer:
        if error is not None:
            raise error
        return FittedScorer(scorer=Played(np.array(values)))

    return ScorerSpec(
        name="played",
        summary="P.",
        fit=fit,
        load=lambda options, tensors: Played(tensors["values"]),
    )


def test_all_together_find_the_labels_and_each_alone_is_kept() -> None:
    fitted = fit()
    assert best(fitted, ["chills and fever", "the leg is broken", "nightly cough"]) == [0, 2, 3]
    assert list(fitted.scorers.alone) == list(NAMES)
    assert len(fitted.scorers.fusion.weights) == sum(
        scorer.views for scorer in fitted.scorers.scorers
    )
    scored = fitted.scorers.score(split_words(["fever"]), SilentReporter(), "texts")
    assert score_parts(scored, 1)["titles"].labels.tolist() == [[0]]


@pytest.mark.parametrize(
    ("titles", "documents", "said"),
    [
        (("лихорадка", "рука", "нога", "кашель"), 40, 1),
        (tuple(SIGNS), 40, 0),
        (("рука", None, None, None), 20, 0),
    ],
)
def test_titles_that_tell_no_labels_apart_are_told(
    titles: Sequence[str | None], documents: int, said: int
) -> None:
    told = SilentReporter()
    fit(("words", "titles"), reporter=told, titles=titles, documents=documents)
    assert (
        len(
            [
                note
                for note in told.notes
                if note.startswith("scorer titles: tells no labels apart here")
            ]
        )
        == said
    )


def test_left_out_scores_are_of_documents_that_were_not_seen() -> None:
    fitted = fit(("linear",), documents=6)
    own = fitted.left_out.logits(np.arange(6))
    seen = fitted.scorers.score(split_words(clinic(6)[0].texts), SilentReporter(), "train").logits(
        np.arange(6)
    )
    gold = clinic(6)[0].gold.toarray().astype(bool)
    assert own[gold].mean() < seen[gold].mean()


def test_with_very_many_documents_a_scorer_is_fitted_once_without_those_that_teach_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[ScorerInput] = []

    def see(options: NoOptions, given: ScorerInput) -> FittedScorer:
        seen.append(given)
        return FittedScorer(
            scorer=Played(np.arange(4)), left_out=[csr_array((0, 4), dtype=np.float32)]
        )

    watching = ScorerSpec(
        name="played",
        summary="P.",
        fit=see,
        load=lambda options, tensors: Played(tensors["values"]),
    )
    monkeypatch.setattr(scorer_fitting, "DOCUMENTS_REFITTED", 10)
    monkeypatch.setattr(scorer_fitting, "DOCUMENTS_LEFT_OUT", 5)
    fitted = fit(NAMES[:3], watching, documents=11)
    [given] = seen
    assert not {f"d{row}" for row in fitted.rows} & {*given.doc_ids}
    assert (len(given.documents), len(given.rows), len(fitted.left_out)) == (6, 0, 5)
    assert {str(row) for row in fitted.rows}.isdisjoint(
        given.documents.vocabulary
    )  # each document has its number
    seen_anew = fitted.scorers.score(fitted.left_out.documents, SilentReporter(), "train")
    np.testing.assert_array_equal(seen_anew.pairs.values, fitted.left_out.pairs.values)


def test_a_failing_scorer_is_named_and_left_out_only_if_that_is_allowed() -> None:
    broken = played([0, 0, 0, 0], ValueError("no luck"))
    with pytest.raises(
        ComponentError, match="'played' cannot be fitted: ValueError: no luck"
    ) as caught:
        fit(("words",), broken)
    assert "--allow-missing" in caught.value.todo
    fitted = fit(("words",), broken, allow_missing=True)
    assert [scorer.name for scorer in fitted.scorers.scorers] == ["words"]
    assert "no luck" in fitted.missing["played"]


def test_a_scorer_that_cannot_be_saved_is_found_while_scorers_are_fitted() -> None:
    class Unsaved(Played):
        def tensors(self) -> dict[str, Any]:
            raise ValueError("no file")

    spec = replace(
        played([0, 0, 0, 0]), fit=lambda options, given: FittedScorer(scorer=Unsaved(np.zeros(4)))
    )
    with pytest.raises(ComponentError, match="'played' cannot be saved: ValueError: no file"):
        fit(("words",), spec)
    fitted = fit(("words",), spec, allow_missing=True)
    assert [scorer.name for scorer in fitted.scorers.scorers] == ["words"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, np.nan, 0, 0], "not arrays of finite numbers"),
        ([np.inf, 0, 0, 0], "not arrays of finite numbers"),
        ([1, 0, 0], r"not \(40, 4\)"),
    ],
)
def test_scores_that_are_not_what_was_promised_are_refused(
    values: list[float], message: str
) -> None:
    with pytest.raises(ComponentError, match=message):
        fit((), played(values))


def test_a_label_is_found_by_each_of_its_names() -> None:
    split, labels = clinic()
    chosen = [installed().resolve(ScorerSpec, Choice(name="titles"))]
    others = [["pyrexia", "Fever and chills"], [], ["", "crural fracture"], []]
    named = LabelTable(
        ids=labels.ids,
        titles=[labels.titles[0], None, *labels.titles[2:]],
        train_counts=labels.train_counts,
        alternatives=others,
    )
    found, plain = (
        fit_scorers(chosen, split, split_words(split.texts), known, PLAIN, SilentReporter(), seed=0)
        for known in (named, labels)
    )
    assert found is not None
    assert plain is not None
    assert best(found, ["pyrexia", "fever and chills", "crural", "cough at night"]) == [0, 0, 2, 3]
    [scorer] = found.scorers.scorers
    reasons = scorer.scorer.explain(words_of("high pyrexia"), [0, 1])
    assert reasons == [Reason(text="“pyrexia”: pyrexia", words=("pyrexia",)), Reason(text="")]
    [whole] = [view.matrix.toarray() for view in scorer.score(words_of("fever and chills"), 4)][:1]
    assert whole[0, 0] == pytest.approx(
        1, abs=1e-5
    )  # another name takes nothing from the one that fits
    assert whole[0, 1] == 0  # without any name there is nothing to compare with
    assert best(plain, ["fever and chills"]) == [0]


def test_without_titles_their_scorer_is_left_out() -> None:
    fitted = fit(titles=[None] * 4)
    assert [scorer.name for scorer in fitted.scorers.scorers] == ["words", "neighbours", "linear"]
    assert fitted.missing == {"titles": "no label has a title"}
    split, labels = clinic(titles=[None] * 4)
    chosen = [installed().resolve(ScorerSpec, Choice(name="titles"))]
    assert (
        fit_scorers(
            chosen, split, split_words(split.texts), labels, PLAIN, SilentReporter(), seed=0
        )
        is None
    )


@pytest.mark.parametrize(
    ("ids", "titled"),
    [
        (["3tears", "pyrexia", "dry_cough", "T81"], True),
        (["pyrexia", "leg fracture", "A01.1", "T81"], False),  # no more than half are words
        (["gnd:4012341", "gnd:4012342", "gnd:4012343", "gnd:4012344"], False),
        ([f"http://www.yso.fi/onto/yso/p{number}" for number in range(4)], False),
    ],
)
def test_ids_that_are_words_stand_in_for_titles(ids: list[str], titled: bool) -> None:
    split, labels = clinic(titles=[None] * 4)
    reporter = SilentReporter()
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in ("words", "titles")]
    found = fit_scorers(
        chosen, split, split_words(split.texts), replace(labels, ids=ids), PLAIN, reporter, seed=0
    )
    assert found is not None
    assert [scorer.name for scorer in found.scorers.scorers] == (
        ["words", "titles"] if titled else ["words"]
    )
    assert any("most ids are words, such as 'pyrexia'" in note for note in reporter.notes) is titled
    if titled:
        assert cast(Any, found.scorers.scorers[1].scorer).titles == (
            "tears",
            "pyrexia",
            "dry cough",
            "t",
        )
    silent = SilentReporter()
    assert (
        fit_scorers(
            chosen[:1],
            split,
            split_words(split.texts),
            replace(labels, ids=ids),
            PLAIN,
            silent,
            seed=0,
        )
        is not None
    )
    assert not any("words, such as" in note for note in silent.notes)  # no scorer reads titles
    known = replace(labels, ids=ids, titles=["fever", None, None, None])
    partly = fit_scorers(chosen, split, split_words(split.texts), known, PLAIN, reporter, seed=0)
    assert partly is not None
    assert cast(Any, partly.scorers.scorers[1].scorer).titles == (
        "fever",
    )  # with a single title, ids are not read


@pytest.mark.parametrize(
    "corpus", [{"documents": 1}, {"documents": 2}, {"documents": 12, "same": True}]
)
def test_one_document_and_labels_that_are_all_alike_make_a_model(corpus: dict[str, Any]) -> None:
    fitted = fit(**corpus)
    logits = fitted.scorers.score(
        split_words(["fever and chills", ""]), SilentReporter(), "texts"
    ).logits(np.arange(2))
    assert np.isfinite(logits).all()


def test_labels_with_the_same_documents_are_told_apart_by_their_titles() -> None:
    split, labels = clinic()
    gold = split.gold.toarray()
    gold[:, 3] = gold[:, 0]
    twins = Split(
        name="train",
        doc_ids=split.doc_ids,
        texts=split.texts,
        gold=csr_array(gold),
        unseen=split.unseen,
    )
    named = LabelTable(
        ids=labels.ids,
        titles=["chills", "arm", "leg", "fever"],
        train_counts=gold.sum(axis=0).tolist(),
    )
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in NAMES]
    fitted = fit_scorers(
        chosen, twins, split_words(twins.texts), named, PLAIN, SilentReporter(), seed=0
    )
    assert fitted is not None
    assert best(fitted, ["a fever", "chills"]) == [3, 0]


def words_of(text: str) -> Documents:
    return number_words([PLAIN.spell(text)])


def test_titles_propose_labels_that_no_training_document_has() -> None:
    split, labels = clinic()
    wide = replace(
        split,
        gold=csr_array((split.gold.data, split.gold.indices, split.gold.indptr), shape=(40, 6)),
    )
    more = LabelTable(
        ids=[*labels.ids, "e", "f"],
        titles=[*labels.titles, "stone in the kidney", "gout"],
        train_counts=[*labels.train_counts, 0, 0],
    )
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in NAMES]
    found = fit_scorers(
        chosen, wide, split_words(wide.texts), more, PLAIN, SilentReporter(), seed=0
    )
    assert found is not None
    scored = found.scorers.score(
        split_words(["patient with a stone in the left kidney", "fever and chills"]),
        SilentReporter(),
        "test",
    )
    logits = scored.logits(np.arange(2))
    assert np.isfinite(logits).all()
    assert logits[0, 4] > logits[0, 5]
    assert logits[1].argmax() == 0


class Failing:
    """A scorer that can do nothing."""

    def score(self, *given: Any) -> Any:
        raise ValueError("no luck")

    explain = tensors = score


NAMED = NamedScorer(chosen=Choice(name="failing"), scorer=Failing(), views=1)  # type: ignore[arg-type]
ONE = number_words([["a", "text"]])


def test_a_scorer_that_fails_is_named_whatever_it_is_asked() -> None:
    with pytest.raises(ScorerError, match="'failing' fails: ValueError: no luck") as caught:
        NAMED.score(ONE, 3)
    assert caught.value.name == "failing"
    assert "--allow-missing leaves 'failing' out" in caught.value.todo
    with pytest.raises(ScorerError, match="'failing' cannot say why: ValueError: no luck"):
        NAMED.explain(ONE, [0])


def test_errors_with_a_message_of_their_own_and_shortages_pass() -> None:
    def fail(error: Exception) -> None:
        raise error

    own = DataError("bad", where="here", expected="good", todo="mend")
    for error in (own, MemoryError()):
        with pytest.raises(type(error)):
            ask("failing", "fails", lambda error=error: fail(error))  # type: ignore[misc]


def test_views_and_shapes_are_as_promised() -> None:
    scores = [csr_array(np.ones((1, 3), dtype=np.float32))]
    assert len(check_scores("a", lambda: scores, (1, 3))) == 1
    with pytest.raises(ScorerError, match="takes 1 views of documents, not 2"):
        check_scores("a", lambda: scores, (1, 3), views=2)
    with pytest.raises(ScorerError, match=r"gives scores \(1, 3\), not \(1, 4\)"):
        check_scores("a", lambda: scores, (1, 4))


def test_a_scorer_has_no_scores_of_no_documents() -> None:
    assert [scores.matrix.shape for scores in NAMED.score(number_words([]), 3)] == [(0, 3)]


def weigh(*slopes: float) -> Combination:
    """Of the network, where there is one, and of the scorers."""
    scorers = fit().scorers
    linear = FrequencyLinear.constant(slopes, 0.0, (1.0,))
    return Combination(
        scorers=scorers, calibration=Calibration(linear=linear), train_counts=scorers.train_counts
    )


def explain(text: str, labels: list[int], trust: float = 1.0) -> list[Reason]:
    """By scorers that count alike for every label."""
    scored = fit().scorers.score(split_words([text]), SilentReporter(), "texts")
    [found] = explain_labels(
        scored, weigh(trust), np.array([labels], dtype=np.int64).reshape(1, -1)
    )
    return found


def numbers(reason: str) -> list[float]:
    """What the parts add, without the base."""
    return [float(number) for number in re.findall(r"; \w+ ([+-][\d.]+)", reason)]


def test_reasons_name_scorers_and_words() -> None:
    found = explain("a patient with fever and chills", [0, 2])
    right, wrong = (reason.text for reason in found)
    assert "fever" in right
    assert "fever" in found[0].words
    assert set(found[0].words) <= {"a", "patient", "with", "fever", "and", "chills"}
    base, *parts = right.split("; ")
    assert base.startswith("base ")
    named = [re.split(r" [+-]", part)[0] for part in parts]
    assert set(named) <= {"words", "titles", "neighbours", "linear"}
    assert numbers(right) == sorted(numbers(right), reverse=True)
    assert len(wrong) < len(right)


class Telling(Played):
    """A scorer whose reasons are words, or a title."""

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        return [
            Reason(words=("with", "fever", "and", "chills", "cough", "pain")),
            Reason(text="“and”", words=("and",)),
            Reason(words=("with", "and")),
            Reason(),
        ]


def test_common_words_are_a_reason_only_where_there_are_no_others() -> None:
    known = cast(KnownWords, SimpleNamespace(common={"with", "and"}))
    scorers = replace(
        fit().scorers, scorers=[replace(NAMED, scorer=Telling(np.zeros(3)))], known=known
    )
    [found] = scorers.explain(
        split_words(["pain with fever and chills and cough"]), [0, 1, 2, 3]
    ).values()
    assert found == [
        Reason(text="fever, chills, cough", words=("fever", "chills", "cough")),
        Reason(text="“and”", words=("and",)),
        Reason(text="with, and", words=("with", "and")),
        Reason(),
    ]


def test_numbers_are_what_is_left_beside_a_network() -> None:
    [alone], [beside] = (
        explain("a patient with fever and chills", [0], trust) for trust in (1.0, 0.5)
    )
    assert len(numbers(beside.text)) >= 1
    for half, whole in zip(numbers(beside.text), numbers(alone.text), strict=False):
        assert abs(half - whole / 2) <= 0.1


def test_no_labels_no_reasons() -> None:
    assert explain("a", []) == []


def test_what_the_network_adds_stands_among_the_scorers() -> None:
    scored = fit().scorers.score(
        split_words(["a patient with fever and chills"]), SilentReporter(), "texts"
    )
    labels = np.array([[0, 2, 1]])
    [alone] = explain_labels(scored, weigh(1.0), labels)
    [found] = explain_labels(
        scored, weigh(1.0, 1.0), labels, (np.array([[40.0, 0.04, -3.0]]), np.zeros(1))
    )
    base, parts = alone[0].text.split("; ", 1)
    assert found[0] == Reason(text=f"{base}; network +40.0; {parts}", words=alone[0].words)
    assert found[1] == alone[1]
    assert found[2] == Reason(text=f"{alone[2].text}; network -3.0", words=alone[2].words)


def test_a_label_that_nothing_speaks_for_has_its_base_alone() -> None:
    scored = fit().scorers.score(split_words(["zzz"]), SilentReporter(), "texts")
    for logit, reason in ((-0.04, "base +0.0"), (1.21, "base +0.0; network +1.2")):
        network = (np.array([[logit]]), np.zeros(1))
        assert explain_labels(scored, weigh(1.0, 0.0), np.array([[0]]), network) == [
            [Reason(text=reason)]
        ]


def test_scorers_see_the_words_of_one_document_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever walks through a vocabulary would otherwise do so once for each text, over the
    words of all.
    """
    scored = fit().scorers.score(
        split_words(["fever and chills", "a broken leg", "fever"]), SilentReporter(), "texts"
    )
    seen: list[int] = []
    for scorer in scored.scorers.scorers:
        explain = scorer.explain
        monkeypatch.setattr(
            type(scorer),
            "explain",
            lambda self, document, own, told=explain: (
                seen.append(len(document.vocabulary)) or told(document, own)
            ),
        )
        break
    explain_labels(scored, weigh(1.0), np.array([[0], [0], [0]]))
    assert seen == [3] * 4 + [3] * 4 + [1] * 4
