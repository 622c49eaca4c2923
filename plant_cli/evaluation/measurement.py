"""Systems measured on the same gold documents with the same families of metrics, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plant_cli.api.metrics import Hierarchy
from plant_cli.api.reporting import Reporter
from plant_cli.evaluation.bins import measure_bins
from plant_cli.evaluation.comparison import Comparison, compare
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.families import Families, choose, compute_families, find_missing
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.joining import Measurement, Systems, join_metrics
from plant_cli.evaluation.options import DEFAULT_METRICS
from plant_cli.evaluation.predictions import UNNUMBERED, build_input, read_predictions
from plant_cli.evaluation.seeds import average
from plant_cli.evaluation.systems import System, read_scores


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How every system is measured.

    Args:
        families: metric families with their options.
        convention: which documents count, and how.
        wanted: names of metrics; none: those of `DEFAULT_METRICS` that there are.
        memory: bytes that a metric may hold of every score at a time.
        numbering: what numbers in files of other tools stand for, and which pairs do not count.
        hierarchy: what stands above the labels of gold, where that is known.
    """

    families: Families
    convention: Convention
    wanted: Sequence[str]
    memory: int
    numbering: Numbering = UNNUMBERED
    hierarchy: Hierarchy | None = None


def measure_system(system: System, gold: Gold, measure: Measure, reporter: Reporter) -> Measurement:
    """The wanted metrics of a system.

    Raises:
        UsageError: a wanted metric does not exist, or needs scores that were not kept.
        DataError: the predictions are not of these documents; see `read_predictions`.
    """
    predictions = read_predictions(system.predictions, gold, reporter, measure.numbering)
    scores = read_scores(system, gold, measure.memory)
    data = build_input(predictions, gold, system.threshold, measure.convention, scores, measure.hierarchy)
    values = [*compute_families(measure.families, data, measure.wanted), *(metric for b in measure_bins(data) for metric in b.metrics)]
    missing = find_missing(measure.families, data, f"'{system.name}' needs all its scores: `plant predict --auc`")
    known = {value.name for value in values}
    wanted = measure.wanted or [metric for metric in DEFAULT_METRICS if metric in known]
    return Measurement(metrics=choose(values, wanted, missing), data=data)


def compare_systems(
    measured: Systems, families: Families, *, replicates: int, permutations: int, level: float, seed: int, reporter: Reporter
) -> list[Comparison]:
    """The first system beside each other one; of several seeds the means.

    Args:
        measured: two systems or more, with the same metrics (`keep_shared`).
        families: metric families with their options.
        replicates: paired resamples of the documents.
        permutations: random swaps of approximate randomisation.
        level: coverage of the intervals.
        seed: of both.
        reporter: where progress goes.
    """
    systems = [(name, average([one.metrics for one in found]) if len(found) > 1 else found[0].metrics) for name, found in measured]
    with reporter.progress("resampling documents", replicates + permutations, "resamples") as task:
        return compare(
            systems,
            replicates=replicates,
            permutations=permutations,
            level=level,
            generator=np.random.default_rng(seed),
            joined=join_metrics(measured, families),
            advance=task.advance,
        )
