"""Both ways to attend give the same means and gradients; which one is taken depends on the processor."""

import math

import pytest
import torch
from torch import Tensor

from plant_cli.network import attention as module
from plant_cli.network.attention import attend, attend_in_blocks

HEADS, LABELS, POSITIONS, SIZE = 2, 70, 9, 6


def draw(dtype: torch.dtype, *before: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = [(*before, HEADS, count, SIZE) for count in (LABELS, POSITIONS, POSITIONS)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def textbook(queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None) -> Tensor:
    scores = torch.einsum("...ld,...td->...lt", queries, keys) / math.sqrt(SIZE)
    weights = torch.exp(scores if padding is None else scores + padding)
    return torch.einsum("...lt,...td->...ld", weights / weights.sum(-1, keepdim=True), values)


def pad(shape: tuple[int, ...]) -> Tensor:
    padding = torch.zeros(shape, dtype=torch.float64)
    padding[..., -2:] = -torch.inf
    return padding


@pytest.mark.parametrize("scores", [1, 1 << 18], ids=["blocks of labels", "one block"])
@pytest.mark.parametrize("padding", [None, pad((1, POSITIONS)), pad((3, 1, 1, POSITIONS))], ids=["none", "shared", "of each document"])
@pytest.mark.parametrize("way", [attend, attend_in_blocks])
def test_equals_the_textbook_form(way: object, padding: Tensor | None, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(way)
    monkeypatch.setattr(module, "BLOCK_SCORES", scores)
    inputs = draw(torch.float64, 3)
    expected, found = textbook(*inputs, padding), way(*inputs, padding)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    upstream = torch.randn(expected.shape, dtype=torch.float64)
    gradients = zip(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream), strict=True)
    for ours, theirs in gradients:
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_documents_are_attended_to_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of one fit the cache, those of a batch do not."""
    sizes: set[int] = set()
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda scores, dim: sizes.add(scores.numel()) or softmax(scores, dim=dim))
    attend_in_blocks(*draw(torch.float64, 3))
    assert sizes == {HEADS * LABELS * POSITIONS}


@pytest.mark.parametrize("amx", [False, True])
def test_products_in_bf16_are_near(amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_amx", lambda: amx)
    exact, coarse = draw(torch.float64), draw(torch.bfloat16)
    expected, found = textbook(*exact, None), attend(*coarse)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, rtol=0.02, atol=0.02)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(6)).double()
    for ours, theirs in zip(
        torch.autograd.grad(found, coarse, upstream.bfloat16()), torch.autograd.grad(expected, exact, upstream), strict=True
    ):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.double(), theirs, rtol=0.03, atol=0.05)


@pytest.mark.parametrize(
    ("dtype", "amx", "taken"), [(torch.bfloat16, False, True), (torch.bfloat16, True, False), (torch.float32, False, False)], ids=str
)
def test_blocks_are_for_bf16_without_amx(dtype: torch.dtype, amx: bool, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(module, "has_amx", lambda: amx)
    monkeypatch.setattr(module, "attend_in_blocks", lambda queries, *_: calls.append(1) or queries)
    attend(*draw(dtype))
    assert bool(calls) == taken


def test_no_array_of_all_scores_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0

    def softmax(scores: Tensor, dim: int) -> Tensor:
        nonlocal largest
        largest = max(largest, scores.numel())
        return scores.softmax(dim)

    monkeypatch.setattr(module, "BLOCK_SCORES", HEADS * 64 * POSITIONS)
    monkeypatch.setattr(torch, "softmax", softmax)
    inputs = draw(torch.bfloat16)
    attend_in_blocks(*inputs).sum().backward()
    assert largest == HEADS * 64 * POSITIONS
