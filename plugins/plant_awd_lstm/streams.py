"""Documents as streams of tokens: shuffled and read side by side in training, one by one where every token is to be scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_awd_lstm.options import Direction
from plant_awd_lstm.vocabulary import BEGIN, PAD

Ids = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.int32]
IGNORED = -100
"""Target of a position that does not count; what torch's cross-entropy passes over."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Tokens and the tokens that follow them.

    Args:
        inputs: [B, T].
        targets: [B, T], `IGNORED` where nothing is to be predicted.
    """

    inputs: Ids
    targets: Ids


@dataclass(frozen=True, kw_only=True)
class Streams:
    """The training documents of an epoch as one text, cut into streams of equal length.

    Args:
        documents: rows of each document's tokens.
        direction: from the first word or from the last.
        batch: streams; fewer where the text is too short for a whole window in each.
        window: tokens of a stream in one step.
    """

    documents: Sequence[IntArray]
    direction: Direction
    batch: int
    window: int

    @property
    def tokens(self) -> int:
        """Tokens of the whole text; each document has a mark of its beginning."""
        return sum(len(document) + 1 for document in self.documents)

    @property
    def count(self) -> int:
        """Streams that there are."""
        return min(self.batch, max(1, (self.tokens - 1) // self.window))

    @property
    def steps(self) -> int:
        """Windows of an epoch."""
        return -(-((self.tokens - 1) // self.count) // self.window)

    def windows(self, seed: int, epoch: int) -> Iterator[Window]:
        """The windows of an epoch, documents in an order of its own; window t of a stream follows on its window t − 1.

        The few tokens that do not fill all streams alike are left out: others in every epoch.
        """
        order = np.random.default_rng([seed, epoch]).permutation(len(self.documents))
        step = -1 if self.direction == "backward" else 1
        parts = [part for row in order for part in ([BEGIN], self.documents[row][::step])]
        text = np.concatenate(parts).astype(np.int64)
        length = (len(text) - 1) // self.count
        inputs = text[: self.count * length].reshape(self.count, length)
        targets = text[1 : self.count * length + 1].reshape(self.count, length)
        for start in range(0, length, self.window):
            part = slice(start, start + self.window)
            yield Window(inputs=inputs[:, part], targets=targets[:, part])


def document_batches(documents: Sequence[IntArray], direction: Direction, batch: int) -> Iterator[Window]:
    """All documents, the longest first, each from its beginning; the last target of a document is the mark of the next one's beginning."""
    step = -1 if direction == "backward" else 1
    order = np.argsort([-len(document) for document in documents], kind="stable")
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        width = 1 + len(documents[rows[0]])
        inputs = np.full((len(rows), width), PAD, dtype=np.int64)
        targets = np.full((len(rows), width), IGNORED, dtype=np.int64)
        for place, row in enumerate(rows):
            tokens = documents[row][::step]
            inputs[place, : len(tokens) + 1] = [BEGIN, *tokens]
            targets[place, : len(tokens) + 1] = [*tokens, BEGIN]
        yield Window(inputs=inputs, targets=targets)
