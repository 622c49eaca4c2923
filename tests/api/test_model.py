"""What backbones and decoders hand on: tokens of documents, and readings of a batch."""

import numpy as np
import torch

from plant_cli.api import Reading, TokenBatch


def test_chosen_documents_keep_their_tokens() -> None:
    ids = [np.array([1, 2], dtype=np.int32), np.array([3], dtype=np.int32), np.array([], dtype=np.int32)]
    spans = [np.zeros((len(row), 2), dtype=np.int32) for row in ids]
    batch = TokenBatch(ids=ids, spans=spans, dropped=[0, 5, 0])
    chosen = batch.select([1, 0])
    assert (len(batch), len(chosen)) == (3, 2)
    assert [row.tolist() for row in chosen.ids] == [[3], [1, 2]]
    assert chosen.dropped == [5, 0]


def test_a_reading_has_no_words_unless_they_are_given() -> None:
    reading = Reading.of(torch.zeros(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]]))
    assert len(reading) == 2
    assert reading.words.tolist() == [[-1] * 3] * 2


def test_documents_and_tokens_of_a_reading_are_chosen_together() -> None:
    hidden, words = torch.arange(24.0).view(2, 3, 4), torch.arange(6).view(2, 3)
    reading = Reading.of(hidden, torch.ones(2, 3, dtype=torch.bool), words)
    part = reading.select(torch.tensor([1]), slice(0, 2))
    assert torch.equal(part.hidden, hidden[1:, :2])
    assert part.words.tolist() == [[3, 4]]
    assert part.mask.shape == (1, 2)
