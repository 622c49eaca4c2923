"""Fusion: scorers as one, by a model of weights by label frequency (`frequency_linear`) of their
standardised scores.

z_s is the score of scorer s less its mean over the pairs of the document (and one label that is
none of them), in standard deviations.

The weights are learned from scores of documents that the scorers were not fitted on, or from
leave-one-out scores of train. There a label of n + 1 training documents is, to each of its own
documents, what a label of n is to a new one (the argument of Good and Turing): it counts as one of
n, and with n = 0 it takes no part.

Labels of no training document are scored by their names alone. Their weights are learned from
labels of one document, which are what such labels are to a document that is left out. A document
has as many of the former as of the latter (Good and Turing again), shared among as many labels as
there are of each, so the offset changes by ln (N₁ / N₀).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.scoring.frequency_linear import Floats, FrequencyLinear, Ints, group_frequencies
from plant_cli.scoring.sparse_scores import SparseScores, align_scores, find_pairs
from plant_cli.scoring.top_labels import TopLabels, distinct_probabilities

FUSION_KNOTS = (1.0, 3.0, 10.0, 50.0)  # training documents at which weights are learned
PENALTY = 0.03  # on squared weights, against the mean loss of a document
NOTHING_LEARNED = -3.0  # logit of an average pair where nothing could be learned


@dataclass(frozen=True, kw_only=True)
class ScoredPairs:
    """(document, label) pairs with the score of each source: views of scorers, or the network
    and the scorers together.
    """

    shape: tuple[int, int]  # documents B and labels L
    rows: Ints  # document of each pair, rising [P]
    labels: Ints  # label of each pair, rising within a document [P]
    values: Floats  # score of each pair by each source [P, S]
    floors: Floats = field(
        default_factory=lambda: np.zeros((0, 0))
    )  # scores of all other labels of a document [B, S]; empty: unknown
    scales: Floats = field(
        default_factory=lambda: np.zeros((0, 0))
    )  # what one unit of a source's own score is here [B, S]; empty: unknown
    zeros: Floats = field(
        default_factory=lambda: np.zeros((0, 0))
    )  # what its score 0 is here [B, S]; empty: unknown

    @classmethod
    def join(cls, parts: Sequence[ScoredPairs]) -> ScoredPairs:
        """Pairs of consecutive documents as one."""
        starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        rows = np.concatenate(
            [part.rows + start for part, start in zip(parts, starts[:-1], strict=True)]
        )
        names = "labels", "values", "floors", "scales", "zeros"
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(shape=(int(starts[-1]), parts[0].shape[1]), rows=rows, **joined)

    def span(self, row: int) -> slice:
        """Where the pairs of a document are."""
        return slice(*np.searchsorted(self.rows, [row, row + 1]).tolist())

    def take(self, sources: Sequence[int]) -> ScoredPairs:
        """The same pairs with some of the sources alone."""
        names = "values", "floors", "scales", "zeros"
        return replace(self, **{name: getattr(self, name)[:, sources] for name in names})

    def find(self, rows: Ints, labels: Ints) -> Ints:
        """Where some pairs [P] are among these; −1 for those that are not."""
        width = np.int64(self.shape[1])
        keys, wanted = self.rows * width + self.labels, rows * width + labels
        at = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -1)[at] == wanted, at, -1)

    def look_up(self, rows: Ints, labels: Ints) -> Floats:
        """The scores of some pairs [P, S], among these or not."""
        at, values = self.find(rows, labels), self.floors[rows]
        values[at >= 0] = self.values[at[at >= 0]]
        return values

    def top(self, logits: Floats, k: int) -> TopLabels:
        """The k best pairs of each document by some logits [P]; a document of fewer ends with
        label −1 and score −inf.
        """
        documents, labels = self.shape
        width = min(k, labels)
        ends = np.searchsorted(self.rows, np.arange(documents + 1))
        order = np.lexsort((self.labels, -logits, self.rows))
        rank = np.arange(len(order)) - ends[self.rows]
        kept = rank < k
        top, best = (
            np.full((documents, width), -1, dtype=np.int64),
            np.full((documents, width), -np.inf),
        )
        top[self.rows[kept], rank[kept]] = self.labels[order][kept]
        best[self.rows[kept], rank[kept]] = logits[order][kept]
        scores = np.where(top >= 0, distinct_probabilities(best), -np.inf)
        return TopLabels(
            labels=top,
            scores=scores,
            assigned_share=float((logits >= 0).sum()) / max(1, documents * labels),
        )


def gather_pairs(scores: Sequence[SparseScores]) -> ScoredPairs:
    """The pairs that any of several views of scorers lists, with the standardised scores of all
    views.
    """
    shape = scores[0].matrix.shape
    rows, labels, listed = align_scores(scores)
    values = listed.astype(np.float64)
    floors = np.concatenate([part.floors.astype(np.float64) for part in scores], axis=1)
    means, scales = find_scale(values, floors, rows)
    values, floors = (values - means[rows]) * scales[rows], (floors - means) * scales
    return ScoredPairs(
        shape=shape,
        rows=rows,
        labels=labels,
        values=values,
        floors=floors,
        scales=scales,
        zeros=-means * scales,
    )


def find_scale(values: Floats, floors: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Of values of pairs [P, S] and floors [B, S] the mean in each document, and 1 over the
    standard deviation, 0 where they do not vary.

    The floor counts as one more value: a document of a single pair then still shows how far it
    stands out.
    """

    def add_up(values: Floats) -> Floats:
        return np.stack([np.bincount(rows, column, len(floors)) for column in values.T], axis=1)

    pairs = 1 + np.bincount(rows, minlength=len(floors))[:, None]
    means = (add_up(values) + floors) / pairs
    spread = np.sqrt((add_up((values - means[rows]) ** 2) + (floors - means) ** 2) / pairs)
    return means, np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)


def fit_fusion(
    pairs: ScoredPairs,
    gold: csr_array,
    train_counts: Ints,
    *,
    left_out: bool,
    zero_shot: Sequence[bool] = (),
    vocabulary: bool = True,
    knots: Sequence[float] = FUSION_KNOTS,
    penalty: float = PENALTY,
) -> FrequencyLinear:
    """Weights of scorers from documents with known labels.

    Where nothing is to be learned from (one training document), every scorer counts alike. Where
    some labels have no training document, the weights have a knot 0.

    Args:
        pairs: of B documents.
        gold: their labels, csr [B, L] of ones, columns ascending.
        train_counts: training documents of each label [L], negative for added ones
            (`frequency_linear`).
        left_out: the scores are leave-one-out scores of training documents.
        zero_shot: whether each scorer scores labels without training documents [S] (default: none
            does).
        vocabulary: whether labels without training documents are all that train lacks, which share
            what new documents have of these; else they are some that were added: none is likelier
            than one of the fewest documents.
        knots: training documents at which weights are learned, rising, ≥ 1.
        penalty: on the sum of squared weights, against the mean loss of a document.
    """
    right, scorers = find_pairs(gold, pairs.rows, pairs.labels) >= 0, pairs.values.shape[1]
    by_name = train_counts <= 0
    train_counts = np.abs(train_counts)
    counts, used = count_others(train_counts, pairs.labels, right & left_out)
    strength = penalty * pairs.shape[0]
    if right[used].any():
        known = FrequencyLinear.fit(
            pairs.values[used], right[used], counts[used], knots=knots, penalty=strength
        )
    else:
        known = FrequencyLinear.constant([1.0 / scorers] * scorers, NOTHING_LEARNED, knots)
    if not by_name.any():
        return known
    able = np.zeros(
        scorers, dtype=np.bool_
    )  # scorers that need no training document of a label are asked alone
    able[: len(zero_shot)] = zero_shot
    weights = np.zeros(scorers)
    if right.any():
        fewest = train_counts[pairs.labels[right]].min()  # most often one
        rarest = train_counts[pairs.labels] == fewest
        weights[able], offset = _fit_names(
            pairs.values[rarest][:, able], right[rarest], counts[rarest], strength
        )
        gain = np.log((train_counts == fewest).sum() / by_name.sum())
        bias = float(offset + (gain if vocabulary else min(0.0, gain)))
    else:
        weights[able], bias = 1.0 / max(1, int(able.sum())), NOTHING_LEARNED
    return FrequencyLinear(
        knots=np.concatenate([[0.0], known.knots]),
        weights=np.concatenate([weights[:, None], known.weights], axis=1),
        bias=np.concatenate([[bias], known.bias]),
    )


def _fit_names(
    values: Floats, right: npt.NDArray[np.bool_], counts: Ints, penalty: float
) -> tuple[Floats, float]:
    """Weights, none below 0, and the offset of scorers that know a label by its names alone.

    That a text names a label does not speak against it: what is learned so of few documents is
    chance. A scorer whose weight would be below 0 is left out, and the others are weighed anew.
    """
    used = np.ones(values.shape[1], dtype=np.bool_)
    while True:
        fitted = FrequencyLinear.fit(values[:, used], right, counts, knots=(1.0,), penalty=penalty)
        weights = np.zeros(len(used))
        weights[used] = fitted.weights[:, 0]
        if not (weights < 0).any():
            return weights, float(fitted.bias[0])
        used &= weights >= 0


def find_fewest(train_counts: Ints) -> int:
    """The fewest training documents, 1 or more, that any label has.

    A left-out document counts one less for its own labels. Where labels of few documents were left
    out of the corpus, that may be fewer than any label has: all such pairs would be right. They
    count as those of the rarest labels.
    """
    return int(train_counts[train_counts > 0].min(initial=np.iinfo(np.int64).max))


def count_others(
    train_counts: Ints, labels: Ints, own: npt.NDArray[np.bool_]
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The training documents of the labels of pairs [P], one less where it is the pair's `own`
    document, and whether there is one.
    """
    counts = train_counts[labels] - own
    return np.maximum(counts, find_fewest(train_counts)), counts > 0


def learned_nothing(fusion: FrequencyLinear) -> bool:
    """Whether `fit_fusion` had nothing to learn from, so that every scorer counts alike."""
    return bool((fusion.bias == NOTHING_LEARNED).all())


def fuse(
    fusion: FrequencyLinear,
    pairs: ScoredPairs,
    train_counts: Ints,
    last: float = 0.0,
    added: Floats | None = None,
) -> SparseScores:
    """Logits of documents by several scorers together, for all labels; those of `last` training
    documents and more are one group.

    `added` is what residuals of labels add to each pair [P].
    """
    counts, groups = group_frequencies(train_counts, max(last, fusion.last))
    sums = fusion.apply(pairs.values, counts, groups[pairs.labels])
    logits = (sums if added is None else sums + added).astype(np.float32)
    ends = np.searchsorted(pairs.rows, np.arange(pairs.shape[0] + 1))
    floors: npt.NDArray[np.float32] = fusion.apply_floors(pairs.floors, counts).astype(np.float32)
    return SparseScores(
        matrix=csr_array((logits, pairs.labels, ends), shape=pairs.shape),
        floors=floors,
        groups=groups,
    )
