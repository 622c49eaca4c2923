"""`metrics.json` of a stage `eval`, as readers need it; `plant_cli.evaluation.report` writes it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from plant_cli.api.corpus import SplitName
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.artefacts.records import Record, read_record

METRICS = "metrics.json"


class Bound(Record):
    """A metric, a fraction, with its interval; None where it is undefined or the documents were not resampled."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class ReliabilityBin(Record):
    """Predicted pairs within one range of probability: how many, their mean probability, the share that is right with its interval."""

    pairs: int
    probability: float
    right: float
    low: float | None = None
    high: float | None = None


class CalibrationRecord(Record):
    """How far probabilities can be believed: the expected calibration error with its interval, and the bins behind it."""

    ECE: float
    low: float | None = None
    high: float | None = None
    bins: list[ReliabilityBin]


class MetricsRecord(Record):
    """The file metrics.json.

    Args:
        convention: whose way of scoring.
        assumptions: what it means, in clauses.
        system: what was evaluated.
        split: on which documents.
        documents: how many of them count.
        documents_without_gold: how many documents of the split have no gold label.
        gold: hash of document ids and gold labels.
        threshold: from which score a label is assigned, in words.
        leakage: whether validation and test documents were seen in training.
        labels_averaged: how many labels each average over labels averages.
        labels_never: labels of train, and how many of them were never assigned or listed.
        seed: of the resamples.
        level: coverage of the intervals.
        metrics: by name.
        bins: by range of training frequency: counts, and metrics of the labels in it.
        parts: metrics of each part of the model alone.
        calibration: None for scores that are no probabilities.
        calibration_network: of the network alone, where its predictions were kept.
    """

    convention: str
    assumptions: tuple[str, ...] = ()
    system: str
    split: SplitName
    documents: int
    documents_without_gold: int = 0
    gold: str
    threshold: str
    leakage: bool = False
    labels_averaged: dict[str, int] = Field(default_factory=dict)
    labels_never: dict[str, int] = Field(default_factory=dict)
    seed: int
    level: float
    metrics: dict[str, Bound]
    bins: dict[str, dict[str, int | Bound]] = Field(default_factory=dict)
    parts: dict[str, dict[str, Bound]] = Field(default_factory=dict)
    calibration: CalibrationRecord | None = None
    calibration_network: CalibrationRecord | None = None

    def all_metrics(self) -> dict[str, Bound]:
        """The metrics, and those of the bins as `R@10[1-5]`."""
        inside = {f"{name}[{b}]": bound for b, content in self.bins.items() for name, bound in content.items() if isinstance(bound, Bound)}
        return {**self.metrics, **inside}


def read_metrics(folder: Path) -> MetricsRecord:
    """What an evaluation found.

    Args:
        folder: of the stage `eval`.

    Raises:
        ArtefactError: the file is missing, damaged, or not what was written.
    """
    require_recorded(folder, METRICS)
    return read_record(folder / METRICS, MetricsRecord, f"the metrics of '{folder.name}'")
