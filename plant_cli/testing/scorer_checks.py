"""Checks of scorers: finite top lists of the labels of train, each document by itself, and all
that was learned in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy.sparse import csr_array

from plant_cli.api import (
    ComponentError,
    CreditingScorer,
    Documents,
    FittedScorer,
    ScorerInput,
    ScorerSpec,
    SilentReporter,
    promises,
)
from plant_cli.relevance.weighing import BY_INFORMATION
from plant_cli.testing.checklist import check, default_options

SYMPTOMS = ("fever cough", "fracture arm", "pain leg", "headache nausea")
TITLES = (
    "fever",
    "broken arm",
    "",
    "nausea",
    "fever",
)  # one label without a title, two with the same
TRAIN = tuple(f"patient with {SYMPTOMS[i % 4]} and {SYMPTOMS[(i + i // 4) % 4]}" for i in range(12))
SCORER_TEXTS = (
    "fever of the patient",
    "arm arm leg",
    "",
    "words that nobody knows",
    "nausea with fever and cough and fracture",
)
LABELS_LISTED = 200


def sample_scorer_input(copies: int = 1) -> ScorerInput:
    """An invented clinic of twelve documents and five labels; two labels have the same
    documents. With copies, more of each.
    """
    gold = np.zeros((len(TRAIN), len(TITLES)), dtype=np.int64)
    for row, text in enumerate(TRAIN):
        gold[row, [label for label, words in enumerate(SYMPTOMS) if words in text]] = 1
    gold[:, 4] = gold[:, 0]
    gold, titles = np.tile(gold, copies), TITLES * copies
    named = [label for label, title in enumerate(titles) if title]
    return ScorerInput(
        documents=read_sample(TRAIN),
        doc_ids=[f"d{row}" for row in range(len(TRAIN))],
        gold=csr_array(gold),
        names=read_sample([titles[label] for label in named]),
        label_of=np.array(named, dtype=np.int64),
        rows=np.array([0, 3, 4, 11], dtype=np.int64),
        reporter=SilentReporter(),
        relate=BY_INFORMATION.relate,
    )


def read_sample(texts: Sequence[str]) -> Documents:
    """Texts in words."""
    spelt = [text.split() for text in texts]
    rows = {
        word: row
        for row, word in enumerate(dict.fromkeys(word for words in spelt for word in words))
    }
    numbers = np.array([rows[word] for words in spelt for word in words], dtype=np.int32)
    return Documents(
        vocabulary=tuple(rows),
        numbers=numbers,
        ends=np.cumsum([0, *map(len, spelt)]).astype(np.int64),
        texts=texts,
    )


@check(ScorerSpec)
def scores_are_top_lists(spec: ScorerSpec) -> None:
    """Each view is csr [B, L] of finite float32 with rising columns; also for an empty text."""
    for view in _score(spec, read_sample(SCORER_TEXTS)):
        assert view.shape == (len(SCORER_TEXTS), len(TITLES)), (
            f"scores are {view.shape}, not documents x labels"
        )
        assert view.data.dtype == np.float32, f"scores are {view.data.dtype}"
        assert bool(np.isfinite(view.data).all()), "a score is not finite"
        for first, last in zip(view.indptr[:-1], view.indptr[1:], strict=True):
            assert bool((np.diff(view.indices[first:last]) > 0).all()), (
                "the labels of a document do not rise"
            )


@check(ScorerSpec)
def lists_stay_short(spec: ScorerSpec) -> None:
    """At most 200 labels of a document are listed where there are more."""
    for view in _fit(spec, copies=60).scorer.score(read_sample(SCORER_TEXTS)):
        longest = int((view.indptr[1:] - view.indptr[:-1]).max())
        assert longest <= LABELS_LISTED, f"{longest} labels are listed for a document"


@check(ScorerSpec)
def documents_stand_alone(spec: ScorerSpec) -> None:
    """What is said of a document does not depend on its neighbours, nor on words that only they
    have.
    """
    together = _score(spec, read_sample(SCORER_TEXTS))
    for row, text in enumerate(SCORER_TEXTS):
        for alone, view in zip(_score(spec, read_sample([text])), together, strict=True):
            equal = np.allclose(alone.toarray()[0], view[[row]].toarray()[0], atol=1e-6)
            assert equal, f"other scores for {text!r} alone than beside others"


@check(ScorerSpec)
def what_was_learned_is_arrays(spec: ScorerSpec) -> None:
    """A scorer made again from its tensors says the same; they are numbers, as a file of
    safetensors holds them.
    """
    scorer, options = _fit(spec).scorer, default_options(spec)
    tensors = scorer.tensors()
    promises.ARRAYS.require(tensors, who=f"scorer '{spec.name}'", what="tensors")
    again = spec.load(
        options,
        load(save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})),
    )
    documents = read_sample(SCORER_TEXTS)
    for one, other in zip(scorer.score(documents), again.score(documents), strict=True):
        assert np.allclose(one.toarray(), other.toarray(), atol=1e-6), "other scores after loading"


@check(ScorerSpec)
def left_out_scores_have_the_same_form(spec: ScorerSpec) -> None:
    """Left-out scores, where a scorer has them, are one list for each wanted document, by the
    same views.
    """
    data, left_out = sample_scorer_input(), _fit(spec).left_out
    if left_out is not None:
        views = _score(spec, data.documents.take(data.rows))
        assert len(left_out) == len(views), (
            f"{len(left_out)} views of documents left out, {len(views)} of others"
        )
        for view in left_out:
            assert view.shape == (len(data.rows), len(TITLES)), f"left-out scores are {view.shape}"


@check(ScorerSpec)
def reasons_are_one_for_each_label(spec: ScorerSpec) -> None:
    """`explain` gives one reason for each label, without text where it has none, and names
    words of the document only.
    """
    for text in SCORER_TEXTS:
        reasons = _fit(spec).scorer.explain(read_sample([text]), [2, 0])
        promises.REASONS.require(reasons, [2, 0], who=f"scorer '{spec.name}'", what="explain")
        assert all(set(reason.words) <= set(text.split()) for reason in reasons), (
            "a reason names words that the document does not have"
        )


@check(ScorerSpec)
def reasons_stand_alone(spec: ScorerSpec) -> None:
    """`explain` says the same of a document, whatever others it was read with."""
    scorer, together, labels = _fit(spec).scorer, read_sample(SCORER_TEXTS), range(len(TITLES))
    for row, text in enumerate(SCORER_TEXTS):
        alone = list(scorer.explain(read_sample([text]), labels))
        among_others = list(scorer.explain(together.take(np.array([row])), labels))
        assert alone == among_others, f"other reasons for {text!r} alone than beside others"


@check(ScorerSpec)
def words_add_up_to_scores(spec: ScorerSpec) -> None:
    """`credit`, where a scorer has it, gives for each view what each word adds, and a label's
    words add up to its score.
    """
    scorer = _fit(spec).scorer
    for text in SCORER_TEXTS if isinstance(scorer, CreditingScorer) else ():
        document, labels = read_sample([text]), [2, 0, 1]
        credits = scorer.credit(document, labels)  # type: ignore[attr-defined]
        for view, credit in zip(scorer.score(document), credits, strict=True):
            assert credit.shape == (3, len(document.vocabulary)), (
                f"credit is {credit.shape}, not labels x words"
            )
            added, scores = credit.toarray().sum(axis=1), view.toarray()[0, labels]
            assert np.allclose(added, scores, atol=1e-5), (
                f"words of {text!r} add up to {added}, the scores are {scores}"
            )


@check(ScorerSpec)
def memory_is_foretold(spec: ScorerSpec) -> None:
    """`memory`, where a scorer has it, is a number of bytes for any number of documents."""
    for documents in (1, 1000, 1_000_000):
        if spec.memory is not None:
            spec.memory(
                default_options(spec), documents
            )  # the promise of a spec's function is checked at each call


@cache
def _fit(spec: ScorerSpec, copies: int = 1) -> FittedScorer:
    try:
        return spec.fit(default_options(spec), sample_scorer_input(copies))
    except ComponentError as error:
        if not _comes_from_import(error):
            raise
        pytest.skip(str(error))  # packages that this machine does not have


def _comes_from_import(error: BaseException | None) -> bool:
    return error is not None and (
        isinstance(error, ImportError) or _comes_from_import(error.__cause__)
    )


def _score(spec: ScorerSpec, documents: Documents) -> Sequence[csr_array]:
    scores = _fit(spec).scorer.score(documents)
    promises.SCORES.require(scores, who=f"scorer '{spec.name}'", what="score")
    return scores
