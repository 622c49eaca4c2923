"""Batches of documents of like length, in an order that follows from seed and epoch alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plant_cli.base.padding import TOKEN_MULTIPLE, round_up

from plant_cli.model.reading import Rows
BUCKET = 32  # micro-batches that are sorted by length together


def micro_sizes(batch: int, micro_batch: int) -> list[int]:
    """Documents of each micro-batch of a step: as few micro-batches as can be, and these as equal as can be, the larger ones first."""
    count = -(-batch // micro_batch)
    size, larger = divmod(batch, count)
    return [size + (number < larger) for number in range(count)]


def make_steps(lengths: Rows, batch: int, micro_batch: int, *, seed: int, epoch: int) -> list[list[Rows]]:
    """The micro-batches of each optimiser step of an epoch. Every step has `batch` documents, but the last one what is left over.

    Rows are shuffled; within a bucket of `BUCKET` micro-batches they are sorted by length, so that little is padding. Where `batch` is a
    multiple of `micro_batch`, the micro-batch that is not full is shuffled like the others: the step that it falls into is smaller, too.

    Args:
        lengths: of the documents [N].
        batch: documents of a step.
        micro_batch: documents of a micro-batch, at most.
        seed: of the run.
        epoch: the epoch.
    """
    sizes = micro_sizes(batch, micro_batch)
    count, larger = len(sizes), batch % len(sizes)
    draw = np.random.default_rng([seed, epoch])
    found = _cut(draw.permutation(len(lengths)), lengths, np.resize(sizes, count * -(-len(lengths) // batch)))
    order = draw.permutation(len(found))
    if batch % micro_batch:
        order = np.append(order[order != len(found) - 1], len(found) - 1)
    large, small = ([found[i] for i in order if (i % count < larger) == is_large] for is_large in (True, False))
    return [
        [*large[step * larger : (step + 1) * larger], *small[step * (count - larger) : (step + 1) * (count - larger)]]
        for step in range(-(-len(found) // count))
    ]


def _cut(order: Rows, lengths: Rows, sizes: npt.NDArray[np.int_]) -> list[Rows]:
    """Shuffled rows in pieces of the given sizes, sorted by length within a bucket of pieces; none is empty."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    found: list[Rows] = []
    for first in range(0, len(sizes), BUCKET):
        inside = ends[first : first + BUCKET + 1]
        bucket = order[inside[0] : inside[-1]]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        found.extend(rows for rows in np.split(bucket, inside[1:-1] - inside[0]) if len(rows))
    return found


def padding_share(lengths: Rows, steps: list[list[Rows]]) -> float:
    """Share of positions that are padding, up to whole multiples of `TOKEN_MULTIPLE`."""
    padded = sum(len(rows) * round_up(int(lengths[rows].max(initial=1)), TOKEN_MULTIPLE) for step in steps for rows in step)
    return 1.0 - float(lengths.sum()) / padded if padded else 0.0
