"""What attention gathers equals the textbook form, head by head."""

import pytest
import torch

from plant_cli.network import gathering as gather
from plant_cli.network.gathering import gather_sharpened, gather_states


@pytest.mark.parametrize("heads", [1, 3])
def test_equals_the_textbook_form(heads: int) -> None:
    draw = torch.Generator().manual_seed(3)
    queries, keys, values = (torch.randn(shape, generator=draw, dtype=torch.float64) for shape in ((5, 12), (2, 7, 12), (2, 7, 12)))
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 4:] = False
    found = gather_states(queries, keys, values, mask, heads=heads)
    size = 12 // heads
    for head in range(heads):
        places = slice(head * size, (head + 1) * size)
        for document, length in ((0, 7), (1, 4)):
            scores = queries[:, places] @ keys[document, :length, places].T / size**0.5
            expected = torch.softmax(scores, dim=1) @ values[document, :length, places]
            torch.testing.assert_close(found[document, :, places], expected, rtol=0, atol=1e-12)


def test_a_document_without_words_gathers_nothing() -> None:
    found = gather_states(torch.ones(3, 4), torch.ones(2, 5, 4), torch.ones(2, 5, 4), torch.tensor([[True] * 5, [False] * 5]), heads=2)
    assert torch.equal(found[0], torch.ones(3, 4))
    assert torch.equal(found[1], torch.zeros(3, 4))


@pytest.mark.parametrize("scores", [1, 1 << 18])
def test_sharpened_equals_the_plain_form_of_each_factor(monkeypatch: pytest.MonkeyPatch, scores: int) -> None:
    monkeypatch.setitem(gather.SCORES, "cpu", scores)
    draw = torch.Generator().manual_seed(4)
    queries, keys, values = (3 * torch.randn(shape, generator=draw, dtype=torch.float64) for shape in ((40, 12), (3, 9, 12), (3, 9, 12)))
    mask = torch.tensor([[True] * 9, [True, False, True] + [False] * 6, [False] * 9])
    factors = (1.0, 0.5, 0.3, 0.25)
    found = gather_sharpened(queries, keys, values, mask, heads=3, factors=factors)
    for number, factor in enumerate(factors):
        expected = gather_states(queries * factor, keys, values, mask, heads=3)
        torch.testing.assert_close(found[number], expected, rtol=0, atol=1e-12)


def test_sharpened_holds_for_scores_whose_exponentials_are_no_numbers() -> None:
    """Several hundred, as a trained backbone gives them."""
    draw = torch.Generator().manual_seed(4)
    queries, keys, values = (torch.randn(shape, generator=draw) for shape in ((5, 12), (2, 9, 12), (2, 9, 12)))
    queries, mask, factors = 300 * queries, torch.ones(2, 9, dtype=torch.bool), (0.5, 1.0)
    found = gather_sharpened(queries, keys, values, mask, heads=3, factors=factors)
    for number, factor in enumerate(factors):
        torch.testing.assert_close(found[number], gather_states(queries * factor, keys, values, mask, heads=3))
