"""How one corpus differs from an earlier one: lengths, words, and how often labels are assigned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import rel_entr
from scipy.stats import chi2, false_discovery_control

from plant_cli.api.options import FIXED_SEED
from plant_cli.data.documents import DOCUMENT_COLUMNS
from plant_cli.data.labels import count_labels
from plant_cli.data.words import spell

# documents, on the smaller side of the comparison, from which a change of frequency is tested
EXPECTED = 5.0
RATE = 0.05  # false discovery rate (Benjamini & Hochberg 1995)
NEW = 3  # documents of the later corpus that must have a new word: fewer are slips of the pen
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two corpora."""

    documents: int  # how many
    words_median: float  # words of a document
    words_p90: float  # words that nine of ten documents do not exceed
    labels_per_document: float  # on average
    labels: int  # distinct ones


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What is different in the later of two corpora."""

    before: Side  # the earlier corpus
    after: Side  # the later one
    # `word`, `before`, `after` (documents that have it), `change` (signed G²), `p`, `changed`;
    # every word
    words: pl.DataFrame
    labels: pl.DataFrame  # the same of labels, under `label`
    # share of the later corpus's words, each time they occur, that the earlier one does not have
    new_words_share: float
    unseen_share: (
        float  # share of the later corpus's assignments whose label the earlier one does not have
    )
    # Jensen-Shannon divergence of the word distributions, in bits (0 equal, 1 nothing shared)
    words_distance: float
    labels_distance: float  # the same of labels
    # the same where all documents are dealt at random to two corpora of these sizes: what chance
    # gives
    words_chance: float
    labels_chance: float  # the same of labels


@dataclass(frozen=True)
class _Counted:
    side: Side
    tokens: Counter[str]
    documents_with: Counter[str]
    labels: dict[str, int]


def compare_corpora(before: pl.DataFrame, after: pl.DataFrame) -> Drift:
    """Compare two corpora of tidy documents, their splits pooled.

    A change of frequency is tested where both corpora together lead to expect at least 5 documents
    with the word or label, and as many without it, on either side: the likelihood ratio G² of the
    two shares of documents (Dunning 1993), one degree of freedom, at a false discovery rate of 5%.
    Documents count as independent.
    """
    sides = [_count(frame) for frame in (before, after)]
    pooled = pl.concat([before.select(*DOCUMENT_COLUMNS), after.select(*DOCUMENT_COLUMNS)])
    order = np.random.default_rng(FIXED_SEED).permutation(pooled.height)
    dealt = [
        _count(pooled[np.sort(rows).tolist()])
        for rows in (order[: before.height], order[before.height :])
    ]
    old, new = sides
    words = _contrast(
        old.documents_with, new.documents_with, old.side.documents, new.side.documents, "word"
    )
    labels = _contrast(old.labels, new.labels, old.side.documents, new.side.documents, "label")
    unseen = sum(count for label, count in new.labels.items() if label not in old.labels)
    novel = sum(count for word, count in new.tokens.items() if word not in old.tokens)
    return Drift(
        before=old.side,
        after=new.side,
        words=words,
        labels=labels,
        new_words_share=novel / max(1, new.tokens.total()),
        unseen_share=unseen / max(1, sum(new.labels.values())),
        words_distance=divergence(old.tokens, new.tokens),
        labels_distance=divergence(old.labels, new.labels),
        words_chance=divergence(dealt[0].tokens, dealt[1].tokens),
        labels_chance=divergence(dealt[0].labels, dealt[1].labels),
    )


def divergence(
    first: dict[str, int] | Counter[str], second: dict[str, int] | Counter[str]
) -> float:
    """Jensen-Shannon divergence of two distributions given as counts, in bits; 0 if one of them
    is empty.
    """
    names = list({**first, **second})
    counts = np.array(
        [[side.get(name, 0) for name in names] for side in (first, second)], dtype=np.float64
    ).reshape(2, len(names))
    totals = counts.sum(axis=1, keepdims=True)
    if not totals.all():
        return 0.0
    shares = counts / totals
    return float(rel_entr(shares, shares.mean(axis=0)).sum() / (2 * np.log(2)))


def likelihood_ratio(before: Numbers, after: Numbers, documents: tuple[int, int]) -> Numbers:
    """G² of two shares of documents, 0 or more [K]."""
    observed = np.stack([before, documents[0] - before, after, documents[1] - after])
    with_it, total = before + after, documents[0] + documents[1]
    expected = np.stack(
        [rows * n / total for n in documents for rows in (with_it, total - with_it)]
    )
    return np.asarray(
        np.maximum(2 * rel_entr(observed, expected).sum(axis=0), 0.0), dtype=np.float64
    )


def _contrast(
    first: dict[str, int], second: dict[str, int], size: int, other: int, name: str
) -> pl.DataFrame:
    names = sorted({**first, **second})
    counts = [
        np.array([side.get(one, 0) for one in names], dtype=np.float64) for side in (first, second)
    ]
    ratio = likelihood_ratio(counts[0], counts[1], (size, other))
    share = (counts[0] + counts[1]) / max(1, size + other)
    tested = np.minimum(share, 1 - share) * min(size, other) >= EXPECTED
    p = np.where(tested, chi2.sf(ratio, 1), np.nan)
    changed = np.zeros(len(names), dtype=bool)
    changed[tested] = false_discovery_control(p[tested]) <= RATE if tested.any() else False
    rises = counts[1] * size >= counts[0] * other
    return pl.DataFrame(
        {
            name: pl.Series(names, dtype=pl.String),
            "before": counts[0].astype(np.int64),
            "after": counts[1].astype(np.int64),
            "change": np.where(rises, ratio, -ratio),
            "p": pl.Series(p).fill_nan(None),
            "changed": changed,
        }
    ).sort("change", name, descending=[True, False])


def _count(frame: pl.DataFrame) -> _Counted:
    tokens: Counter[str] = Counter()
    documents_with: Counter[str] = Counter()
    lengths = []
    for words in map(spell, frame["text"]):
        lengths.append(len(words))
        tokens.update(words)
        documents_with.update(set(words))
    labels = dict(count_labels(frame).select("label", "count").iter_rows())
    side = Side(
        documents=frame.height,
        words_median=round(float(np.median(lengths)), 1) if lengths else 0.0,
        words_p90=round(float(np.quantile(lengths, 0.9)), 1) if lengths else 0.0,
        labels_per_document=round(sum(labels.values()) / max(1, frame.height), 4),
        labels=len(labels),
    )
    return _Counted(side, tokens, documents_with, labels)
