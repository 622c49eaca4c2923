"""Systems side by side: the metrics that all have, and their documents one after the other, to swap outputs by weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api.metrics import AllScores, Metric, MetricInput, WeightedMetric
from plant_cli.evaluation.families import Families, compute_families
from plant_cli.evaluation.seeds import average
from plant_cli.kit.metrics import Floats


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The metrics of one system, trained with one seed, and what they were computed from."""

    metrics: Sequence[Metric]
    data: MetricInput


Systems = Sequence[tuple[str, Sequence[Measurement]]]  # name, and a measurement for each seed


def keep_shared(systems: Systems) -> Systems:
    """The metrics that all systems have: AUC only where every one kept every score."""
    shared = set.intersection(*({metric.name for metric in one.metrics} for _, found in systems for one in found))
    return [(name, [replace(one, metrics=[m for m in one.metrics if m.name in shared]) for one in found]) for name, found in systems]


def join_metrics(systems: Systems, families: Families) -> dict[tuple[str, str], WeightedMetric]:
    """Each metric that no sums over documents give, by system and name, on the documents of the first system followed by those of another.

    Args:
        systems: at least two, from `keep_shared`; of several seeds the mean.
        families: the metric families with their options.
    """
    (_, firsts), others = systems[0], systems[1:]
    wanted = {metric.name for metric in firsts[0].metrics if isinstance(metric, WeightedMetric)}
    if not wanted:
        return {}
    needed = [(spec, options) for spec, options in families if spec.needs_all_scores]
    joined: dict[tuple[str, str], WeightedMetric] = {}
    for name, found in others:
        repeated = [compute_families(needed, join(a.data, b.data)) for a, b in zip(firsts, found, strict=True)]
        metrics = average(repeated) if len(repeated) > 1 else repeated[0]
        joined |= {(name, m.name): m for m in metrics if isinstance(m, WeightedMetric) and m.name in wanted}
    return joined


@dataclass(frozen=True)
class JoinedScores:
    """Every score of two systems as one table of 2 N documents; see `plant_cli.api.AllScores`.

    Scores of a system are first brought to mean 0 and standard deviation 1: no AUC changes by that, and systems that write
    scores on other scales can be swapped.
    """

    parts: tuple[AllScores, AllScores]

    @property
    def shape(self) -> tuple[int, int]:
        """See `AllScores.shape`."""
        documents, labels = self.parts[0].shape
        return 2 * documents, labels

    @property
    def memory(self) -> int:
        """See `AllScores.memory`."""
        return self.parts[0].memory

    @cached_property
    def _scales(self) -> list[tuple[float, float]]:
        return [_find_scale(part) for part in self.parts]

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """See `AllScores.read`."""
        half = self.parts[0].shape[0]
        start, stop, _ = documents.indices(2 * half)
        rows = (slice(min(start, half), min(stop, half)), slice(max(start, half) - half, max(stop, half) - half))
        blocks = [
            (part.read(row, labels) - mean) / spread for part, row, (mean, spread) in zip(self.parts, rows, self._scales, strict=True)
        ]
        return np.concatenate(blocks).astype(np.float32)


def _find_scale(scores: AllScores) -> tuple[float, float]:
    documents, labels = scores.shape
    step = max(1, scores.memory // (16 * max(labels, 1)))
    sums = np.zeros(2)
    for start in range(0, documents, step):
        block = scores.read(slice(start, min(start + step, documents)), slice(None)).astype(np.float64)
        sums += block.sum(), (block**2).sum()
    mean, square = sums / max(1, documents * labels)
    return float(mean), float(np.sqrt(max(square - mean**2, 0.0))) or 1.0


def join(a: MetricInput, b: MetricInput) -> MetricInput:
    """The documents of one system followed by those of another: 2 N documents, with all that metrics of every score read.

    Args:
        a: of one system, with every score; its threshold stands for both.
        b: of the other, of the same documents.
    """
    assert a.all_scores is not None, "only metrics of every score need documents joined"
    assert b.all_scores is not None, "only metrics of every score need documents joined"
    width = max(a.top.shape[1], b.top.shape[1])
    pad = [((0, 0), (0, width - data.top.shape[1])) for data in (a, b)]
    top = np.concatenate([np.pad(data.top, p, constant_values=-1) for data, p in zip((a, b), pad, strict=True)])
    scores: Floats = np.concatenate([np.pad(data.scores, p, constant_values=-np.inf) for data, p in zip((a, b), pad, strict=True)])
    gold = csr_array(vstack([a.gold, b.gold], format="csr"))
    return replace(a, top=top, scores=scores, gold=gold, all_scores=JoinedScores((a.all_scores, b.all_scores)))
