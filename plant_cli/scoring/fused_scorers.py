"""Scorers of a model: several as one, what they say of documents, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import (
    Choice,
    ComponentError,
    CreditingScorer,
    Documents,
    PlantError,
    Reason,
    Reporter,
    Scorer,
    promises,
)
from plant_cli.api.functions import Promise, describe_value, surviving_exits
from plant_cli.data.words import drop_unused
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.frequency_linear import Floats, FrequencyLinear, Ints, group_frequencies
from plant_cli.scoring.fusion import ScoredPairs, fuse, gather_pairs
from plant_cli.scoring.known_words import KnownWords
from plant_cli.scoring.label_residuals import LabelResiduals
from plant_cli.scoring.sparse_scores import SparseScores, cut_rows
from plant_cli.scoring.top_labels import Logits, Rows, TopLabels

Answer = TypeVar("Answer")
DOCUMENTS_SCORED = 2048  # at a time
WORDS_NAMED = 3  # of a reason that has no text


class ScorerError(ComponentError):
    """A scorer fails, or does something else than what was promised."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"the scorer '{name}' {what}",
            where=f"option scorers, '{name}'",
            expected="finite scores of every document for the labels of train",
            todo="train without it (`plant finetune --scorers` with other names); while "
            f"training, --allow-missing leaves '{name}' out",
        )
        self.name = name


def ask(
    name: str, what: str, call: Callable[[], Answer], promise: Promise | None = None, *given: Any
) -> Answer:
    """What a scorer of some name answers to a call; `ScorerError` that says `what` if it fails,
    such as "cannot be saved".

    It fails as well if the answer, to what was `given`, is not what was promised.
    """
    try:
        with surviving_exits():
            answer = call()
    except (PlantError, MemoryError):
        raise
    except Exception as error:
        raise ScorerError(name, f"{what}: {type(error).__name__}: {error}") from error
    if promise is not None and not promise.is_kept(answer, *given):
        raise ScorerError(name, f"{what}: it gave {describe_value(answer)}, not {promise.expected}")
    return answer


def check_scores(
    name: str,
    score: Callable[[], Sequence[csr_array]],
    shape: tuple[int, int],
    views: int | None = None,
) -> list[SparseScores]:
    """The scores that a scorer gives, if they are what was promised."""
    scored = [SparseScores.of(view) for view in ask(name, "fails", score, promises.SCORES)]
    if views is not None and len(scored) != views:
        raise ScorerError(name, f"takes {len(scored)} views of documents, not {views}")
    for view in scored:
        if view.matrix.shape != shape:
            raise ScorerError(
                name, f"gives scores {view.matrix.shape}, not {shape} (documents, labels)"
            )
        if not np.isfinite(view.matrix.data).all():
            raise ScorerError(name, "gives scores that are not numbers")
    return scored


@dataclass(frozen=True, kw_only=True)
class NamedScorer:
    """A fitted scorer under its name."""

    chosen: Choice  # its name and all its options
    scorer: Scorer
    views: int  # views that it takes of a document

    @property
    def name(self) -> str:
        """The name that the user chose it by."""
        return self.chosen.name

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """Its reasons for some labels of one document; `ScorerError` if it fails."""
        return list(
            ask(
                self.name,
                "cannot say why",
                lambda: self.scorer.explain(document, labels),
                promises.REASONS,
                labels,
            )
        )

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """What each word of one document adds to the score of some labels, by view; empty if
        the scorer does not say.
        """
        if not isinstance(self.scorer, CreditingScorer):
            return []
        scorer, given = self.scorer, ((len(labels), len(document.vocabulary)), self.views)
        return list(
            ask(
                self.name,
                "cannot say which words count",
                lambda: scorer.credit(document, labels),
                promises.CREDIT,
                *given,
            )
        )

    def score(self, documents: Documents, labels: int) -> list[SparseScores]:
        """Scores of documents under each view; `ScorerError` if it fails."""
        if not len(documents):
            return [SparseScores.none(0, labels)] * self.views
        return check_scores(
            self.name, lambda: self.scorer.score(documents), (len(documents), labels), self.views
        )


def _name_words(reason: Reason, common: Set[str]) -> Reason:
    """The reason with its first words for a text, if it has none; common words only where there
    are no others.
    """
    if reason.text or not reason.words:
        return reason
    words = (tuple(word for word in reason.words if word not in common) or tuple(reason.words))[
        :WORDS_NAMED
    ]
    return Reason(text=", ".join(words), words=words)


@dataclass(frozen=True, kw_only=True)
class FusedScorers:
    """Several scorers as one."""

    scorers: Sequence[NamedScorer]  # in the order of the weights
    fusion: FrequencyLinear  # weights of the views of all
    alone: Mapping[str, FrequencyLinear]  # weights of the views of each, when it is used alone
    # training documents of each label [L]; negative for labels that were added (`frequency_linear`)
    train_counts: Ints
    known: KnownWords | None = (
        None  # None in runs from before there was one: every document is believed
    )
    residuals: LabelResiduals | None = None  # of the weights of all; None: no label has any

    def explain(self, document: Documents, labels: Sequence[int]) -> dict[str, list[Reason]]:
        """Reasons of each scorer for some labels of one document. Words common in train are
        named only where there are no others.
        """
        common = frozenset[str]() if self.known is None else self.known.common
        return {
            scorer.name: [
                _name_words(reason, common) for reason in scorer.explain(document, labels)
            ]
            for scorer in self.scorers
        }

    def score(self, documents: Documents, reporter: Reporter, name: str) -> ScoredDocuments:
        """Score documents; `ScorerError` if a scorer fails."""
        parts = list(self.score_some(documents, reporter, name))
        if len(parts) == 1:
            return parts[0]
        trust = (
            None
            if self.known is None
            else np.concatenate([part.trust for part in parts if part.trust is not None])
        )
        pairs = ScoredPairs.join([part.pairs for part in parts])
        return ScoredDocuments(scorers=self, pairs=pairs, documents=documents, trust=trust)

    def score_some(
        self, documents: Documents, reporter: Reporter, name: str
    ) -> Iterator[ScoredDocuments]:
        """The same, some documents after others: memory does not grow with them."""
        with reporter.progress(f"scorers: {name}", len(documents), "documents") as task:
            for block in cut_rows(max(1, len(documents)), 1, DOCUMENTS_SCORED):
                rows = np.arange(*block.indices(len(documents)))
                some = (
                    documents if len(rows) == len(documents) else drop_unused(documents.take(rows))
                )
                scores: list[SparseScores] = []
                for scorer in self.scorers:
                    scores += scorer.score(some, len(self.train_counts))
                    task.advance(len(rows) / len(self.scorers))
                trust = None if self.known is None else self.known.trust(some)
                yield ScoredDocuments(
                    scorers=self, pairs=gather_pairs(scores), documents=some, trust=trust
                )

    def views_of(self, name: str) -> list[int]:
        """The positions of a scorer's views among all."""
        ends = [0, *accumulate(scorer.views for scorer in self.scorers)]
        number = [scorer.name for scorer in self.scorers].index(name)
        return list(range(ends[number], ends[number + 1]))


@dataclass(frozen=True, kw_only=True)
class ScoredDocuments:
    """Documents that all scorers have scored."""

    scorers: FusedScorers
    pairs: ScoredPairs  # the pairs that any scorer lists, with the scores of all views
    documents: Documents  # the same as words
    trust: Floats | None = None  # how far each is believed [B]; None: all are
    # what residuals of other documents add to each pair, where these documents taught them [P]
    crossed: Floats | None = None

    def __len__(self) -> int:
        return self.pairs.shape[0]

    @cached_property
    def fused(self) -> SparseScores:
        """Logits by all scorers together."""
        return self.fuse()

    def fuse(self, last: float = 0.0) -> SparseScores:
        """The same; labels of `last` training documents and more are one group."""
        scorers = self.scorers
        return fuse(scorers.fusion, self.pairs, scorers.train_counts, last, self.added)

    @cached_property
    def added(self) -> Floats | None:
        """What residuals of labels add to each pair [P]; None: nothing."""
        residuals = self.scorers.residuals
        if self.crossed is not None or residuals is None:
            return self.crossed
        return residuals.apply(self.pairs.values, self.pairs.labels)

    def weigh(self, values: Floats, rows: Ints, labels: Ints) -> tuple[Floats, Floats]:
        """The weight of each view [P, S] and the offset [P] of pairs of these scores [P, S]."""
        scorers = self.scorers
        weights, bias = scorers.fusion.weigh(values, scorers.train_counts[labels])
        if scorers.residuals is None:
            return weights, bias
        own = scorers.residuals.weigh(labels) * (self.pairs.find(rows, labels) >= 0)[:, None]
        return weights + own[:, :-1], bias + own[:, -1]

    def logits(self, rows: Rows) -> Logits:
        """Logits of some documents for all labels [b, L], drawn to base rates."""
        drawn: Logits = self.draw(
            self.fused.dense(rows), rows[:, None], self.scorers.train_counts
        ).astype(np.float32)
        return drawn

    def look_up(self, rows: Ints, labels: Ints) -> Floats:
        """The same of some (document, label) pairs [P], listed or not, in double precision."""
        return self.draw(self._look_up(rows, labels), rows, self.scorers.train_counts[labels])

    def _look_up(self, rows: Ints, labels: Ints) -> Floats:
        logits = self.scorers.fusion.apply(
            self.pairs.look_up(rows, labels), self.scorers.train_counts[labels]
        )
        if self.added is not None:
            logits += np.append(self.added, 0.0)[self.pairs.find(rows, labels)]
        return logits

    def draw(self, logits: npt.NDArray[Any], rows: Ints, counts: Ints) -> npt.NDArray[Any]:
        """Logits of any shape, drawn to base rates as far as documents are not believed, by the
        document and training frequency of each.
        """
        known = self.scorers.known
        if known is None or self.trust is None or (self.trust == 1).all():
            return logits
        return known.draw(logits, self.trust[rows], counts)

    def as_source(self) -> ScoredPairs:
        """The listed pairs with one source: all scorers together, not drawn to base rates."""
        logits = self._look_up(self.pairs.rows, self.pairs.labels)
        return ScoredPairs(
            shape=self.pairs.shape,
            rows=self.pairs.rows,
            labels=self.pairs.labels,
            values=logits[:, None],
        )


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How the scores of network and scorers are combined."""

    scorers: FusedScorers | None  # None: there is a network alone
    calibration: Calibration  # of the network, where there is one, and then of the scorers together
    train_counts: Ints  # those of the scorers, if there are any [L]
    excluded: Sequence[int] = ()  # labels that are never suggested
    common: Set[str] = (
        frozenset()
    )  # words as good as stop words by train, of a network alone; scorers know them by `KnownWords`

    def calibrate(self, scored: ScoredDocuments) -> SparseScores:
        """Calibrated logits of documents by scorers without a network, drawn to base rates."""
        last, counts = self.calibration.last, self.train_counts
        if (
            scored.trust is not None and (scored.trust < 1).any()
        ):  # base rates differ by training frequency, however high it is
            last = max(last, float(counts.max(initial=0)))
        scores = self.calibration.apply_sparse(scored.fuse(last), counts)
        matrix, rows = scores.matrix, np.arange(len(scored))[:, None]
        matrix.data = scored.draw(matrix.data, scores.rows, counts[matrix.indices]).astype(
            np.float32
        )
        return replace(
            scores,
            floors=scored.draw(scores.floors, rows, group_frequencies(counts, last)[0]).astype(
                np.float32
            ),
        )


def score_parts(scored: ScoredDocuments, k: int) -> dict[str, TopLabels]:
    """The k best labels of documents by each scorer alone."""
    scorers = scored.scorers
    parts = {
        name: scored.pairs.take(scorers.views_of(name))
        for name in (scorer.name for scorer in scorers.scorers)
    }
    return {
        name: TopLabels.of(fuse(scorers.alone[name], pairs, scorers.train_counts), k)
        for name, pairs in parts.items()
    }
