"""How long the documents of a corpus are for a backbone: the tokens of a sample stand for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant_cli.api import Backbone, Split, TokenBatch
from plant_cli.model.reading import lengths
from plant_cli.training.batches import make_steps, padding_share

SAMPLE = 1000
"""Documents that are tokenised."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Training documents as a backbone reads them.

    Args:
        tokens: of the sample.
        longest: of the longest document by characters.
    """

    tokens: TokenBatch
    longest: TokenBatch

    @property
    def mean(self) -> float:
        """Tokens of a document on average."""
        return float(lengths(self.tokens).mean())

    @property
    def typical(self) -> TokenBatch:
        """The document of the sample whose length is nearest to the mean."""
        return self.tokens.select([int(np.abs(lengths(self.tokens) - self.mean).argmin())])

    def padding(self, batch: int, micro_batch: int) -> float:
        """Share of positions that are padding, in the micro-batches of steps of `batch` documents."""
        found = lengths(self.tokens)
        return padding_share(found, make_steps(found, batch, micro_batch, seed=0, epoch=0))

    def describe(self) -> str:
        """For a person."""
        cut = np.mean(np.array(self.tokens.dropped) > 0)
        return (
            f"tokens are those of {len(self.tokens):,} training documents: {self.mean:,.0f} each, at most "
            f"{len(self.longest.ids[0]):,}; {cut:.0%} are longer than the backbone reads"
        )


def read_documents(train: Split, backbone: Backbone) -> Documents:
    """Tokenise a sample of the training documents, drawn at random, and the longest one."""
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLE])
    return Documents(tokens=backbone.tokenize([train.texts[row] for row in rows]), longest=backbone.tokenize([max(train.texts, key=len)]))
