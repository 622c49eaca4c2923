"""What each label's attention gathers from a document, as vectors: the plain form, for the few callers that need more than a number."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def gather_states(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int) -> Tensor:
    """Attention-weighted means of the values, each head over its own H / heads dimensions.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        heads: number of heads, a divisor of H.

    Returns:
        [B, l, H], heads side by side.
    """
    documents, _, hidden = keys.shape
    split = (documents, -1, heads, hidden // heads)
    q = queries.view(1, -1, heads, hidden // heads).transpose(1, 2).expand(documents, -1, -1, -1)
    k, v = (x.reshape(split).transpose(1, 2) for x in (keys, values))
    gathered = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
    return gathered.transpose(1, 2).reshape(documents, len(queries), hidden).masked_fill(~mask.any(1)[:, None, None], 0.0)
