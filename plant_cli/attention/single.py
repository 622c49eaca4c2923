"""Label attention with one head and no scale, α = softmax(q · k), for keys and values of different sizes: CAML, LAAT, PLM-ICD, PLM-CA.

All of it is the attention with heads: its scale is undone, and the narrower of the two sides is filled up with zeros, which add nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from plant_cli.attention.fused import label_attention
from plant_cli.attention.gather import gather_sharpened, gather_states
from plant_cli.attention.log import log_attention


def single_head_attention(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, elements: int | None = None
) -> Tensor:
    """Each label's direction times the attention-weighted mean of the values.

    Args:
        queries: q [L, A].
        directions: g [L, V].
        keys: k [B, T, A].
        values: v [B, T, V].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        elements: gathered numbers held at a time, see `label_attention`.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    filled, given = _even(keys, values)
    directions = _fill_up(directions.to(keys.dtype), filled.shape[-1])
    return label_attention(unscale(queries, filled), directions, filled, given, mask, heads=1, elements=elements)


def single_head_log_attention(queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Log attention [B, l, T] of queries [l, A] on keys [B, T, A]; −inf where masked [B, T]."""
    return log_attention(unscale(queries, keys), keys, mask, heads=1)


def single_head_states(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention-weighted means [B, l, V] of values [B, T, V], for queries [l, A] and keys [B, T, A]; zeros where all is masked [B, T]."""
    filled, given = _even(keys, values)
    return gather_states(unscale(queries, filled), filled, given, mask, heads=1)[..., : values.shape[-1]]


def single_head_sharpened(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, factors: Sequence[float]) -> Tensor:
    """What `single_head_states` gives after each of F factors on the scores [F, B, l, V]; without gradients."""
    filled, given = _even(keys, values)
    return gather_sharpened(unscale(queries, filled), filled, given, mask, heads=1, factors=factors)[..., : values.shape[-1]]


def unscale(queries: Tensor, keys: Tensor) -> Tensor:
    """Queries [l, A] in size and type of the keys [B, T, D], times what the product with them is divided by: √D."""
    return _fill_up((queries * keys.shape[-1] ** 0.5).to(keys.dtype), keys.shape[-1])


def _even(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values in one size and one type."""
    size = max(keys.shape[-1], values.shape[-1])
    return _fill_up(keys, size), _fill_up(values.to(keys.dtype), size)


def _fill_up(x: Tensor, size: int) -> Tensor:
    return functional.pad(x, (0, size - x.shape[-1])) if x.shape[-1] < size else x
