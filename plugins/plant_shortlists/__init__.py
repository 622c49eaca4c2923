"""The built-in shortlists: which labels are worth scoring where there are too many to score them
all.

`words` proposes the labels whose relevant words a document has, by an inverted index; `none` leaves
nothing out. Weights of words are those of the scorers: this plugin depends on
`plant_scorers.lexical`. It needs numpy and scipy.
"""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import NoOptions, Options, ShortlistSpec, hookimpl, option

LABELS_PER_LISTED, SMALLEST_SHORTLIST, LARGEST_SHORTLIST = 32, 192, 4096
"""Labels proposed by default: one of so many, within these limits."""


class WordIndexOptions(Options):
    """Options of the shortlist `words`."""

    size: int | None = option(
        None,
        "Labels proposed for a document by its words, at most. Default: 1 in "
        f"{LABELS_PER_LISTED}, from {SMALLEST_SHORTLIST} to "
        f"{LARGEST_SHORTLIST:,}.",
        ge=1,
    )
    frequent: int | None = option(
        None,
        "The most frequent labels, proposed for every document. Default: a third of `size`.",
        ge=0,
    )

    def share_out(self, labels: int) -> tuple[int, int]:
        """Labels proposed for a document by its words, and frequent ones, at most, of so many
        labels.
        """
        size = (
            min(max(SMALLEST_SHORTLIST, labels // LABELS_PER_LISTED), LARGEST_SHORTLIST)
            if self.size is None
            else self.size
        )
        return size, size // 3 if self.frequent is None else self.frequent

    def most(self, labels: int) -> int:
        """Labels proposed for a document, at most, of so many."""
        return min(sum(self.share_out(labels)), labels)


@hookimpl
def plant_register_shortlists() -> Sequence[ShortlistSpec]:
    """The built-in shortlists."""
    return [
        ShortlistSpec(
            name="words",
            summary="Labels whose relevant words the document has, by an inverted index over "
            "relevance, and the frequent labels.",
            options=WordIndexOptions,
            build="plant_shortlists.word_index:WordIndex",
            most=WordIndexOptions.most,
        ),
        ShortlistSpec(
            name="none",
            summary="No shortlist: every label is looked at.",
            options=NoOptions,
            build="plant_shortlists.word_index:EveryLabel",
        ),
    ]
