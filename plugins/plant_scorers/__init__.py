"""The built-in scorers of labels that need no network: `words`, `titles`, `neighbours` and
`linear`.

This page has their options and registers them. `word_relevance`, `titles`, `neighbours` and
`linear` are the four scorers; `vectors` cuts documents into words and n-grams. Their engines stand
below: `lexical` weighs words and measures relevance, `ridge` solves each label on its own terms,
`nearest` finds the nearest training documents, `passages` the best passage for each label, and
`sparse_products` keeps the best labels of products of sparse matrices.

They need numpy and scipy, which are imported when a scorer is fitted or loaded. Of the core they
use the words of documents, blocks of work that threads share, sparse scores, and packed matrices
for their files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import NoOptions, Options, ScorerSpec, hookimpl, option

LEAD = (
    "Words at the beginning of a document that are looked at once more by themselves (texts "
    "often begin with a title); 0: none."
)


class WordsOptions(Options):
    """Options of the scorer `words`."""

    min_df: int = option(2, "Training documents that a word must be in to count.", ge=1)
    terms: int = option(1000, "Words kept of a label, those of highest relevance.", ge=1)
    exact: int = option(
        200_000,
        "Labels up to which a document is compared with all; beyond, with those that share rare "
        "words.",
        ge=1,
    )


class TitlesOptions(Options):
    """Options of the scorer `titles`."""

    passage: int = option(
        24,
        "Words of the passages of which the best counts beside the whole document; 0: no passages.",
        ge=0,
    )
    lead: int = option(12, LEAD, ge=0)


MANY_DOCUMENTS = 50_000  # training documents beyond which words alone are compared


class SimilarityOptions(Options):
    """What documents are compared by."""

    pieces: bool | None = option(
        None,
        "Compare by character n-grams of words, too: forms and compounds of a word are then alike "
        f"(default: up to {MANY_DOCUMENTS:,} training documents).",
    )

    def cuts_words(self, documents: int) -> bool:
        """Whether so many training documents are compared by n-grams of words, too."""
        return documents <= MANY_DOCUMENTS if self.pieces is None else self.pieces


class NeighboursOptions(SimilarityOptions):
    """Options of the scorer `neighbours`."""

    neighbours: int = option(30, "Training documents that count, those most alike.", ge=1)
    power: float = option(
        2.0,
        "Power of the similarity in a neighbour's weight: the higher, the more the nearest count.",
        gt=0,
    )
    lead: int = option(12, LEAD, ge=0)
    names: bool = option(
        True,
        "Whether names of labels count as documents of theirs, where all documents are compared.",
    )
    exact: int = option(
        MANY_DOCUMENTS,
        "Training documents up to which all are compared; beyond, those that share rare terms.",
        ge=1,
    )

    def compares_all(self, documents: int) -> bool:
        """Whether a document is compared with all of so many training documents."""
        return documents <= self.exact


class LinearOptions(SimilarityOptions):
    """Options of the scorer `linear`."""

    loss: Literal["ridge", "squared-hinge"] = option(
        "ridge",
        "ridge: least squares of each label on the terms that weigh most in its own documents; "
        "all documents count. "
        "squared-hinge: LIBLINEAR, label by label, much slower (needs scikit-learn).",
    )
    strength: float = option(
        1.0,
        "Regularisation λ of ridge, in units of the squared length of a label's documents in its "
        "terms.",
        gt=0,
    )
    cost: float = option(1.0, "Cost C of the squared hinge.", gt=0)
    terms: int = option(
        30,
        "Terms of a label with one document, those that weigh most in it; one more for each "
        "further document.",
        ge=1,
    )
    most_terms: int = option(
        500, "Terms of a label, at most; a label of 200 documents or more gets as many again.", ge=1
    )


class TableOptions(Options):
    """Options of the scorer `table`."""

    words: int | None = option(
        None,
        "Words of a document that count for a label, those of highest relevance. Default: 1, 2, "
        "3 or 5, chosen by training documents "
        "that are left out.",
        ge=1,
        le=5,
    )
    prior: float | None = option(
        None,
        "Weight of the logarithm of a label's frequency, where the most relevant word weighs 1. "
        "Default: chosen likewise.",
        ge=0,
    )


@hookimpl
def plant_register_scorers() -> Sequence[ScorerSpec]:
    """The four scorers that are used by default, and two that others are measured by."""
    return [
        ScorerSpec(
            name="words",
            summary="Cosine of the document's tf-idf and the mutual information of words with "
            "the label, every positive word counted.",
            options=WordsOptions,
            fit="plant_scorers.word_relevance:fit",
            load="plant_scorers.word_relevance:WordScorer.load",
        ),
        ScorerSpec(
            name="titles",
            summary="Cosine of the document, its best passage and its beginning with the label's "
            "best name, by character n-grams.",
            options=TitlesOptions,
            fit="plant_scorers.titles:fit",
            load="plant_scorers.titles:TitleScorer.load",
            needs_names=True,
            zero_shot=True,
        ),
        ScorerSpec(
            name="neighbours",
            summary="Labels of the training documents that are most alike, by tf-idf of words "
            "and their character n-grams.",
            options=NeighboursOptions,
            source="k nearest neighbours",
            fit="plant_scorers.neighbours:fit",
            load="plant_scorers.neighbours:NeighbourScorer.load",
        ),
        ScorerSpec(
            name="linear",
            summary="One-vs-rest ridge regression on tf-idf, each label on the terms of its own "
            "documents.",
            options=LinearOptions,
            source="Hoerl and Kennard 1970",
            fit="plant_scorers.linear:fit",
            load="plant_scorers.linear:LinearScorer.load",
        ),
        ScorerSpec(
            name="frequencies",
            summary="How frequent a label is in train, the same for every document: what a "
            "classifier that has learned nothing gives.",
            options=NoOptions,
            fit="plant_scorers.label_frequencies:fit",
            load="plant_scorers.label_frequencies:FrequencyScorer.load",
        ),
        ScorerSpec(
            name="table",
            summary="The relevance table alone: the best words of a document for each label, and "
            "how frequent the label is.",
            options=TableOptions,
            source="PLANT, equation 1",
            fit="plant_scorers.best_words:fit",
            load="plant_scorers.best_words:BestWordScorer.load",
            needs_relevance=True,
        ),
    ]
