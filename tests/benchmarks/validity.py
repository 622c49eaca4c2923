"""Do p-values and intervals hold what they promise? Simulated pairs of systems whose true
difference is known.

`python -m tests.benchmarks.validity --pairs 1000 --json FILE`. A world draws documents with gold
labels of Zipf frequency and two systems that score every label: right ones higher, with noise of
the document and of the score, partly shared by both, and a habit of each label. Under `null` both
systems are drawn alike, so that any difference called significant is wrong: `raw` is the share with
p < 0.05, `marked` that with ▲ or ▼ (Holm over all metrics), `published` that with a mark by the
rule of the paper, `family` the share of pairs with any mark of ours. Under `shifted` the second
system is worse; `true` is the mean value over many more drawn test sets of the same size, which
intervals of one system (`value`) and of the difference should cover. Metrics that fewer than 95% of
the test sets define (the rarest bins) are left out of the coverage.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plant_metrics
from scipy import stats
from scipy.sparse import csr_array

from plant_cli.api import Metric, MetricInput
from plant_cli.evaluation.comparison import ALPHA, Difference, compare_metrics
from plant_cli.evaluation.counters import Floats, ScoreTable, compute_families, compute_value
from plant_cli.evaluation.measurement import Measurement, join_metrics
from plant_cli.evaluation.measures import evaluate, measure_bins

FAMILIES = [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]
K, THRESHOLD = 12, 0.5
TRAINED = 100  # documents


@dataclass(frozen=True)
class World:
    """How test sets are drawn.

    Args:
        documents: of a test set.
        labels: their frequencies fall from 0.3 by Zipf's law, so that most have but a few documents
            in a test set.
        skill: by how many standard deviations right labels score higher, of the first system and of
            the second.
    """

    documents: int = 150
    labels: int = 80
    skill: tuple[float, float] = (2.0, 2.0)

    def draw(self, generator: np.random.Generator) -> tuple[MetricInput, MetricInput]:
        """The predictions of both systems on one test set."""
        shares = 0.3 / np.arange(1, self.labels + 1)
        gold = generator.random((self.documents, self.labels)) < shares
        gold[~gold.any(axis=1), 0] = True
        ease, habit = (
            generator.normal(0, 0.5, (self.documents, 1)),
            np.random.default_rng(0).normal(0, 0.3, (1, self.labels)),
        )
        shared = generator.normal(0, 0.7, gold.shape)  # what both systems get wrong alike
        logits = [
            gold * (s + ease) + habit + shared + generator.normal(0, 0.7, gold.shape)
            for s in self.skill
        ]
        return tuple(_lay_beside(score, gold, shares) for score in logits)  # type: ignore[return-value]


def _lay_beside(logits: Floats, gold: Any, shares: Floats) -> MetricInput:
    scores = 1 / (1 + np.exp(1.5 - logits))
    top = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    return MetricInput(
        top=top,
        scores=np.take_along_axis(scores, top, axis=1),
        gold=csr_array(gold.astype(np.int64)),
        train_counts=np.maximum(1, np.rint(shares * TRAINED)).astype(np.int64),
        train_documents=TRAINED,
        threshold=THRESHOLD,
        all_scores=ScoreTable(
            values=logits.astype(np.float32), rows=np.arange(len(gold)), memory=2**24
        ),
    )


def measure(data: MetricInput) -> list[Metric]:
    """Every metric of every family and bin."""
    return [*compute_families(FAMILIES, data), *(m for b in measure_bins(data) for m in b.metrics)]


def compare_both(
    both: tuple[MetricInput, MetricInput],
    resamples: int,
    swaps: int,
    generator: np.random.Generator,
) -> list[Difference]:
    """The two systems of a test set compared as `plant significance` does it, on every metric."""
    systems = [
        (name, [Measurement(metrics=measure(data), data=data)])
        for name, data in zip("ab", both, strict=True)
    ]
    metrics = [(name, found[0].metrics) for name, found in systems]
    joined = join_metrics(systems, FAMILIES)
    return compare_metrics(
        metrics,
        replicates=resamples,
        permutations=swaps,
        level=0.95,
        generator=generator,
        joined=joined,
    )


def compare_pairs(
    world: World, pairs: int, resamples: int, seed: int, swaps: int = 999
) -> Iterator[list[Difference]]:
    """The comparison of both systems on each of `pairs` test sets."""
    for number in range(pairs):
        generator = np.random.default_rng([seed, number])
        yield compare_both(world.draw(generator), resamples, swaps, generator)


def count_false(found: Sequence[Sequence[Difference]]) -> dict[str, Any]:
    """How often a difference that is not there was called significant, by metric, and with any
    metric.
    """
    raw: dict[str, list[bool]] = {}
    marked: dict[str, list[bool]] = {}
    published: dict[str, list[bool]] = {}
    for comparisons in found:
        for c in comparisons:
            raw.setdefault(c["metric"], []).append(c["p"] < ALPHA)
            marked.setdefault(c["metric"], []).append(_is_marked(c["text"]))
            published.setdefault(c["metric"], []).append(_is_marked(c["text_paper"]))
    family = [any(_is_marked(c["text"]) for c in comparisons) for comparisons in found]
    return {
        "metrics": {
            name: {
                "raw": _share(raw[name]),
                "marked": float(np.mean(marked[name])),
                "published": float(np.mean(published[name])),
            }
            for name in raw
        },
        "family": _share(family),
    }


def _is_marked(text: str) -> bool:
    return "▲" in text or "▼" in text


def _share(hits: Sequence[bool]) -> dict[str, float]:
    bounds = stats.binomtest(int(np.sum(hits)), len(hits)).proportion_ci(method="wilson")
    return {
        "share": float(np.mean(hits)),
        "low": float(bounds.low),
        "high": float(bounds.high),
        "of": len(hits),
    }


def find_truth(world: World, sets: int, seed: int) -> dict[str, tuple[float, float]]:
    """Each metric's mean over many test sets: of the first system, and of the difference; only
    where 95% of the sets define it.
    """
    values: dict[str, list[tuple[float, float]]] = {}
    for number in range(sets):
        first, second = (
            measure(data) for data in world.draw(np.random.default_rng([seed, 10**6 + number]))
        )
        for a, b in zip(first, second, strict=True):
            values.setdefault(a.name, []).append((compute_value(a), compute_value(b)))
    table = {name: np.array(found) for name, found in values.items()}
    return {
        name: (float(np.nanmean(found[:, 0])), float(np.nanmean(found[:, 0] - found[:, 1])))
        for name, found in table.items()
        if np.isfinite(found).all(axis=1).sum() >= 0.95 * sets
    }


def count_covered(world: World, pairs: int, sets: int, resamples: int, seed: int) -> dict[str, Any]:
    """How often intervals of a value (of the first system) and of the difference cover what is
    true.
    """
    truth = find_truth(world, sets, seed)
    covered: dict[str, dict[str, list[bool]]] = {
        name: {"value": [], "difference": []} for name in truth
    }
    for number in range(pairs):
        generator = np.random.default_rng([seed, number])
        first, second = world.draw(generator)
        scores = evaluate(first, FAMILIES, replicates=resamples, generator=generator).scores
        differences = {
            c["metric"]: c for c in compare_both((first, second), resamples, 1, generator)
        }
        for name, (value, difference) in truth.items():
            if name in differences and scores[name].low is not None:
                covered[name]["value"].append(_covers(scores[name].low, scores[name].high, value))
                covered[name]["difference"].append(
                    _covers(differences[name]["low"], differences[name]["high"], difference)
                )
    return {
        name: {"true": truth[name], **{what: _share(hits) for what, hits in found.items()}}
        for name, found in covered.items()
    }


def _covers(low: Any, high: Any, true: float) -> bool:
    return bool(low - 1e-12 <= true <= high + 1e-12)


def main() -> None:
    """Simulate both cases and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument(
        "--covered", type=int, default=1000, help="pairs whose intervals are looked at"
    )
    parser.add_argument(
        "--sets", type=int, default=4000, help="test sets whose mean is the true value"
    )
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    begun = time.process_time()
    null, shifted = (
        World(documents=given.documents),
        World(documents=given.documents, skill=(2.0, 1.8)),
    )
    found = {
        "options": {key: str(value) for key, value in vars(given).items()},
        "null": count_false(list(compare_pairs(null, given.pairs, given.resamples, given.seed))),
        "shifted": count_covered(shifted, given.covered, given.sets, given.resamples, given.seed),
        "cpu_seconds": 0.0,
    }
    found["cpu_seconds"] = time.process_time() - begun
    for name, rates in found["null"]["metrics"].items():
        covered = found["shifted"].get(name)
        shown = (
            ""
            if covered is None
            else f"{covered['value']['share']:8.3f}{covered['difference']['share']:8.3f}"
        )
        print(
            f"{name:28}{rates['raw']['share']:8.3f}{rates['marked']:8.3f}{rates['published']:8.3f}{shown}"
        )
    print(
        "any mark in a pair",
        found["null"]["family"],
        "processor seconds",
        round(found["cpu_seconds"], 1),
    )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
