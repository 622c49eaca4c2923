"""Where a text indicates a label: by the attention of the network, and by the words that scorers name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import Documents, Reason, Reporter, SilentReporter
from plant_cli.data.words import join_documents
from plant_cli.scoring.fused_scorers import explain_labels
from plant_cli.scoring.models import ModelSource, TrainedModel, load_model

Floats = npt.NDArray[np.float64]
Spans = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TextEvidence:
    """The evidence for one label in one text."""

    spans: Spans  # of its words, in order, in code points, end exclusive [n, 2]
    weights: Floats  # how much each counts for the label, ≥ 0 [n]
    reason: str  # of the scorers, in words; empty without


def find_evidence(
    source: ModelSource, texts: Sequence[str], labels: Sequence[Sequence[int]], reporter: Reporter
) -> list[list[TextEvidence]]:
    """The evidence for some labels of each text."""
    model = load_model(source, fold=False)
    split = [model.split([text]) for text in texts]
    reasons = [_explain(model, words, chosen) for words, chosen in zip(split, labels, strict=True)]
    attention = model.attend(texts, join_documents(split), labels, reporter)
    evidence = []
    for row, text in enumerate(texts):
        spans = model.analyser.find_borders(text).astype(np.int64)
        weights = [_mark_words(split[row], reason.words) for reason in reasons[row]]
        if attention is not None:
            tokens, by_label = attention[row]
            weights = [_join(add_to_words(tokens, one, spans), named) for one, named in zip(by_label, weights, strict=True)]
        evidence.append(
            [TextEvidence(spans=spans, weights=one, reason=reason.text) for one, reason in zip(weights, reasons[row], strict=True)]
        )
    return evidence


def _explain(model: TrainedModel, words: Documents, labels: Sequence[int]) -> list[Reason]:
    if model.combination is None or model.scorers is None or not labels:
        return [Reason(text="")] * len(labels)
    scored = model.scorers.score(words, SilentReporter(), "reasons")
    return explain_labels(scored, model.combination.scorer_weights, np.array([labels], dtype=np.int64))[0]


def _mark_words(text: Documents, named: Sequence[str]) -> Floats:
    """1 for each word of a text that is named, else 0."""
    return np.array([word in named for word in text.vocabulary], dtype=np.float64)[text.numbers]


def _join(attention: Floats, named: Floats) -> Floats:
    """The mean of attention on words and of the words that are named, both as shares [n]; one alone where the other is 0 throughout."""
    shares = [part / part.sum() for part in (attention, named) if part.any()]
    return np.mean(shares, axis=0) if shares else attention


def add_to_words(tokens: Spans, weights: Floats, words: Spans) -> Floats:
    """The weights of tokens [T], added up over each word that they spell [n]; words that begin within another one get none."""
    summed = np.zeros(len(words))
    if len(words):
        whole = np.flatnonzero(np.append(0, np.maximum.accumulate(words[:-1, 1])) <= words[:, 0])
        at = whole[np.minimum(np.searchsorted(words[whole, 1], tokens[:, 0], side="right"), len(whole) - 1)]
        inside = (words[at, 0] < tokens[:, 1]) & (tokens[:, 0] < words[at, 1])
        np.add.at(summed, at[inside], weights[inside])
    return summed
