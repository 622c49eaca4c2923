"""What a command needs before it begins, looked up before its module is imported: torch takes
seconds.
"""

from __future__ import annotations

from plant_cli.api import ArtefactError, Options, StageContext
from plant_cli.commands.command_options import EvalOptions, PredictOptions
from plant_cli.training.training_options import FinetuneOptions


def require_planted(context: StageContext, options: FinetuneOptions) -> None:
    """For `finetune`: the planted attention, which needs relevance first."""
    context.corpus()
    if not options.network:
        return
    try:
        planting = options.starts_planted
        if options.needs_relevance or (
            planting and context.find_input("pretrain-attn", options.planted) is None
        ):
            context.input("mig", options.relevance)
        if planting:
            context.input("pretrain-attn", options.planted)
    except ArtefactError as error:
        error.todo += "; `plant finetune --no-network` needs no earlier stage"
        raise


def require_trained(context: StageContext, options: PredictOptions) -> None:
    """For `predict`; the members of an average are looked up one by one."""
    if options.average:
        context.corpus()
    else:
        require_model(context, options)


def require_corpus(context: StageContext, options: EvalOptions) -> None:
    """For `eval`, which makes missing predictions itself."""
    context.corpus()


def require_model(context: StageContext, options: Options) -> None:
    """For `suggest`, `explain` and `review export`."""
    context.corpus()
    context.input("finetune", context.tag)
