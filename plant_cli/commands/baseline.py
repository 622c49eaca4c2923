"""What a system must be above to have learned anything: label frequencies alone, on validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from plant_cli.api import StageContext
from plant_cli.data.blocks import top_k
from plant_cli.evaluation.systems import find_seeds
from plant_cli.runs.folder import StageFolder
from plant_cli.scoring.top_labels import TopLabels
from plant_cli.training.judging import LABELS_JUDGED, VALIDATION_METRICS, Judge, find_families

JUDGED = "MAP"


def measure_frequencies(context: StageContext) -> float | None:
    """MAP on validation of the most frequent labels of train, the same for every document; None
    without validation.
    """
    corpus = context.corpus()
    if not corpus.has_split("validation"):
        return None
    split, counts = corpus.gold_labels("validation"), np.asarray(corpus.labels.train_counts)
    judge = Judge(
        split, corpus.labels, corpus.sizes["train"], find_families(context.component), "micro-F1"
    )
    best = top_k(counts, LABELS_JUDGED)
    best = best[np.argsort(-counts[best], kind="stable")]
    shares = counts[best] / max(1, corpus.sizes["train"])
    shape = (len(split), 1)
    top = TopLabels(labels=np.tile(best, shape), scores=np.tile(shares, shape), assigned_share=0.0)
    return judge.figures(top)[JUDGED]


def read_validation(
    context: StageContext, systems: Sequence[str], seeds: int | None
) -> dict[str, dict[str, float]]:
    """The figures of validation of the systems that this run trained, means over the seeds;
    those chose the epoch, and perhaps values.
    """
    found = {}
    for system in systems:
        folders = [system] if seeds is None else [*_find_folders(context, system, seeds)]
        given = [_read_summary(context.run_path / folder) for folder in folders]
        names = [name for name in VALIDATION_METRICS if given and all(name in one for one in given)]
        if names:
            found[system] = {name: float(np.mean([one[name] for one in given])) for name in names}
    return found


def _find_folders(context: StageContext, system: str, seeds: int) -> Sequence[str]:
    return list(find_seeds(context.run_path, system, seeds).values())


def _read_summary(folder: Path) -> dict[str, float]:
    record = StageFolder(folder).record()
    return (
        {}
        if record is None
        else {name: value for name, value in record.summary.items() if isinstance(value, float)}
    )


def warn_of_nothing_learned(
    context: StageContext,
    validation: Mapping[str, Mapping[str, float]],
    names: Mapping[str, str],
) -> float | None:
    """Warn of systems that are below label frequencies on validation; the figure of these, None
    where there is nothing to compare.
    """
    judged = {system: one[JUDGED] for system, one in validation.items() if JUDGED in one}
    least = measure_frequencies(context) if judged else None
    if least is None:
        return None
    for system, figure in judged.items():
        if figure < least and not _is_baseline(context.run_path / system):
            context.reporter.warn(
                f"{names.get(system, system)}: this rival has learned nothing: {JUDGED} "
                f"{100 * figure:.1f} on validation, where the "
                f"frequencies of labels alone have {100 * least:.1f}; train it longer, or at "
                "other rates, before comparing"
            )
    return least


def _is_baseline(folder: Path) -> bool:
    """Whether the system is the scorer `frequencies` itself: its weights are learned, so that
    it may differ a little.
    """
    record = StageFolder(folder).record()
    scorers = [] if record is None else record.options.get("scorers") or []
    return [one.get("name") for one in scorers] == ["frequencies"]
