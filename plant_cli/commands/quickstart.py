"""`plant quickstart`: everything on a small made-up corpus, against scorers alone and against
uniform attention, with intervals.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from plant_cli.api import BackboneSpec, Result, StageContext, UsageError
from plant_cli.commands.command_options import QuickstartOptions
from plant_cli.commands.run import report_recipe

RECIPE = "quickstart"
ENCODER, SMALL_ENCODER = "minilm", "tiny"


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
    return replace(
        done,
        next_step="on your own data: plant train data.parquet --run my-run   (`plant data check "
        "data.parquet` examines it first)",
    )
