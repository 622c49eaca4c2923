"""Metrics from counters and top-K lists, and the families of metrics that compute them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from plant_cli.api import promises
from plant_cli.api.errors import DataError, PlantError, PluginError, UsageError, near_names
from plant_cli.api.functions import Guarded
from plant_cli.api.metrics import Metric, MetricInput, MetricValue, WeightedMetric
from plant_cli.api.options import Options
from plant_cli.api.read_only import read_only
from plant_cli.api.specs import MetricSpec

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
DIGITS = 12
ROUNDING = 10.0**-DIGITS
"""Values that are equal on paper differ by less."""


def find_hits(top: Integers, gold: csr_array) -> Booleans:
    """Whether each predicted label is a gold label of its document [N, K] bool; −1 never is.

    Args:
        top: columns of gold [N, K], or −1.
        gold: csr [N, M] of 0/1.
    """
    width = max(gold.shape[1], 1)
    rows, columns = gold.nonzero()
    gold_keys = np.sort(rows.astype(np.int64) * width + columns)
    if gold_keys.size == 0:
        return np.zeros(top.shape, dtype=bool)
    keys = np.arange(len(top), dtype=np.int64)[:, None] * width + top
    nearest = np.minimum(np.searchsorted(gold_keys, keys), gold_keys.size - 1)
    hits: Booleans = (gold_keys[nearest] == keys) & (top >= 0)
    return hits


def divide(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Floats:
    """Elementwise ratio, 0 where the denominator is 0."""
    result: Floats = np.divide(
        numerator,
        denominator,
        out=np.zeros(np.shape(numerator), dtype=np.float64),
        where=denominator != 0,
    )
    return result


def mean_of_documents(name: str, values: Floats) -> MetricValue:
    """A mean over documents. `values`: one a document [N]; NaN marks a document on which the
    metric is undefined.
    """
    defined = ~np.isnan(values)
    contributions = np.column_stack([np.where(defined, values, 0.0), defined.astype(np.float64)])
    return MetricValue(
        name=name, contributions=contributions, combine=_first_over_second, per_document=values
    )


def ratio_of_sums(name: str, numerator: Floats, denominator: Floats) -> MetricValue:
    """Numerators summed over documents, divided by the summed denominators; per document the ratio
    where there is one.

    Args:
        numerator: one a document [N].
        denominator: one a document [N]; 0 where the document says nothing.
    """
    per_document = np.where(denominator > 0, divide(numerator, denominator), np.nan)
    contributions = np.column_stack([numerator, denominator]).astype(np.float64)
    return MetricValue(
        name=name,
        contributions=contributions,
        combine=_first_over_second,
        per_document=per_document,
    )


def _first_over_second(sums: Floats) -> Floats:
    return _divide_or_nan(sums[:, 0], sums[:, 1])


def _divide_or_nan(numerator: Floats, denominator: Floats) -> Floats:
    """Undefined (NaN) in a resample without anything to find."""
    return np.where(denominator == 0, np.nan, divide(numerator, denominator))


def count_assignments(data: MetricInput) -> csr_array:
    """Per document and label: true positives, assigned, gold, side by side as csr [N, 3 M] of
    0/1.
    """
    assigned, hits = data.assigned, find_hits(data.top, data.gold)
    parts = [mark_pairs(data, assigned & hits), mark_pairs(data, assigned), data.gold]
    return csr_array(hstack(parts, format="csr", dtype=np.float64))


def mark_pairs(data: MetricInput, chosen: Booleans) -> csr_array:
    """Documents and columns of gold of the chosen predictions [N, K], as csr [N, M] of 0/1."""
    rows, ranks = np.nonzero(chosen & (data.top >= 0))
    return csr_array(
        (np.ones(rows.size, dtype=np.int64), (rows, data.top[rows, ranks])), shape=data.gold.shape
    )


def score_f1(tp: Floats, assigned: Floats, gold: Floats) -> Floats:
    """F1 from counters of one shape, 0 for what is neither gold nor assigned."""
    return divide(2 * tp, assigned + gold)


def average_present_f1(sums: Floats, counted: Booleans | bool = True) -> Floats:
    """Mean F1 [R] of the labels counted that some document of the (resampled) split has; NaN if
    none.

    Args:
        sums: summed counters of `count_assignments` [R, 3 M].
        counted: which labels count [M], or all.
    """
    tp, assigned, gold = np.split(sums, 3, axis=1)
    present = (gold > 0) & counted
    return _divide_or_nan((score_f1(tp, assigned, gold) * present).sum(axis=1), present.sum(axis=1))


def not_a_number(document: int, documents: int, each: str) -> DataError:
    """For a score that is NaN."""
    return DataError(
        "a score is not a number",
        where=f"document {document} (counted from 0) of {documents}",
        expected=f"a finite score for every {each}",
        todo="look for NaN in the training loss (history.jsonl); `--precision fp32` and a lower "
        "rate are the usual remedies",
    )


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """Every score as an array or a memory-mapped file (`plant_cli.api.AllScores`)."""

    values: npt.NDArray[np.float32]  # logits [D, L] of more documents than are looked at, perhaps
    rows: Integers  # which of them are the N documents [N]
    memory: int  # bytes that a metric may hold at a time

    @property
    def shape(self) -> tuple[int, int]:
        """See `AllScores.shape`."""
        return len(self.rows), self.values.shape[1]

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """See `AllScores.read`; a score that is not a number is a `DataError`."""
        block: npt.NDArray[np.float32] = self.values[self.rows[documents], labels]
        if np.isnan(block).any():
            raise not_a_number(
                int(self.rows[documents][np.isnan(block).any(axis=1)][0]), len(self.values), "label"
            )
        return block


def round_figures(value: float | None, digits: int) -> float | None:
    """A number to so many significant digits."""
    return None if value is None else float(f"{value:.{digits}g}")


def compute_value(metric: Metric) -> float:
    """The metric on the documents as they are, each with weight 1; NaN where it is undefined."""
    if isinstance(metric, WeightedMetric):
        return float(metric.compute(np.ones((1, metric.documents)))[0])
    sums = np.asarray(metric.contributions.sum(axis=0), dtype=np.float64).reshape(1, -1)
    combine: Callable[[Floats], Floats] = metric.combine
    return float(combine(read_only(sums))[0])


_AT = re.compile(r"@(\d+)$")
AnyMetric = TypeVar("AnyMetric", bound=Metric)
Families = Sequence[tuple[MetricSpec, Options]]  # each with its options
NOT_KEPT = "needs the score of every label, and only the highest were kept"


def compute_families(
    families: Families,
    data: MetricInput,
    wanted: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> list[Metric]:
    """The values of all families, at the cut-offs of their options and at those of the wanted names
    (`P@7`).

    Families that need every score are left out where there is none (`find_missing` names their
    metrics). One that fails is passed over with a warning, if there is somebody to `warn` and all
    wanted names of metrics are found without it; else it is a `PluginError`.
    """
    asked = [int(match[1]) for match in map(_AT.search, wanted) if match and int(match[1]) > 0]
    values: dict[str, Metric] = {}
    owners: dict[str, str] = {}
    failed: list[tuple[MetricSpec, PluginError]] = []
    for spec, options in families:
        if spec.needs_all_scores and data.all_scores is None:
            continue
        if "k" in spec.options.model_fields:
            options = options.model_copy(update={"k": sorted({*getattr(options, "k", ()), *asked})})
        try:
            computed = _compute(spec, options, data, tries=warn is not None)
            named = _name_values(spec, computed, owners)
        except PluginError as error:
            failed.append((spec, error))
            continue
        values |= named
        owners |= dict.fromkeys(named, spec.name)
    absent = {*wanted} - {*values, *find_missing(families, data, "")}
    for spec, fault in failed:
        if warn is None or any("[" not in name for name in absent):
            raise fault
        warn(f"{fault.what}: it is passed over ({_leave_out(spec)})")
    return list(values.values())


def _compute(spec: MetricSpec, options: Options, data: MetricInput, *, tries: bool) -> list[Metric]:
    """The values of a family, whose functions are checked at each call, and tried once if asked
    to; `PluginError` if it fails.
    """
    who = f"metric '{spec.name}'"
    try:
        computed: list[Metric] = [
            replace(value, compute=Guarded(value.compute, who, "compute", promises.VALUES))
            if isinstance(value, WeightedMetric)
            else replace(value, combine=Guarded(value.combine, who, "combine", promises.VALUES))
            for value in spec.compute(data, options)
        ]
        for value in computed:
            if tries and isinstance(value, MetricValue):
                compute_value(value)
    except (PlantError, MemoryError):
        raise
    except Exception as error:  # whatever a stranger's metric does
        raise PluginError(
            f"the {who} failed: {type(error).__name__}: {error}",
            where=who,
            expected="a list of metric values",
            todo=_leave_out(spec),
        ) from error
    return computed


def _name_values(
    spec: MetricSpec, computed: Iterable[Metric], owners: Mapping[str, str]
) -> dict[str, Metric]:
    """The values of a family by their names; `PluginError` for a name that is taken. `owners`:
    of the names so far.
    """
    named: dict[str, Metric] = {}
    for value in computed:
        if not value.name or value.name in named or value.name in owners:
            other = owners.get(value.name, spec.name)
            raise PluginError(
                f"two metrics are named '{value.name}'" if value.name else "a metric has no name",
                where=f"metric '{spec.name}'"
                if other == spec.name
                else f"metrics '{other}' and '{spec.name}'",
                expected="another name for each value",
                todo=_leave_out(spec),
            )
        named[value.name] = value
    return named


def _leave_out(spec: MetricSpec) -> str:
    return f"PLANT_PLUGINS=-{spec.plugin or 'NAME'} leaves its plugin out"


def find_missing(families: Families, data: MetricInput, remedy: str) -> dict[str, str]:
    """The metrics that cannot be computed, since only the highest scores were kept, and for
    each what to do to have every score.
    """
    return {
        name: remedy
        for spec, _ in families
        if data.all_scores is None
        for name in spec.needs_all_scores
    }


def choose(
    values: Sequence[AnyMetric], wanted: Sequence[str], missing: Mapping[str, str]
) -> list[AnyMetric]:
    """The values of the wanted names, in that order; for `missing` see `find_missing`."""
    known = {value.name: value for value in values}
    for name in wanted:
        if name in missing and name not in known:
            raise UsageError(
                f"{name} is not available",
                where=f"metric {name}: {NOT_KEPT}",
                expected="every score",
                todo=missing[name],
            )
        if name not in known:
            what, todo = (
                f"there is no metric named '{name}'",
                "write it as the table does, for example --metric P@5 --metric 'R@10[1-5]'",
            )
            raise UsageError(
                what,
                where=f"metric {name}",
                expected=near_names(name, [*known, *missing]),
                todo=todo,
            )
    return [known[name] for name in dict.fromkeys(wanted)]
