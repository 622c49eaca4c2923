"""What each label's attention gathers from a document, as vectors: for the few callers that need more than a number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.attention.attend import attend
from plant_cli.attention.log import SCORES
from plant_cli.base.padding import LABEL_MULTIPLE, TOKEN_MULTIPLE, round_up
from plant_cli.base.threads import each


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
    lowest = torch.finfo(q.dtype).min  # finite: a document may have nothing but padding
    padding = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, lowest)
    gathered = attend(q, k, v, padding[:, None, None])
    return gathered.transpose(1, 2).reshape(documents, len(queries), hidden).masked_fill(~mask.any(1)[:, None, None], 0.0)


@torch.no_grad()
def gather_sharpened(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int, factors: Sequence[float]) -> Tensor:
    """What `gather_states` gives for attention of several sharpnesses: scores are computed once, their softmax once for each.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        heads: number of heads, a divisor of H.
        factors: on the scores, above 0.

    Returns:
        [F, B, l, H] for F factors, heads side by side; fp32, or fp64 for fp64 inputs.
    """
    labels, hidden = queries.shape
    exact = torch.promote_types(queries.dtype, torch.float32)
    rising = sorted(range(len(factors)), key=lambda i: factors[i])
    found = queries.new_zeros(len(factors), len(keys), labels, hidden, dtype=exact)
    q = functional.pad(queries, (0, 0, 0, round_up(labels, TOKEN_MULTIPLE) - labels)).view(-1, heads, hidden // heads).transpose(0, 1)

    def gather(part: tuple[int, int, Tensor, Tensor, Tensor]) -> None:
        row, start, k, v, padding = part
        scores = torch.matmul(q[:, start : start + _labels_held(k)], k.mT).to(exact).mul_(k.shape[2] ** -0.5)
        scores = scores.masked_fill_(padding, -torch.inf)
        scores -= scores.amax(-1, keepdim=True)
        weights, last = scores, 0.0
        for number in rising:
            # twice a factor is the square of its exponentials, which costs less than others
            weights = weights.mul_(weights) if factors[number] == 2 * last else torch.exp(scores * factors[number])
            last = factors[number]
            gathered = torch.matmul(weights.to(v.dtype), v).to(exact) / weights.sum(-1, keepdim=True)
            of_labels = gathered.transpose(0, 1).flatten(1)[: labels - start]
            found[number, row, start : start + len(of_labels)] = of_labels

    parts = []
    for row, real in enumerate(mask):
        if not real.any():
            continue
        end = int(real.nonzero()[-1]) + 1
        beyond = round_up(end, LABEL_MULTIPLE) - end
        k, v = (functional.pad(x[row, :end], (0, 0, 0, beyond)).view(-1, heads, hidden // heads).transpose(0, 1) for x in (keys, values))
        padding = ~functional.pad(real[:end], (0, beyond))
        parts += [(row, start, k, v, padding) for start in range(0, labels, _labels_held(k))]
    list(each(gather, parts, queries.device))
    return found


def _labels_held(keys: Tensor) -> int:
    """Labels whose scores for the keys [h, t, d] are held at a time."""
    held = SCORES.get(keys.device.type, SCORES["cuda"]) // (len(keys) * keys.shape[1])
    return max(TOKEN_MULTIPLE, held // TOKEN_MULTIPLE * TOKEN_MULTIPLE)
