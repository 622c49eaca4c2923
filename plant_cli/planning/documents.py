"""How long the documents of a corpus are for a backbone: the tokens of a sample stand for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import Backbone, Corpus, Split, SplitName, TokenBatch
from plant_cli.training.batches import make_batches, padding_share

Rows = npt.NDArray[np.int64]
SAMPLE = 1000
"""Documents that are tokenised; a larger split is represented by these, drawn at random."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Documents of train, as a backbone reads them.

    Args:
        train, validation, test: number of documents.
        tokens: of the sample.
        longest: of the longest documents of train by characters.
    """

    train: int
    validation: int
    test: int
    tokens: TokenBatch
    longest: TokenBatch

    def count(self, split: SplitName) -> int:
        """Documents of a split."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[split]

    @property
    def lengths(self) -> Rows:
        """Tokens of each document of the sample."""
        return np.array([len(ids) for ids in self.tokens.ids], dtype=np.int64)

    @property
    def mean(self) -> float:
        """Tokens of a document on average."""
        return float(self.lengths.mean())

    @property
    def cut(self) -> float:
        """Share of documents that are longer than the backbone reads."""
        return float(np.mean(np.array(self.tokens.dropped) > 0))

    def heaviest(self, size: int) -> TokenBatch:
        """The longest documents there are: the batch that decides whether memory suffices."""
        return self.longest.select(range(min(size, len(self.longest))))

    def padding(self, size: int) -> float:
        """Share of positions that are padding, in batches of this size."""
        return padding_share(self.lengths, make_batches(self.lengths, size, seed=0, epoch=0))


def read_documents(corpus: Corpus, backbone: Backbone, train: Split, most: int, sample: int = SAMPLE) -> Documents:
    """Tokenise a sample of train and its longest documents.

    Args:
        corpus: for the sizes of the other splits.
        backbone: its tokenizer.
        train: the training documents.
        most: how many of the longest documents may be asked for.
        sample: how many documents stand for all.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:sample])
    longest = sorted(range(len(train)), key=lambda row: len(train.texts[row]), reverse=True)[:most]
    return Documents(
        train=len(train),
        validation=corpus.sizes.get("validation", 0),
        test=corpus.sizes.get("test", 0),
        tokens=backbone.tokenize([train.texts[row] for row in rows]),
        longest=backbone.tokenize([train.texts[row] for row in longest]),
    )
