"""Numerics against their references: plain forms in double precision, values and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


def random_tensors(
    *shapes: tuple[int, ...], seed: int = 0, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    """Leaves of the given shapes; equal seeds give equal numbers in every type."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    ]


def exact(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same numbers as leaves in double precision, on the processor."""
    return [x.detach().cpu().double().requires_grad_() for x in tensors]


def upstream_of(result: Tensor, share: float = 1.0, seed: int = 7) -> Tensor:
    """A random gradient of a result, zero outside a share of it."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(result.shape, generator=generator, dtype=torch.float64) * (
        torch.rand(result.shape, generator=generator) < share
    )


def assert_equal(
    ours: tuple[Tensor, Sequence[Tensor]],
    theirs: tuple[Tensor, Sequence[Tensor]],
    upstream: Tensor | None = None,
    *,
    tolerance: float = 1e-12,
    gradients: float | None = None,
    relative: float = 0.0,
) -> None:
    """Both results, each with the leaves that it came from, agree in their numbers and in their
    gradients.

    Args:
        upstream: of the results (None: random, zero on half of them).
        tolerance: absolute, of the results.
        gradients: the same of the gradients (None: as the results).
        relative: of both.
    """
    (actual, inputs), (expected, plain) = ours, theirs
    finite = torch.isfinite(expected)
    assert torch.equal(torch.isfinite(actual).cpu(), finite)
    torch.testing.assert_close(
        actual.cpu().double()[finite], expected.double()[finite], rtol=relative, atol=tolerance
    )
    upstream = (upstream_of(expected, 0.5) if upstream is None else upstream).masked_fill(
        ~finite, 0
    )
    got = torch.autograd.grad(actual, inputs, upstream.to(actual), retain_graph=True)
    wanted = torch.autograd.grad(expected, plain, upstream.to(expected), retain_graph=True)
    for one, other, leaf in zip(got, wanted, inputs, strict=True):
        assert one.dtype == leaf.dtype
        torch.testing.assert_close(
            one.cpu().double(),
            other.double(),
            rtol=relative,
            atol=tolerance if gradients is None else gradients,
        )


@dataclass(frozen=True, kw_only=True)
class LiteralHead:
    """The weights of the network after the backbone."""

    queries: Tensor  # label queries E [L, H]
    attention: nn.MultiheadAttention  # the multi-head attention, batch first, with all its biases
    boost_scale: Tensor  # B_m [L, H]
    boost_shift: Tensor  # B_a [L, H]
    projection: Tensor  # W_c [p], shared by all labels
    bias: Tensor  # per label [L]


def literal_logits(head: LiteralHead, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, L] and attention averaged over heads [B, L, T] of hidden states [B, T, H],
    through full [B, L, H] arrays.
    """
    queries = head.queries.expand(len(hidden), -1, -1)
    attended, weights = head.attention(
        queries, hidden, hidden, key_padding_mask=~mask, need_weights=True
    )
    boosted = head.boost_shift + attended * head.boost_scale
    pooled = functional.adaptive_avg_pool1d(boosted, len(head.projection))
    return torch.matmul(pooled, head.projection) + head.bias, weights
