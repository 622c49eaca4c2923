"""Log attention equals the attention of the literal network, and stays finite where its probability underflows."""

import math

import torch
from torch import nn

from plant_cli.attention import log_attention


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
