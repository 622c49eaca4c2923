"""Computing the metric families that plugins registered, and choosing among the values by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from plant_cli.api.errors import PlantError, PluginError, UsageError, near_names
from plant_cli.api.metrics import Metric, MetricInput
from plant_cli.api.specs import MetricSpec

_AT = re.compile(r"@(\d+)$")
AnyMetric = TypeVar("AnyMetric", bound=Metric)


def compute_families(specs: Sequence[MetricSpec], data: MetricInput, wanted: Sequence[str] = ()) -> list[Metric]:
    """The values of all families, at their own cut-offs and at those of the wanted names (`P@7`).

    Families that need every score are left out where there is none (`find_missing` names their metrics).

    Raises:
        PluginError: a family failed; names it.
    """
    asked = [int(found[1]) for found in map(_AT.search, wanted) if found and int(found[1]) > 0]
    values: list[Metric] = []
    for spec in specs:
        if spec.needs_all_scores and data.all_scores is None:
            continue
        options = spec.options()
        if "k" in spec.options.model_fields:
            options = spec.options.model_validate({"k": sorted({*getattr(options, "k", ()), *asked})})
        try:
            values += spec.compute(data, options)
        except PlantError:
            raise
        except Exception as error:  # whatever a stranger's metric does
            raise PluginError(
                f"the metric '{spec.name}' failed: {type(error).__name__}: {error}",
                where=f"metric '{spec.name}'",
                expected="a list of metric values",
                todo=f"`plant plugins show {spec.name}` says whose it is; PLANT_PLUGINS=… leaves it out",
            ) from error
    return values


def find_missing(specs: Sequence[MetricSpec], data: MetricInput, remedy: str) -> dict[str, str]:
    """The metrics that cannot be computed from the highest-scored labels alone, each with the reason and what to do about it."""
    names = [name for spec in specs if data.all_scores is None for name in spec.needs_all_scores]
    return dict.fromkeys(names, f"needs the score of every label, and only the highest were kept; {remedy}")


def choose(values: Sequence[AnyMetric], wanted: Sequence[str], missing: Mapping[str, str]) -> list[AnyMetric]:
    """The values of the wanted names, in that order.

    Args:
        values: what was computed.
        wanted: names.
        missing: names that could not be computed, with the reason.

    Raises:
        UsageError: there is no metric of that name, or not from these predictions.
    """
    known = {value.name: value for value in values}
    for name in wanted:
        if name not in known:
            if name in missing:
                reason, _, remedy = missing[name].partition("; ")
                raise UsageError(f"{name} is not available", where=f"metric {name}: {reason}", expected="every score", todo=remedy)
            raise UsageError(
                f"there is no metric named '{name}'",
                where=f"metric {name}",
                expected=near_names(name, [*known, *missing]),
                todo="write it as the table does, for example --metric P@5 --metric 'R@10[1-5]'",
            )
    return [known[name] for name in dict.fromkeys(wanted)]
