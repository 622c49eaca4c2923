"""Computing the metric families that plugins registered, and choosing among the values by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plant_cli.api.errors import PlantError, PluginError, UsageError, near_names
from plant_cli.api.metrics import MetricInput, MetricValue
from plant_cli.api.specs import MetricSpec

_AT = re.compile(r"@(\d+)$")
REASON = "needs the score of every label; predictions hold the highest-scored ones only"
NEED_ALL_SCORES = {"micro-AUC": REASON, "macro-AUC": REASON}


def compute_families(specs: Sequence[MetricSpec], data: MetricInput, wanted: Sequence[str] = ()) -> list[MetricValue]:
    """The values of all families, at their own cut-offs and at those of the wanted names (`P@7`).

    Raises:
        PluginError: a family failed; names it.
    """
    asked = [int(found[1]) for found in map(_AT.search, wanted) if found and int(found[1]) > 0]
    values: list[MetricValue] = []
    for spec in specs:
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


def choose(values: Sequence[MetricValue], wanted: Sequence[str]) -> list[MetricValue]:
    """The values of the wanted names, in that order.

    Raises:
        UsageError: there is no metric of that name, or not from these predictions.
    """
    known = {value.name: value for value in values}
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"there is no metric named '{name}'" if name not in NEED_ALL_SCORES else f"{name} is not available",
                where=f"metric {name}",
                expected=NEED_ALL_SCORES.get(name) or near_names(name, known),
                todo="write it as the table does, for example --metric P@5 --metric 'R@10[1-5]'",
            )
    return [known[name] for name in dict.fromkeys(wanted)]
