"""Options that `eval` and `significance` share: what is measured, on which documents, and how."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator

from plant_cli.api.corpus import SplitName
from plant_cli.api.options import Options, option
from plant_cli.base.sizes import SIZE_PATTERN
from plant_cli.evaluation.conventions import HELP, ConventionName

FEWEST = 20  # resamples
DEFAULT_METRICS = (
    *("P@1", "P@5", "nDCG@5", "PSP@5", "R@10", "R@50", "MAP", "micro-F1", "macro-F1", "R@10[1-5]", "R@50[1-5]"),
    *("micro-AUC", "macro-AUC"),  # where every system has every score
)


def refuse_too_few(resamples: int) -> int:
    """The number of resamples as it is; `ValueError` for one that is neither 0 nor enough for an interval."""
    if 0 < resamples < FEWEST:
        raise ValueError(f"0, or {FEWEST} and more: of fewer resamples there is no interval to speak of")
    return resamples


class ScoringOptions(Options):
    """Base of the options of every stage that computes metrics."""

    metric: list[str] = option([], "Only this metric, such as P@5 or 'R@10[1-5]' (repeatable).", short="-m")
    metric_options: dict[str, dict[str, Any]] = option(
        {},
        "An option of a family of metrics, such as propensity.a=0.5 (repeatable); `plant plugins show propensity` lists a family's.",
        keys="metric",
    )
    convention: ConventionName = option("plant", HELP)
    bootstrap: int = option(1000, f"Resamples of the documents behind the intervals, {FEWEST} or more; 0: no intervals.", ge=0)
    level: float = option(0.95, "Coverage of the intervals.", gt=0, lt=1)
    split: SplitName = option("test", "The split to measure on.")
    hierarchy: str | None = option(
        None,
        "A table of labels and their parents (columns label and parent), for hierarchical metrics and F1 by level (default: the parents "
        "that the vocabulary of the corpus gives).",
        path=True,
    )
    label_order: str | None = option(
        None, "For predictions that number their labels (XMLRepository, npz): a file with a label a line, in that order, from 0.", path=True
    )
    remove_pairs: str | None = option(
        None,
        "Pairs `document label`, numbers from 0, to take out of the predictions, such as filter_labels_test.txt of LF- data sets.",
        path=True,
    )
    memory: str = option("1GB", "Memory for the scores that AUC reads at a time, such as 500MB.", pattern=SIZE_PATTERN)

    @field_validator("metric_options", mode="before")
    @classmethod
    def _null_is_not_given(cls, value: Any) -> Any:
        """A tagged section of a recipe inherits options; null takes one back."""
        families = value.items() if isinstance(value, dict) else ()
        kept = {family: given for family, given in families if given is not None}
        cleaned = {f: {k: v for k, v in g.items() if v is not None} if isinstance(g, dict) else g for f, g in kept.items()}
        return cleaned if isinstance(value, dict) else value

    @field_validator("bootstrap")
    @classmethod
    def _refuse_too_few(cls, value: int) -> int:
        return refuse_too_few(value)
