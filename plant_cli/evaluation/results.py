"""The record of an evaluation, its report, and gates on it."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from plant_cli.api import GateFailed, Options, SplitName, UsageError, near_names, option
from plant_cli.api.options import SIZE_PATTERN
from plant_cli.data.records import Record, read_record, require_recorded
from plant_cli.evaluation.conventions import CONVENTION_HELP, ConventionName

METRICS, PER_LABEL_FILE, PER_DOCUMENT_FILE = "metrics.json", "per_label.tsv", "per_document.parquet"


class Bound(Record):
    """A metric, a fraction, with its interval; None where it is undefined or the documents were
    not resampled.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float, low: float = nan, high: float = nan) -> Bound:
        """From numbers that are NaN where they are undefined."""
        value_or_none, *ends = (None if isnan(number) else number for number in (value, low, high))
        return cls(value=value_or_none, low=ends[0], high=ends[1])


class ReliabilityBin(Record):
    """Predicted pairs within one range of probability: how many, their mean probability, the
    share that is right with its interval.
    """

    pairs: int
    probability: float
    right: float
    low: float | None = None
    high: float | None = None


class CalibrationRecord(Record):
    """How far probabilities can be believed: the expected calibration error with its interval,
    and the bins behind it.
    """

    ECE: float
    low: float | None = None
    high: float | None = None
    bins: list[ReliabilityBin]


class MarkFigures(Record):
    """Of some words of texts: means over pairs of document and label, with intervals over
    documents.
    """

    without: Bound = (
        Bound()
    )  # log-odds that the label loses without the words: the more, the more the score rests on them
    alone: Bound = (
        Bound()
    )  # log-odds that it loses where they are the whole text: the less, the more they are enough
    precision: Bound = (
        Bound()
    )  # share of the words that people marked, too; None: nobody marked any
    recall: Bound = Bound()  # share of people's words that are among them
    f1: Bound = Bound()


class MarkedWords(Record):
    """How good the words are that explain gold labels."""

    documents: int  # that have such a label
    pairs: int  # of document and label
    figures: dict[str, MarkFigures]  # by how words were chosen


class MetricsRecord(Record):
    """The file metrics.json."""

    convention: str
    assumptions: tuple[str, ...] = ()  # what the convention means, in clauses
    system: str
    split: SplitName
    documents: int  # how many of the split count
    documents_without_gold: int = 0  # in the split
    gold: str  # hash of document ids and gold labels
    threshold: str  # from which score a label is assigned, in words
    leakage: bool = False  # whether validation and test documents were seen in training
    labels_averaged: dict[str, int] = Field(
        default_factory=dict
    )  # how many labels each average over labels averages
    labels_never: dict[str, int] = Field(
        default_factory=dict
    )  # labels of train, and how many of them were never assigned or listed
    seed: int  # of the resamples
    level: float  # coverage of the intervals
    metrics: dict[str, Bound]
    bins: dict[str, dict[str, int | Bound]] = Field(
        default_factory=dict
    )  # by training frequency: counts, and metrics of the labels in it
    parts: dict[str, dict[str, Bound]] = Field(
        default_factory=dict
    )  # of each part of the model alone
    calibration: CalibrationRecord | None = None  # None for scores that are no probabilities
    calibration_network: CalibrationRecord | None = (
        None  # of the network alone, where its predictions were kept
    )
    marked_words: MarkedWords | None = None  # where the corpus has gold spans

    def all_metrics(self) -> dict[str, Bound]:
        """The metrics, and those of the bins as `R@10[1-5]`."""
        inside = {
            f"{name}[{b}]": bound
            for b, content in self.bins.items()
            for name, bound in content.items()
            if isinstance(bound, Bound)
        }
        return {**self.metrics, **inside}


def read_metrics(folder: Path) -> MetricsRecord:
    """What an evaluation found."""
    require_recorded(folder, METRICS)
    return read_record(folder / METRICS, MetricsRecord, f"the metrics of '{folder.name}'")


FEWEST_RESAMPLES = 20  # resamples
DEFAULT_METRICS = (
    *(
        "P@1",
        "P@5",
        "nDCG@5",
        "PSP@5",
        "R@10",
        "R@50",
        "MAP",
        "micro-F1",
        "macro-F1",
        "R@10[1-5]",
        "R@50[1-5]",
    ),
    *("micro-AUC", "macro-AUC"),  # where every system has every score
)


def refuse_too_few(resamples: int) -> int:
    """The number of resamples as it is; `ValueError` for one that is neither 0 nor enough for
    an interval.
    """
    if 0 < resamples < FEWEST_RESAMPLES:
        raise ValueError(
            f"0, or {FEWEST_RESAMPLES} and more: of fewer resamples there is no interval to speak "
            "of"
        )
    return resamples


def split_at_commas(given: Any) -> Any:
    """Names, of which several may stand together with commas between them."""
    if not isinstance(given, list):
        return given
    parts = [part.strip() for item in given for part in str(item).split(",")]
    return [part for part in parts if part]


MetricNames = Annotated[list[str], BeforeValidator(split_at_commas)]


class ScoringOptions(Options):
    """Base of the options of every stage that computes metrics."""

    metric: MetricNames = option(
        [],
        "Only this metric, such as P@5 or 'R@10[1-5]' (repeatable, or with commas).",
        level="everyday",
        short="-m",
    )
    metric_options: dict[str, dict[str, Any]] = option(
        {}, "An option of a metric, such as propensity.a=0.5 (repeatable).", keys="metric"
    )
    convention: ConventionName = option("plant", CONVENTION_HELP)
    bootstrap: int = option(
        1000, "Resamples for the intervals, 20 or more; 0: no intervals.", level="everyday", ge=0
    )
    level: float = option(0.95, "Coverage of the intervals.", gt=0, lt=1)
    split: SplitName = option("test", "The split to measure on.", level="everyday")
    hierarchy: str | None = option(
        None,
        "A table of labels and parents: label, parent (default: those of the vocabulary).",
        path=True,
    )
    label_order: str | None = option(
        None,
        "For predictions that number their labels: a file with a label a line, from 0.",
        path=True,
    )
    remove_pairs: str | None = option(
        None, "Pairs to take out: `document label` from 0, as in filter_labels_test.txt.", path=True
    )
    memory: str = option(
        "1GB",
        "Memory for the scores that AUC reads at a time, such as 500MB.",
        pattern=SIZE_PATTERN,
    )

    @field_validator("metric_options", mode="before")
    @classmethod
    def _null_is_not_given(cls, value: Any) -> Any:
        """A tagged section of a recipe inherits options; null takes one back."""
        families = value.items() if isinstance(value, dict) else ()
        kept = {family: options for family, options in families if options is not None}
        cleaned = {
            f: {k: v for k, v in g.items() if v is not None} if isinstance(g, dict) else g
            for f, g in kept.items()
        }
        return cleaned if isinstance(value, dict) else value

    _are_enough = field_validator("bootstrap")(refuse_too_few)


_FORM = re.compile(
    r"\s*(?P<metric>(?:[^<>=\[]|\[.*\])+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>\d*\.?\d+)\s*"
)
_SIGNS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True)
class Gate:
    """A metric, a comparison and a bound (a fraction)."""

    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.bound:g}"


def parse_gates(texts: Sequence[str]) -> list[Gate]:
    """Read requirements; `UsageError` for one that cannot be read."""
    gates = []
    for text in texts:
        parts = _FORM.fullmatch(text)
        if parts is None or float(parts["bound"]) > 1:
            expected, todo = (
                "a metric, one of >= <= > <, and a fraction from 0 to 1",
                "write it like --require 'P@5>=0.6'",
            )
            raise UsageError(
                f"the requirement '{text}' cannot be read",
                where=f"--require '{text}'",
                expected=expected,
                todo=todo,
            )
        gates.append(Gate(parts["metric"], parts["sign"], float(parts["bound"])))
    return gates


def require_named(
    gates: Sequence[Gate], known: Collection[str], todo: str = "choose one of these"
) -> None:
    """`UsageError` for a requirement on what is not measured."""
    for gate in gates:
        if gate.metric not in known:
            what, expected = (
                f"nothing here is named '{gate.metric}'",
                near_names(gate.metric, known),
            )
            raise UsageError(what, where=f"--require '{gate}'", expected=expected, todo=todo)


def check_gates(gates: Sequence[Gate], values: Mapping[str, float | None], where: str) -> None:
    """Check every requirement; an undefined metric (None) meets none."""
    require_named(gates, values, todo="choose one of these; the results are written")
    reached = {g: values[g.metric] for g in gates}
    failed = [
        g for g, value in reached.items() if value is None or not _SIGNS[g.sign](value, g.bound)
    ]
    if failed:
        raise GateFailed(
            "not met: "
            + ", ".join(
                f"{g} (it is {'undefined' if (v := reached[g]) is None else f'{v:.4f}'})"
                for g in failed
            ),
            where=where,
            expected=", ".join(map(str, failed)),
            todo="the results are written; look at them before lowering the bar",
        )
