"""Log attention equals the attention of the literal network, and stays finite where its probability underflows."""

import math

import pytest
import torch
from torch import Tensor, nn

from plant_cli.network import attention as log
from plant_cli.network.attention import log_attention


def test_equals_multi_head_attention_weights() -> None:
    torch.manual_seed(0)
    mixed = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    queries, hidden = torch.randn(5, 8, dtype=torch.float64), torch.randn(3, 6, 8, dtype=torch.float64)
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[2, 3:] = False
    expected = mixed(queries.expand(3, -1, -1), hidden, hidden, key_padding_mask=~mask)[1]
    wq, wk, _ = mixed.in_proj_weight.chunk(3)
    actual = log_attention(queries @ wq.T, hidden @ wk.T, mask, heads=2)
    torch.testing.assert_close(actual.exp(), expected, rtol=0, atol=1e-12)
    assert torch.equal(actual[2, :, 3:], torch.full((5, 3), -math.inf, dtype=torch.float64))
    torch.testing.assert_close(actual.exp().sum(-1), torch.ones(3, 5, dtype=torch.float64))


def test_gradcheck_through_masked_documents() -> None:
    generator = torch.Generator().manual_seed(1)
    queries = torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    keys = torch.randn(2, 5, 4, generator=generator, dtype=torch.float64).requires_grad_()
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])
    assert torch.autograd.gradcheck(lambda q, k: log_attention(q, k, mask, heads=2)[mask[:, None].expand(-1, 3, -1)], (queries, keys))


def test_underflowing_attention_keeps_its_logarithm() -> None:
    queries = torch.tensor([[200.0]], requires_grad=True)
    keys = torch.tensor([[[0.0], [1.0]]])
    logs = log_attention(queries, keys, torch.ones(1, 2, dtype=torch.bool), heads=1)
    torch.testing.assert_close(logs, torch.tensor([[[-200.0, 0.0]]]))
    logs[0, 0, 0].backward()
    assert queries.grad is not None
    torch.testing.assert_close(queries.grad, torch.tensor([[-1.0]]))


def test_half_precision_gives_fp32() -> None:
    q, k = torch.randn(2, 4).bfloat16(), torch.randn(1, 3, 4).bfloat16()
    logs = log_attention(q, k, torch.ones(1, 3, dtype=torch.bool), heads=2)
    assert logs.dtype == torch.float32
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(1, 2))


def plain(queries: Tensor, keys: Tensor, mask: Tensor, heads: int) -> Tensor:
    """All heads, labels and positions at once."""
    q = queries.reshape(len(queries), heads, -1).transpose(0, 1)
    k = keys.reshape(*keys.shape[:2], heads, -1).transpose(1, 2)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~mask[:, None, None, :], torch.finfo(q.dtype).min)
    mean = torch.logsumexp(torch.log_softmax(scores, dim=-1), dim=1) - math.log(heads)
    return mean.masked_fill(~mask[:, None, :], -math.inf)


@pytest.mark.parametrize("scores", [1, 1 << 18])
def test_blocks_give_values_and_gradients_of_the_plain_form(monkeypatch: pytest.MonkeyPatch, scores: int) -> None:
    monkeypatch.setitem(log.SCORES, "cpu", scores)
    monkeypatch.setattr(log, "LABEL_MULTIPLE", 2)
    draw = torch.Generator().manual_seed(2)
    inputs = [3 * torch.randn(shape, generator=draw, dtype=torch.float64) for shape in ((7, 12), (4, 9, 12))]
    mask = torch.tensor([[True] * 9, [True] * 4 + [False] * 5, [True, False, True] + [False] * 6, [False] * 9])
    upstream = torch.randn(4, 7, 9, generator=draw, dtype=torch.float64)
    found = []
    for form in (log_attention, plain):
        leaves = [x.clone().requires_grad_() for x in inputs]
        value = form(*leaves, mask, heads=3)  # type: ignore[operator]
        (value * upstream)[mask[:, None].expand(-1, 7, -1)].sum().backward()
        found.append([value.detach(), *(leaf.grad for leaf in leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_half_precision_is_near_whatever_the_padding() -> None:
    draw = torch.Generator().manual_seed(5)
    queries, keys = torch.randn(70, 16, generator=draw), torch.randn(2, 21, 16, generator=draw)
    mask = torch.arange(21) < torch.tensor([[21], [9]])
    leaves = [x.bfloat16().requires_grad_() for x in (queries, keys)]
    value = log_attention(*leaves, mask, heads=2)
    value[mask[:, None].expand(-1, 70, -1)].square().sum().backward()
    exact = [x.bfloat16().double().requires_grad_() for x in (queries, keys)]
    expected = plain(*exact, mask, 2)
    expected[mask[:, None].expand(-1, 70, -1)].square().sum().backward()
    torch.testing.assert_close(value.double(), expected, rtol=0, atol=0.03)
    for leaf, other in zip(leaves, exact, strict=True):
        assert leaf.grad is not None
        assert other.grad is not None
        assert float((leaf.grad.double() - other.grad).norm() / other.grad.norm()) < 0.02
