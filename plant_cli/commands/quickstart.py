"""`plant quickstart`: on a small made-up corpus, what planted attention is worth alone, and what
it adds to the scorers, with intervals.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from plant_cli.api import (
    BackboneSpec,
    Column,
    Request,
    Result,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.api.context import join_tag
from plant_cli.commands.command_options import QuickstartOptions
from plant_cli.runs.ablation import make_tag
from plant_cli.runs.recipe_runs import report_recipe

RECIPE = "quickstart"
ENCODER, SMALL_ENCODER = "minilm", "tiny"
WITH_NETWORK = "scorers and planted attention"
CONTRASTS = (  # the second of two systems is what the first is measured against
    ("planted attention alone", "uniform attention alone"),  # changes of the recipe
    (WITH_NETWORK, "scorers alone"),
)
CONTRAST_METRICS = ("P@1", "P@5", "R@10", "MAP", "micro-F1")


def run(context: StageContext, options: QuickstartOptions) -> Result:
    """Run the recipe `quickstart` with the backbone that is installed."""
    if context.request.recipe is not None:
        raise UsageError(
            "quickstart always runs its own recipe",
            where=f"plant quickstart, --recipe {context.request.recipe}",
            expected="no other recipe",
            todo=f"`plant run {shlex.quote(context.request.recipe)}` runs that one",
        )
    backbone = options.backbone
    if backbone is None:  # the pretrained encoder if its weights are installed
        encoders = [spec for spec in context.components(BackboneSpec) if spec.name == ENCODER]
        backbone = (
            ENCODER
            if any(spec.is_installed is None or spec.is_installed() for spec in encoders)
            else SMALL_ENCODER
        )
    flags = {**context.request.flags, "model": {"backbone": backbone}}
    flags.pop("quickstart", None)
    request = replace(context.request, recipe=RECIPE, flags=flags)
    done = report_recipe(context.runner, request)
    worth = _compare(context, replace(request, recipe=None))
    return replace(
        done,
        tables=[worth, done.tables[-1]],
        next_step="on your own data: plant train data.parquet --run my-run   (`plant data check "
        "data.parquet` examines it first)",
    )


def _compare(context: StageContext, request: Request) -> Table:
    """The systems of each contrast, with the differences of the two."""
    rows: list[list[str]] = []
    for number, names in enumerate(CONTRASTS):
        compared = {
            "systems": [
                "finetune" if name == WITH_NETWORK else join_tag("finetune", make_tag(name))
                for name in names
            ],
            "names": list(names),
            "metric": list(CONTRAST_METRICS),
        }
        flags = {**request.flags, "significance": compared}
        found = context.runner.run_stage(
            replace(request, flags=flags), "significance", f"contrast-{number + 1}"
        )
        metrics = {row["metric"]: row for row in found.data["comparisons"]}
        first, second = names
        rows.append([first, *(metrics[name]["text"] for name in CONTRAST_METRICS)])
        rows.append(
            [second, *(f"{100 * metrics[name]['value_b']:.1f}" for name in CONTRAST_METRICS)]
        )
    return Table(
        title="What planted attention is worth (test)",
        columns=[Column(name="system"), *(Column(name=name) for name in CONTRAST_METRICS)],
        rows=rows,
        notes=[
            "in points; in brackets the difference from the next line, with its 95% interval; "
            "▲ better, ▼ worse: p < 0.05 after Holm over the metrics shown"
        ],
    )
