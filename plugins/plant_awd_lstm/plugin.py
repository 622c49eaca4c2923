"""Backbone `awd-lstm`, and the stage `pretrain-lm` that makes its vocabulary and its weights."""

from __future__ import annotations

from collections.abc import Sequence

from plant_awd_lstm.options import AwdLstmOptions, PretrainLmOptions
from plant_cli.api import Backbone, BackboneSpec, BackboneStart, ComponentError, MachineSection, Result, StageContext, StageSpec, hookimpl

STAGE = "pretrain-lm"


def load(options: AwdLstmOptions, machine: MachineSection) -> Backbone:
    """Read the language model.

    Raises:
        ComponentError: no language model is named.
        ArtefactError: it is missing or damaged.
    """
    from pathlib import Path

    if options.language_model is None:
        raise ComponentError(
            "the backbone 'awd-lstm' has no language model to read with, and so no vocabulary",
            where="model.backbone, option language_model",
            expected="a run with a finished pretrain-lm, or the folder of one",
            todo="run plant pretrain-lm first, or --set model.backbone.language_model=OTHER-RUN/pretrain-lm",
        )
    from plant_awd_lstm.backbone import AwdLstmBackbone

    return AwdLstmBackbone(options, Path(options.language_model))


def run(context: StageContext, options: PretrainLmOptions) -> Result:
    """Make the vocabulary and train the language models."""
    from plant_awd_lstm.stage import pretrain

    return pretrain(context, options)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The network."""
    return [
        BackboneSpec(
            name="awd-lstm",
            summary="PLANT's first backbone: an LSTM language model over the corpus's own words, from `plant pretrain-lm`.",
            options=AwdLstmOptions,
            source="Merity et al. 2018, arXiv:1708.02182; PLANT v1",
            load=load,
            start=BackboneStart(stage=STAGE, option="language_model"),
        )
    ]


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Pretraining of the language model."""
    return [
        StageSpec(
            name=STAGE,
            summary="Train the language models that the backbone awd-lstm reads with, on the texts of train.",
            options=PretrainLmOptions,
            source="Merity et al. 2018, arXiv:1708.02182; Howard and Ruder 2018, arXiv:1801.06146",
            run=run,
            sections=("data", "machine"),
            feeds=("pretrain-attn", "finetune"),
            examples=("plant pretrain-lm", "plant pretrain-lm --weights wt103.safetensors --words words.txt"),
        )
    ]
