"""The L2R model beside plain loops in double precision, and relevance by word."""

from __future__ import annotations

import pytest
import torch
from plant_decoders.planted_l2r import DotProduct, StaticRelevance, TwoLayers
from scipy.sparse import csr_array, random_array
from torch import Tensor

WORDS, LABELS, SIZE, HIDDEN = 9, 5, 4, 6


def stir(module: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(1)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module


def plain(ranker: torch.nn.Module, words: list[int], labels: list[int]) -> Tensor:
    """One pair after the other, on the concatenated embeddings."""
    rows = []
    for label in labels:
        row = []
        for word in words:
            e_word, e_label = ranker.get_parameter("word")[word], ranker.get_parameter("label")[label]
            if isinstance(ranker, DotProduct):
                row.append(sum(a * b for a, b in zip(e_word, e_label, strict=True)) + ranker.word_bias[word] + ranker.label_bias[label])
            else:
                assert isinstance(ranker, TwoLayers)
                both = torch.cat([e_word, e_label])
                inner = [torch.relu((w * both).sum() + b) for w, b in zip(ranker.first.weight, ranker.first.bias, strict=True)]
                row.append(sum(v * h for v, h in zip(ranker.second.weight[0], inner, strict=True)) + ranker.second.bias[0])
        rows.append(torch.stack(row))  # type: ignore[arg-type]
    return torch.stack(rows)


@pytest.mark.parametrize("ranker", [DotProduct(WORDS, LABELS, SIZE), TwoLayers(WORDS, LABELS, SIZE, HIDDEN)], ids=["dot", "network"])
def test_values_and_gradients_are_those_of_the_loop(ranker: torch.nn.Module) -> None:
    ranker = stir(ranker)
    words, labels = [3, 0, WORDS, 7], [4, 1]
    fast, slow = ranker(torch.tensor(words), torch.tensor(labels)), plain(ranker, words, labels)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    weight, parameters = torch.randn_like(slow), list(ranker.parameters())
    for one, other in zip(
        torch.autograd.grad((fast * weight).sum(), parameters), torch.autograd.grad((slow * weight).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.fixture
def relevance() -> csr_array:
    return csr_array(random_array((LABELS, WORDS), density=0.4, random_state=0, dtype="float32"))


def test_relevance_is_looked_up_by_word(relevance: csr_array) -> None:
    table = StaticRelevance(relevance)
    words, labels = [WORDS, 2, 8, 0], [3, 0, 4]
    dense = torch.from_numpy(relevance.toarray())
    expected = torch.stack([torch.stack([dense[label, word] if word < WORDS else torch.tensor(0.0) for word in words]) for label in labels])
    assert torch.equal(table(torch.tensor(words), torch.tensor(labels), LABELS), expected)
    assert int((expected > 0).sum()) > 2


def test_without_relevance_nothing_is_relevant() -> None:
    assert not bool(StaticRelevance(None)(torch.tensor([0, 0]), torch.tensor([1]), LABELS).any())


@pytest.mark.parametrize("kind", ["dot", "network", "relevance"])
def test_built_without_a_table_it_takes_over_the_saved_sizes(kind: str, relevance: csr_array) -> None:
    made = {
        "dot": lambda full: DotProduct(WORDS if full else 0, LABELS, SIZE),
        "network": lambda full: TwoLayers(WORDS if full else 0, LABELS, SIZE, HIDDEN),
        "relevance": lambda full: StaticRelevance(relevance if full else None),
    }[kind]
    saved, empty = made(True), made(False)
    empty.load_state_dict(saved.state_dict())
    assert empty.words == saved.words == WORDS
    assert all(torch.equal(a, b) for a, b in zip(saved.state_dict().values(), empty.state_dict().values(), strict=True))


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="size mismatch for word"):
        DotProduct(WORDS, LABELS, SIZE).load_state_dict(DotProduct(WORDS + 1, LABELS, SIZE).state_dict())
