"""Normed attention equals a plain loop in double precision, values and gradients, whatever is held at a time."""

import pytest
import torch

from plant_cli.network.gathering import normed_attention

DOCUMENTS, LABELS, POSITIONS, HIDDEN = 3, 130, 7, 6
EPSILON = 1e-3


def inputs() -> tuple[torch.Tensor, ...]:
    """Queries, direction, keys, values and a mask with a hole and a document without positions; fp64."""
    draw = torch.Generator().manual_seed(0)
    shapes = ((LABELS, HIDDEN), (HIDDEN,), (DOCUMENTS, POSITIONS, HIDDEN), (DOCUMENTS, POSITIONS, HIDDEN))
    tensors = [torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = torch.ones(DOCUMENTS, POSITIONS, dtype=torch.bool)
    mask[0, 4:] = mask[0, 1] = mask[2] = False
    return *tensors, mask


def loop(queries: torch.Tensor, direction: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The logits, one at a time."""
    logits = []
    for document in range(DOCUMENTS):
        real = mask[document].nonzero().squeeze(1).tolist()
        for label in range(LABELS):
            powers = [torch.exp(queries[label] @ keys[document, t]) for t in real]
            total = sum(powers, start=torch.zeros((), dtype=torch.float64))
            gathered = sum((p / total * values[document, t] for p, t in zip(powers, real, strict=True)), start=0 * values[document, 0])
            centred = gathered - gathered.mean()
            logits.append(direction @ centred / torch.sqrt(centred.square().mean() + EPSILON))
    return torch.stack(logits).view(DOCUMENTS, LABELS)


@pytest.mark.parametrize("elements", [None, 64 * HIDDEN])
def test_equals_the_loop_with_its_gradients(elements: int | None) -> None:
    *tensors, mask = inputs()
    ours, theirs = normed_attention(*tensors, mask, epsilon=EPSILON, elements=elements), loop(*tensors, mask)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    upstream[:, ::3] = 0  # pairs without a gradient are left out
    upstream[1, :100] = 0
    for a, b in zip(torch.autograd.grad(ours, tensors, upstream), torch.autograd.grad(theirs, tensors, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_a_document_without_positions_gets_zeros() -> None:
    *tensors, mask = (x.detach() for x in inputs())
    assert not normed_attention(*tensors, mask)[2].any()
    assert not normed_attention(*tensors[:2], *(x[:, :0] for x in (*tensors[2:], mask))).any()


def test_products_in_bf16_are_near() -> None:
    queries, direction, keys, values, mask = (x.detach() for x in inputs())
    expected = normed_attention(queries, direction, keys, values, mask)
    coarse = normed_attention(queries.float(), direction.float(), keys.bfloat16(), values.bfloat16(), mask)
    assert coarse.dtype == torch.float32
    assert (coarse - expected).abs().mean() < 0.02 * expected.abs().max()
