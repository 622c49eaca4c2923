"""Computing the metric families that plugins registered, and choosing among their values by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plant_cli.api.errors import PlantError, PluginError, UsageError, near_names
from plant_cli.api.metrics import Metric, MetricInput
from plant_cli.api.options import Options
from plant_cli.api.specs import MetricSpec

_AT = re.compile(r"@(\d+)$")
AnyMetric = TypeVar("AnyMetric", bound=Metric)
Families = Sequence[tuple[MetricSpec, Options]]  # each with its options


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Why a metric could not be computed, and what to do about it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


def compute_families(families: Families, data: MetricInput, wanted: Sequence[str] = ()) -> list[Metric]:
    """The values of all families, at the cut-offs of their options and at those of the wanted names (`P@7`).

    Families that need every score are left out where there is none (`find_missing` names their metrics).

    Args:
        families: specs with options.
        data: predictions beside gold.
        wanted: names of metrics.

    Raises:
        PluginError: a family failed, or gave a value without a name or with one that another family gave; names it.
    """
    asked = [int(found[1]) for found in map(_AT.search, wanted) if found and int(found[1]) > 0]
    values: dict[str, Metric] = {}
    owners: dict[str, str] = {}
    for spec, options in families:
        if spec.needs_all_scores and data.all_scores is None:
            continue
        if "k" in spec.options.model_fields:
            options = options.model_copy(update={"k": sorted({*getattr(options, "k", ()), *asked})})
        try:
            computed = list(spec.compute(data, options))
        except PlantError:
            raise
        except Exception as error:  # whatever a stranger's metric does
            raise PluginError(
                f"the metric '{spec.name}' failed: {type(error).__name__}: {error}",
                where=f"metric '{spec.name}'",
                expected="a list of metric values",
                todo=f"`plant plugins show {spec.name}` says whose it is; PLANT_PLUGINS=-NAME leaves it out",
            ) from error
        for value in computed:
            if not value.name or value.name in values:
                raise _misnamed(value.name, spec.name, owners.get(value.name))
            values[value.name], owners[value.name] = value, spec.name
    return list(values.values())


def _misnamed(name: str, family: str, other: str | None) -> PluginError:
    return PluginError(
        f"two metrics are named '{name}'" if name else "a metric has no name",
        where=f"metric '{family}'" if other in (None, family) else f"metrics '{other}' and '{family}'",
        expected="a name of its own for each value",
        todo=f"`plant plugins show {family}` says whose it is; PLANT_PLUGINS=-NAME leaves it out",
    )


def find_missing(families: Families, data: MetricInput, remedy: str) -> dict[str, Missing]:
    """The metrics, by name, that cannot be computed from the highest-scored labels alone.

    Args:
        families: specs with options.
        data: predictions beside gold.
        remedy: what to do to have the score of every label.
    """
    names = [name for spec, _ in families if data.all_scores is None for name in spec.needs_all_scores]
    return dict.fromkeys(names, Missing(reason="needs the score of every label, and only the highest were kept", remedy=remedy))


def choose(values: Sequence[AnyMetric], wanted: Sequence[str], missing: Mapping[str, Missing]) -> list[AnyMetric]:
    """The values of the wanted names, in that order.

    Args:
        values: what was computed.
        wanted: names of metrics.
        missing: what could not be computed, by name.

    Raises:
        UsageError: there is no metric of that name, or not from these predictions.
    """
    known = {value.name: value for value in values}
    for name in wanted:
        if name not in known:
            if name in missing:
                why = missing[name]
                raise UsageError(f"{name} is not available", where=f"metric {name}: {why.reason}", expected="every score", todo=why.remedy)
            raise UsageError(
                f"there is no metric named '{name}'",
                where=f"metric {name}",
                expected=near_names(name, [*known, *missing]),
                todo="write it as the table does, for example --metric P@5 --metric 'R@10[1-5]'",
            )
    return [known[name] for name in dict.fromkeys(wanted)]
