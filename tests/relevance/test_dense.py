from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.relevance.counting import SparseCounting
from plant_cli.relevance.dense import DenseCounting
from plant_cli.relevance.engine import Selection, Signal, keep_words
from plant_cli.relevance.normalise import mutual_information

MIG = Signal(score=mutual_information, quasi_convex=True)


@pytest.mark.parametrize("memory", [1, 3_000, 1_000_000])
def test_counts_what_the_sparse_product_counts(memory: int, corpus: Any, terms_of: Any) -> None:
    """Whatever the memory: one document at a time, some, or all at once."""
    terms, gold = terms_of(corpus[0]), csr_array(corpus[1].astype(np.int32))
    sparse, dense = SparseCounting(terms, gold), DenseCounting(terms, gold, device=torch.device("cpu"), memory=memory)
    for block in [(0, 9), (3, 4), (7, 9)]:
        found, expected = dense.count(*block), sparse.count(*block)
        assert found.offsets.tolist() == expected.offsets.tolist()
        order = np.lexsort((expected.word, expected.label))
        for name in ("label", "word", "both"):
            assert getattr(found, name).tolist() == getattr(expected, name)[order].tolist()


def test_a_gpu_counts_what_a_processor_counts(gpu: torch.device, corpus: Any, terms_of: Any) -> None:
    terms, gold = terms_of(corpus[0]), csr_array(corpus[1].astype(np.int32))
    ours, theirs = (DenseCounting(terms, gold, device=device, memory=3_000).count(0, 9) for device in (gpu, torch.device("cpu")))
    for name in ("offsets", "label", "word", "both"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@pytest.mark.parametrize("sign", ["positive", "any"])
def test_keeps_the_same_words(sign: Any, corpus: Any, terms_of: Any, joined: Any) -> None:
    terms, gold = terms_of(corpus[0]), csr_array(corpus[1].astype(np.int32))
    selection = Selection(k=7, sign=sign, memory=20_000, jobs=2)
    sources = [SparseCounting(terms, gold), DenseCounting(terms, gold, device=torch.device("cpu"), memory=20_000)]
    sparse, dense = (joined(keep_words(source, MIG, selection)) for source in sources)
    for name in ("offsets", "words", "values", "both"):
        assert getattr(dense, name).tolist() == getattr(sparse, name).tolist()


def test_repeats_in_a_document_count_once(corpus: Any, terms_of: Any) -> None:
    terms = terms_of(np.array([[1, 0], [1, 1]], dtype=bool))
    terms.occurrences.data[:] = 5
    counted = DenseCounting(terms, csr_array([[1], [1]]), device=torch.device("cpu"), memory=1_000).count(0, 1)
    assert counted.both.tolist() == [2, 1]
    assert counted.offsets.tolist() == [0, 2]
