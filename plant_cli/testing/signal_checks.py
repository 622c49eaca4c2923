"""Checks of signals: a pure function of the count table, with float64 values of the same shape."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Counts, SignalSpec
from plant_cli.testing.checklist import check, default_options

SIGNAL_LABELS, SIGNAL_WORDS, SIGNAL_DOCUMENTS = 4, 6, 40
SIGNAL_ROUNDING = 1e-12  # what rounding leaves where values are level


def sample_counts() -> Counts:
    """A count table [labels, words] of an invented corpus; some pairs never co-occur, some
    always do.
    """
    generator = np.random.default_rng(0)
    with_label = (
        generator.random((SIGNAL_DOCUMENTS, SIGNAL_LABELS)) < (0.1, 0.3, 0.5, 0.9)
    ).astype(np.int64)
    occurrences = generator.poisson(
        (0.05, 0.2, 0.5, 1.0, 2.0, 0.3), (SIGNAL_DOCUMENTS, SIGNAL_WORDS)
    )
    occurrences[:, 5] = 2 * with_label[:, 1]  # a word that tells all of one label
    with_word = (occurrences > 0).astype(np.int64)
    return Counts(
        n_docs=SIGNAL_DOCUMENTS,
        docs_with_word=with_word.sum(0)[None, :],
        docs_with_label=with_label.sum(0)[:, None],
        docs_with_both=with_label.T @ with_word,
        occurrences=with_label.T @ occurrences,
        words_with_label=(with_label.T @ occurrences).sum(1, keepdims=True),
        pairs=np.arange(SIGNAL_LABELS * SIGNAL_WORDS).reshape(SIGNAL_LABELS, SIGNAL_WORDS),
    )


@check(SignalSpec)
def values_are_float64_numbers(spec: SignalSpec) -> None:
    """One float64 for each pair; finite, or −inf where label and word never co-occur."""
    counts = sample_counts()
    values = _score(spec, counts)
    assert values.shape == (SIGNAL_LABELS, SIGNAL_WORDS), (
        f"shape {values.shape} for counts of shape {(SIGNAL_LABELS, SIGNAL_WORDS)}"
    )
    assert values.dtype == np.float64, f"values are {values.dtype}"
    assert not np.isnan(values).any(), "some values are NaN"
    assert not np.isposinf(values).any(), "some values are infinite"
    assert np.isfinite(values[counts.docs_with_both > 0]).all(), (
        "a value is -inf though label and word co-occur"
    )


@check(SignalSpec)
def same_counts_give_same_values(spec: SignalSpec) -> None:
    """Nothing is kept between calls, and the counts are not changed."""
    counts, untouched = sample_counts(), sample_counts()
    assert np.array_equal(_score(spec, counts), _score(spec, counts)), "two calls differ"
    for field in fields(Counts):
        assert np.array_equal(getattr(counts, field.name), getattr(untouched, field.name)), (
            f"{field.name} was changed"
        )


@check(SignalSpec)
def pairs_stand_alone(spec: SignalSpec) -> None:
    """A pair's value does not depend on which other pairs are asked for: blocks and flat lists
    of pairs give the same.
    """
    counts = sample_counts()
    rows, columns = (index.ravel() for index in np.indices((SIGNAL_LABELS, SIGNAL_WORDS)))
    order = np.random.default_rng(1).permutation(rows.size)
    rows, columns = rows[order], columns[order]

    def pick(values: Any) -> Any:
        return np.broadcast_to(values, (SIGNAL_LABELS, SIGNAL_WORDS))[rows, columns]

    flat = Counts(
        n_docs=counts.n_docs,
        **{f.name: pick(getattr(counts, f.name)) for f in fields(Counts) if f.name != "n_docs"},
    )
    assert np.allclose(_score(spec, flat), _score(spec, counts)[rows, columns], rtol=1e-12), (
        "a block and a list of pairs differ"
    )


@check(SignalSpec)
def values_fall_then_rise_where_declared(spec: SignalSpec) -> None:
    """With `quasi_convex`, the values of one label and one number of documents with both have
    no peak along the documents of the word.
    """
    if not spec.quasi_convex:
        return
    for label in range(1, SIGNAL_DOCUMENTS):
        for both in range(
            1 if spec.signed else 0, label + 1
        ):  # of a signed signal only words that meet the label are scored
            word = np.arange(max(both, 1), SIGNAL_DOCUMENTS - (label - both) + 1)
            of_label, of_both = np.full_like(word, label), np.full_like(word, both)
            counts = Counts(
                n_docs=SIGNAL_DOCUMENTS,
                docs_with_word=word,
                docs_with_label=of_label,
                docs_with_both=of_both,
            )
            steps = np.diff(_score(spec, counts))
            after_a_rise = (
                steps[int(np.argmax(steps > SIGNAL_ROUNDING)) :]
                if (steps > SIGNAL_ROUNDING).any()
                else steps[:0]
            )
            assert (after_a_rise >= -SIGNAL_ROUNDING).all(), (
                f"values have a peak where {both} of the label's {label} documents hold the word"
            )


def _score(spec: SignalSpec, counts: Counts) -> npt.NDArray[np.float64]:
    """The values of a signal, which is given only the counts that it declares."""
    if not spec.needs_occurrences:
        counts = replace(counts, occurrences=None, words_with_label=None)
    if not spec.needs_pairs:
        counts = replace(counts, pairs=None)
    return spec.score(counts, default_options(spec))
