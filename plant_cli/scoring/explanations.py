"""Why a label has its score: what the network and each scorer add to its log-odds, and the
words that they find it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from plant_cli.api import Documents, LabelIndex, Reason, Reporter, SilentReporter
from plant_cli.scoring.fused_scorers import NamedScorer, ScoredDocuments
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.predictions import NETWORK
from plant_cli.scoring.score_sums import ScoreSums, average_logit, join_reasons

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Spans = npt.NDArray[np.int64]
LEAST_WEIGHT = 0.005  # log-odds, ±, of all places of a word, from which it is among the marked ones
MARKED_FROM = 0.15  # share of the strongest word's weight from which a word is shown as marked
BY_ATTENTION = "words by attention: the decoder does not say what each is worth"
NO_SPANS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ExplainedPart:
    """What the network, or one scorer, adds to the log-odds of a label."""

    name: str  # "network", or that of the scorer
    log_odds: float
    spans: Spans = field(
        default_factory=lambda: NO_SPANS
    )  # of the marked words, in order, in code points, end exclusive [n, 2]
    weights: Floats = field(
        default_factory=lambda: np.zeros(0)
    )  # signed log-odds of each [n]; common words are not marked
    note: str = ""  # in words: which title, which training documents

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        words = [
            {"start": start, "end": end, "weight": weight}
            for (start, end), weight in zip(self.spans.tolist(), self.weights.tolist(), strict=True)
        ]
        return {"name": self.name, "log_odds": self.log_odds, "note": self.note, "words": words}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why one label has its score in one text; its log-odds are `base` and those of all parts."""

    label: str  # its id
    title: str | None
    score: float  # calibrated probability
    log_odds: float  # of the score
    base: float  # what remains without any part: the log-odds of a label that nothing speaks for
    parts: Sequence[ExplainedPart]

    @property
    def reason(self) -> str:
        """The base and the parts in words: `base -4.2; network +2.3; titles +2.1 (…)`."""
        return join_reasons(
            self.base, {part.name: (part.log_odds, Reason(text=part.note)) for part in self.parts}
        ).text

    def join_words(self) -> tuple[Spans, Floats]:
        """The marked words of all parts, in order, and what each adds in all of them [n, 2],
        [n].
        """
        spans, place = np.unique(
            np.concatenate([part.spans for part in self.parts] or [NO_SPANS]),
            axis=0,
            return_inverse=True,
        )
        weights = np.concatenate([part.weights for part in self.parts] or [np.zeros(0)])
        return spans.astype(np.int64), np.bincount(place.ravel(), weights, len(spans)).astype(
            np.float64
        )

    def sum_words(self, text: str) -> tuple[Spans, Floats]:
        """The marked words of all parts, in order, and what each adds at all its places [n, 2],
        [n].
        """
        spans, weights = self.join_words()
        return spans, sum_places(number_forms(text, spans), weights)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        numbers = {"score": self.score, "log_odds": self.log_odds, "base": self.base}
        return {
            "label": self.label,
            "title": self.title,
            **numbers,
            "parts": [part.to_json() for part in self.parts],
        }


def explain(
    model: TrainedModel,
    text: str,
    labels: Sequence[int] | int,
    index: LabelIndex,
    reporter: Reporter,
    scored: ScoredDocuments | None = None,
    row: int = 0,
) -> list[Explanation]:
    """Why some labels, rows of the index, have the scores that the model gives them in a text,
    which a network reads once.

    Args:
        model: what scores.
        text: the text.
        labels: rows of the index, or how many of the best labels.
        index: the labels.
        reporter: where warnings go.
        scored: documents that the scorers have scored, with the text among them; None: it is scored
            now.
        row: which of them the text is.
    """
    if not labels:
        return []
    words = model.split([text])
    if scored is None and model.scorers is not None:
        scored = model.scorers.score(words, SilentReporter(), "text")
    listed = None if scored is None else scored.pairs.labels[scored.pairs.span(row)]

    def add_up(rows: Ints, network: Floats | None) -> ScoreSums:
        """The sums of some labels by the network's logits of all."""
        logits = None if network is None else (network[rows], average_logit(network, listed))
        return ScoreSums.of(model.combination, rows, scored, row, logits)

    def choose(network: Floats | None) -> Sequence[int]:
        if not isinstance(labels, int):
            return labels
        whole, excluded = (
            add_up(np.arange(len(index)), network).whole,
            () if model.combination is None else model.combination.excluded,
        )
        best: list[int] = np.argsort(-whole, kind="stable").tolist()
        return [label for label in best[: labels + len(excluded)] if label not in excluded][:labels]

    tokens = model.weigh_tokens(text, words, choose, reporter)
    chosen = choose(None) if tokens is None else tokens.labels
    sums = add_up(np.array(chosen, dtype=np.int64), None if tokens is None else tokens.logits)
    marks = _Marks.of(model, text, words)
    parts: list[list[ExplainedPart]] = [[] for _ in chosen]
    if tokens is not None:
        of_tokens = tokens.weights * (sums.of_network if tokens.exact else sums.network)[:, None]
        for own, added, weights in zip(parts, sums.network, of_tokens, strict=True):
            own.append(
                marks.part(
                    NETWORK,
                    added,
                    add_to_words(tokens.spans, weights, marks.spans),
                    "" if tokens.exact else BY_ATTENTION,
                )
            )
    if scored is not None:
        reasons = scored.scorers.explain(words, chosen)
        for scorer in scored.scorers.scorers:
            views = scored.scorers.views_of(scorer.name)
            credit = _credit(scorer, words, chosen, sums.of_scores[:, views])
            for own, added, reason, weights in zip(
                parts, sums.scorers[:, views].sum(axis=1), reasons[scorer.name], credit, strict=True
            ):
                own.append(marks.part(scorer.name, added, marks.spread(weights), reason.text))
    return [
        Explanation(
            label=index.ids[label],
            title=index.titles[label],
            score=float(expit(whole)),
            log_odds=float(whole),
            base=float(base),
            parts=tuple(own),
        )
        for label, whole, base, own in zip(chosen, sums.whole, sums.base, parts, strict=True)
    ]


def _credit(scorer: NamedScorer, words: Documents, labels: Sequence[int], units: Floats) -> Floats:
    """The log-odds that each word of the vocabulary adds to each label [k, W], by what a unit
    of each view's score is [k, views].
    """
    credit = scorer.credit(words, labels)
    total = np.zeros((len(labels), len(words.vocabulary)))
    for unit, view in zip(units.T, credit, strict=bool(credit)):
        total += unit[:, None] * view.toarray()
    return total


@dataclass(frozen=True, kw_only=True)
class _Marks:
    """The words of a text that may be marked."""

    spans: Spans  # of all its words [n, 2]
    numbers: Ints  # of each in the vocabulary [n]
    forms: Ints  # which word each is, whatever its case [n]
    shares: Floats  # 1 over how often each is in the text [n]
    telling: npt.NDArray[np.bool_]  # whether each is none of those that are common in train [n]

    @classmethod
    def of(cls, model: TrainedModel, text: str, words: Documents) -> _Marks:
        numbers, common = words.numbers.astype(np.int64), model.common
        telling = np.array([word not in common for word in words.vocabulary], dtype=np.bool_)
        spans = model.analyser.find_borders(text).astype(np.int64)
        return cls(
            spans=spans,
            numbers=numbers,
            forms=number_forms(text, spans),
            shares=1 / np.bincount(numbers, minlength=1)[numbers],
            telling=telling[numbers],
        )

    def spread(self, by_word: Floats) -> Floats:
        """Numbers of the vocabulary [W], each spread over the places of the word [n]."""
        return by_word[self.numbers] * self.shares

    def part(self, name: str, log_odds: float, weights: Floats, note: str) -> ExplainedPart:
        kept = self.telling & (np.abs(sum_places(self.forms, weights)) >= LEAST_WEIGHT)
        return ExplainedPart(
            name=name,
            log_odds=float(log_odds),
            spans=self.spans[kept],
            weights=weights[kept],
            note=note,
        )


def number_forms(text: str, spans: Spans) -> Ints:
    """Which word each span is, whatever its case: a number for each form [n]."""
    forms = [text[start:end].lower() for start, end in spans.tolist()]
    return np.unique(np.array(forms, dtype=str), return_inverse=True)[1].astype(np.int64)


def sum_places(forms: Ints, weights: Floats) -> Floats:
    """For each place the weights of its word at all places [n]."""
    return np.bincount(forms, weights, minlength=1)[forms].astype(np.float64)


def add_to_words(tokens: Spans, weights: Floats, words: Spans) -> Floats:
    """The weights of tokens [T], added up over each word that they spell [n]; words that begin
    within another one get none.
    """
    summed = np.zeros(len(words))
    if len(words):
        whole = np.flatnonzero(np.append(0, np.maximum.accumulate(words[:-1, 1])) <= words[:, 0])
        at = whole[
            np.minimum(np.searchsorted(words[whole, 1], tokens[:, 0], side="right"), len(whole) - 1)
        ]
        inside = (words[at, 0] < tokens[:, 1]) & (tokens[:, 0] < words[at, 1])
        np.add.at(summed, at[inside], weights[inside])
    return summed
