"""Single-head attention of any sizes equals a plain loop in double precision, values and gradients."""

import pytest
import torch

from plant_cli.network.gathering import single_head_attention, single_head_log_attention, single_head_states

DOCUMENTS, LABELS, POSITIONS = 3, 5, 7


def inputs(keys: int, values: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Queries, directions, keys, values and a mask with a hole and a document without positions; fp64."""
    draw = torch.Generator().manual_seed(seed)
    shapes = ((LABELS, keys), (LABELS, values), (DOCUMENTS, POSITIONS, keys), (DOCUMENTS, POSITIONS, values))
    tensors = [torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = torch.ones(DOCUMENTS, POSITIONS, dtype=torch.bool)
    mask[0, 4:] = mask[0, 1] = mask[2] = False
    return *tensors, mask


def loop(queries: torch.Tensor, directions: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The logits, one number at a time."""
    logits = []
    for document in range(DOCUMENTS):
        real = mask[document].nonzero().squeeze(1).tolist()
        for label in range(LABELS):
            powers = [torch.exp(queries[label] @ keys[document, t]) for t in real]
            total = sum(powers, start=torch.zeros((), dtype=torch.float64))
            gathered = sum((p / total * values[document, t] for p, t in zip(powers, real, strict=True)), start=0 * values[document, 0])
            logits.append(directions[label] @ gathered)
    return torch.stack(logits).view(DOCUMENTS, LABELS)


@pytest.mark.parametrize(("keys", "values"), [(4, 4), (3, 6), (6, 3)])
def test_equals_the_loop_with_its_gradients(keys: int, values: int) -> None:
    *tensors, mask = inputs(keys, values)
    ours, theirs = single_head_attention(*tensors, mask), loop(*tensors, mask)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for a, b in zip(torch.autograd.grad(ours, tensors, upstream), torch.autograd.grad(theirs, tensors, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("keys", "values"), [(4, 4), (3, 6), (6, 3)])
def test_states_and_logarithms_are_those_of_the_same_attention(keys: int, values: int) -> None:
    queries, directions, k, v, mask = inputs(keys, values)
    states, logs = single_head_states(queries, k, v, mask), single_head_log_attention(queries, k, mask)
    torch.testing.assert_close((states * directions).sum(-1), loop(queries, directions, k, v, mask), rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.einsum("blt,btv->blv", logs.exp(), v), states, rtol=0, atol=1e-12)
    assert torch.isneginf(logs[~mask[:, None, :].expand_as(logs)]).all()


def test_products_in_bf16_are_near() -> None:
    queries, directions, keys, values, mask = (x.detach() for x in inputs(64, 32))
    expected = single_head_attention(queries / 8, directions, keys, values, mask)
    coarse = single_head_attention((queries / 8).float(), directions.float(), keys.bfloat16(), values.bfloat16(), mask)
    assert coarse.dtype == torch.float32
    assert (coarse - expected).abs().max() < 0.05 * expected.abs().max()
