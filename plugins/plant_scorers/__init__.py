"""The built-in scorers: options and registration; numpy is imported when one is fitted or loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import Options, ScorerSpec, hookimpl, option

LEAD = "Words at the beginning of a document that are looked at once more by themselves (texts often begin with a title); 0: none."


class WordsOptions(Options):
    """Options of the scorer `words`."""

    min_df: int = option(2, "Training documents that a word must be in to count.", ge=1)
    terms: int = option(1000, "Words kept of a label, those of highest relevance.", ge=1)


class TitlesOptions(Options):
    """Options of the scorer `titles`."""

    passage: int = option(
        24, "Words of the passages of which the best counts, beside the whole document; 0: the whole document alone.", ge=0
    )
    lead: int = option(12, LEAD, ge=0)


class SimilarityOptions(Options):
    """What documents are compared by."""

    pieces: bool = option(True, "Compare by character n-grams of words, too: forms and compounds of a word are then alike.")


class NeighboursOptions(Options):
    """Options of the scorer `neighbours`."""

    pieces: bool | None = option(
        None,
        "Compare by character n-grams of words, too: forms and compounds of a word are then alike (default: up to `exact` documents).",
    )
    neighbours: int = option(30, "Training documents that count, those most alike.", ge=1)
    power: float = option(2.0, "Power of the similarity in a neighbour's weight: the higher, the more the nearest count.", gt=0)
    lead: int = option(12, LEAD, ge=0)
    exact: int = option(
        50000,
        "Training documents up to which a document is compared with all of them; beyond, with those that share its rarest terms.",
        ge=1,
    )

    def compares_all(self, documents: int) -> bool:
        """Whether a document is compared with all of so many training documents."""
        return documents <= self.exact

    def cuts_words(self, documents: int) -> bool:
        """Whether so many training documents are compared by n-grams of words, too."""
        return self.compares_all(documents) if self.pieces is None else self.pieces


class LinearOptions(SimilarityOptions):
    """Options of the scorer `linear`."""

    loss: Literal["ridge", "squared-hinge"] = option(
        "ridge",
        "ridge: least squares for all labels at once; scores of documents left out follow from the same solution. "
        "squared-hinge: LIBLINEAR, label by label, much slower (needs scikit-learn).",
    )
    strength: float = option(0.3, "Regularisation λ of ridge; vectors have length 1.", gt=0)
    cost: float = option(1.0, "Cost C of the squared hinge.", gt=0)
    terms: int = option(
        30,
        "Weights kept of a label, those of largest magnitude: on long documents few label better than many. "
        "Up to `largest` documents ridge scores by all of them, too; beyond, a label has one term more for each further document.",
        ge=1,
    )
    largest: int = option(
        16000,
        "Training documents up to which ridge inverts their kernel (4 bytes for each pair). Beyond, each label is solved by itself, on the "
        "terms that weigh most in its own documents.",
        ge=1,
    )
    own_strength: float = option(
        1.0,
        "Regularisation of a label that is solved by itself, in units of the squared length that its documents have in its terms.",
        gt=0,
    )
    most_terms: int = option(500, "Terms of a label that is solved by itself, at most.", ge=1)

    def inverts(self, documents: int) -> bool:
        """Whether the kernel of so many training documents is inverted."""
        return self.loss == "ridge" and documents <= self.largest

    def memory(self, documents: int) -> int:
        """Bytes that inverting the kernel of so many training documents takes: three matrices of its size at a time."""
        return 3 * 4 * documents**2 if self.inverts(documents) else 0


@hookimpl
def plant_register_scorers() -> Sequence[ScorerSpec]:
    """The four built-in scorers."""
    return [
        ScorerSpec(
            name="words",
            summary="Cosine of the document's tf-idf and the mutual information of words with the label, every positive word counted.",
            options=WordsOptions,
            fit="plant_scorers.word_relevance:fit",
            load="plant_scorers.word_relevance:WordScorer.load",
        ),
        ScorerSpec(
            name="titles",
            summary="Cosine of the document, its best passage and its beginning with the label's best name, by character n-grams.",
            options=TitlesOptions,
            fit="plant_scorers.titles:fit",
            load="plant_scorers.titles:TitleScorer.load",
            needs_names=True,
            zero_shot=True,
        ),
        ScorerSpec(
            name="neighbours",
            summary="Labels of the training documents that are most alike, by tf-idf of words and their character n-grams.",
            options=NeighboursOptions,
            source="k nearest neighbours",
            fit="plant_scorers.neighbours:fit",
            load="plant_scorers.neighbours:NeighbourScorer.load",
        ),
        ScorerSpec(
            name="linear",
            summary="One-vs-rest linear regression on tf-idf, ridge for all labels at once in closed form.",
            options=LinearOptions,
            source="Allen 1974; Rifkin and Lippert 2007",
            fit="plant_scorers.linear:fit",
            load="plant_scorers.linear:LinearScorer.load",
            memory=LinearOptions.memory,
        ),
    ]
