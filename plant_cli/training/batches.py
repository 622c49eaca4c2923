"""Batches of documents of like length, in an order that follows from seed and epoch alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plant_cli.base.padding import TOKEN_MULTIPLE, round_up

Rows = npt.NDArray[np.int64]
BUCKET = 32  # batches that are sorted by length together


def make_batches(lengths: Rows, size: int, *, seed: int, epoch: int) -> list[Rows]:
    """Shuffled batches of `size` rows; within a bucket of `BUCKET` batches rows are sorted by length, so that little is padding."""
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(lengths))
    found: list[Rows] = []
    for start in range(0, len(order), size * BUCKET):
        bucket = order[start : start + size * BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        found.extend(bucket[i : i + size] for i in range(0, len(bucket), size))
    return [found[i] for i in draw.permutation(len(found))]


def padding_share(lengths: Rows, batches: list[Rows]) -> float:
    """Share of positions that are padding, up to whole multiples of `TOKEN_MULTIPLE`."""
    padded = sum(len(rows) * round_up(int(lengths[rows].max(initial=1)), TOKEN_MULTIPLE) for rows in batches)
    return 1.0 - float(lengths.sum()) / padded if padded else 0.0
