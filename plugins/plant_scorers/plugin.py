"""Registers the scorers; numpy is imported when one is fitted or loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plant_cli.api import ScorerSpec, hookimpl
from plant_scorers.options import LinearOptions, NeighboursOptions, TitlesOptions, WordsOptions

if TYPE_CHECKING:
    from plant_cli.api import FittedScorer, Scorer, ScorerInput

Tensors = Mapping[str, Any]


def _fit_words(options: WordsOptions, given: ScorerInput) -> FittedScorer:
    from plant_scorers.words import fit

    return fit(options, given)


def _load_words(options: WordsOptions, tensors: Tensors) -> Scorer:
    from plant_scorers.words import WordScorer

    return WordScorer.load(tensors)


def _fit_titles(options: TitlesOptions, given: ScorerInput) -> FittedScorer:
    from plant_scorers.titles import fit

    return fit(options, given)


def _load_titles(options: TitlesOptions, tensors: Tensors) -> Scorer:
    from plant_scorers.titles import TitleScorer

    return TitleScorer.load(options, tensors)


def _fit_neighbours(options: NeighboursOptions, given: ScorerInput) -> FittedScorer:
    from plant_scorers.neighbours import fit

    return fit(options, given)


def _load_neighbours(options: NeighboursOptions, tensors: Tensors) -> Scorer:
    from plant_scorers.neighbours import NeighbourScorer

    return NeighbourScorer.load(options, tensors)


def _fit_linear(options: LinearOptions, given: ScorerInput) -> FittedScorer:
    from plant_scorers.linear import fit

    return fit(options, given)


def _load_linear(options: LinearOptions, tensors: Tensors) -> Scorer:
    from plant_scorers.linear import LinearScorer

    return LinearScorer.load(tensors)


@hookimpl
def plant_register_scorers() -> Sequence[ScorerSpec]:
    """The four built-in scorers."""
    return [
        ScorerSpec(
            name="words",
            summary="Cosine of the document's tf-idf and the mutual information of words with the label, every positive word counted.",
            options=WordsOptions,
            fit=_fit_words,
            load=_load_words,
        ),
        ScorerSpec(
            name="titles",
            summary="Cosine of the document, its best passage and its beginning with the label's best name, by character n-grams.",
            options=TitlesOptions,
            fit=_fit_titles,
            load=_load_titles,
            needs_names=True,
            zero_shot=True,
        ),
        ScorerSpec(
            name="neighbours",
            summary="Labels of the training documents that are most alike, by tf-idf of words and their character n-grams.",
            options=NeighboursOptions,
            source="k nearest neighbours",
            fit=_fit_neighbours,
            load=_load_neighbours,
        ),
        ScorerSpec(
            name="linear",
            summary="One-vs-rest linear regression on tf-idf, ridge for all labels at once in closed form.",
            options=LinearOptions,
            source="Allen 1974; Rifkin and Lippert 2007",
            fit=_fit_linear,
            load=_load_linear,
            memory=LinearOptions.memory,
        ),
    ]
