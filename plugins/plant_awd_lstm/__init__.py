"""The first version's backbone `awd-lstm`, and the stage `pretrain-lm` that makes its
vocabulary and its weights.

`language_model` is the network: an LSTM with dropped weights, its vocabulary and the streams of
tokens that it is trained on. `pretraining` trains it with checkpoints, `language_model_files` reads
and writes weights, also those that others published, and `lstm_backbone` reads documents with it,
window by window.

They need torch, and of `plant_network` devices (`hardware`) and trainable layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import BackboneSpec, BackboneStart, Options, StageSpec, hookimpl, option

Direction = Literal["forward", "backward"]


class DropoutOptions(Options):
    """The five dropouts of AWD-LSTM, each a share between 0 and 1."""

    embedding_dropout: float = option(
        0.02, "Share of words whose embedding is zeroed in a whole window.", ge=0, lt=1
    )
    input_dropout: float = option(
        0.25,
        "Share of the embedding's values zeroed, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    hidden_dropout: float = option(
        0.15,
        "Share of values zeroed between the layers, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    output_dropout: float = option(
        0.1,
        "Share of the last layer's values zeroed, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    weight_dropout: float = option(
        0.2, "Share of the recurrent weights zeroed in a whole window (weight drop).", ge=0, lt=1
    )


class AwdLstmOptions(DropoutOptions):
    """Options of `awd-lstm`."""

    language_model: str | None = option(
        None,
        "Folder of a finished pretrain-lm, of another run too (default: that of the run).",
        path=True,
    )
    direction: Direction = option(
        "forward", "Which of the two language models reads: from the first word or from the last."
    )
    window: int = option(
        72,
        "Tokens read at a time, with the state of the window before (backpropagation through "
        "time).",
        ge=2,
    )
    max_tokens: int | None = option(
        None,
        "Tokens kept of a document; what lies beyond is counted and reported (default: all).",
        ge=1,
    )
    embedding_dropout: float = option(
        0.005, "Share of words whose embedding is zeroed in a whole window.", ge=0, lt=1
    )
    input_dropout: float = option(
        0.04,
        "Share of the embedding's values zeroed, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    hidden_dropout: float = option(
        0.03,
        "Share of values zeroed between the layers, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    output_dropout: float = option(
        0.04,
        "Share of the hidden states' values zeroed, the same at every token of a window.",
        ge=0,
        lt=1,
    )
    weight_dropout: float = option(
        0.05, "Share of the recurrent weights zeroed in a whole window (weight drop).", ge=0, lt=1
    )


class PretrainLmOptions(DropoutOptions):
    """Options of `pretrain-lm`."""

    directions: Literal["both", "forward", "backward"] = option(
        "both", "Language models to train: forward and backward.", level="everyday"
    )
    embedding: int = option(
        400,
        "Size of the word embeddings, and of the hidden states of the last layer (tied weights).",
        ge=1,
    )
    hidden: int = option(1152, "Hidden size of the layers before the last.", ge=1)
    layers: int = option(3, "LSTM layers.", ge=1)
    min_count: int = option(
        3, "Times that a word must occur in train to have an embedding of its own.", ge=1
    )
    max_words: int = option(
        60_000, "Words with an embedding of their own, the most frequent ones.", ge=2
    )
    epochs: int = option(
        10,
        "Passes over train at most; 0: keep the random or imported weights.",
        level="everyday",
        ge=0,
    )
    patience: int = option(
        2, "Epochs without a lower validation perplexity before training stops.", ge=1
    )
    batch: int = option(64, "Streams of text that are read side by side.", ge=1)
    window: int = option(
        72, "Tokens of each stream in one optimiser step; the state is carried to the next.", ge=2
    )
    rate: float = option(
        4e-3,
        "Peak learning rate of the embedding; the layers' are lower by the factor below.",
        gt=0,
    )
    rate_factor: float | None = option(
        None,
        "How many times more slowly each lower layer learns. Default: 2.6 if imported, else 1.",
        ge=1,
    )
    frozen_epochs: int | None = option(
        None, "Epochs of the embedding alone. Default: 1 with imported weights, 0 without.", ge=0
    )
    weight_decay: float = option(0.01, "AdamW's weight decay.", ge=0)
    clip: float = option(0.4, "Largest norm of a gradient.", gt=0)
    activation_penalty: float = option(
        2.0, "Weight of the mean square of the last layer's output (AR).", ge=0
    )
    change_penalty: float = option(
        1.0, "Weight of the mean square of its change from token to token (TAR).", ge=0
    )
    weights: str | None = option(
        None,
        "Published weights to start the forward model from: safetensors, or a torch file.",
        path=True,
    )
    weights_backward: str | None = option(
        None, "Published weights to start the backward model from.", path=True
    )
    words: str | None = option(
        None,
        "The words of the published weights in order of rows: a JSON list, or one a line.",
        path=True,
    )
    checkpoint_minutes: float = option(10.0, "Minutes between checkpoints within an epoch.", gt=0)


STAGE = "pretrain-lm"


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The network."""
    return [
        BackboneSpec(
            name="awd-lstm",
            summary="PLANT's first backbone: an LSTM language model over the corpus's own words, "
            "from `plant pretrain-lm`.",
            options=AwdLstmOptions,
            source="Merity et al. 2018, arXiv:1708.02182; PLANT v1",
            load="plant_awd_lstm.lstm_backbone:load",
            start=BackboneStart(stage=STAGE, option="language_model"),
        )
    ]


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Pretraining of the language model."""
    return [
        StageSpec(
            name=STAGE,
            summary="Train the language models of the backbone awd-lstm (on the texts of train).",
            options=PretrainLmOptions,
            source="Merity et al. 2018, arXiv:1708.02182; Howard and Ruder 2018, arXiv:1801.06146",
            run="plant_awd_lstm.pretraining:pretrain",
            sections=("data", "machine"),
            feeds=("pretrain-attn", "finetune"),
            group="Train by hand",
            examples=(
                "plant pretrain-lm",
                "plant pretrain-lm --weights wt103.safetensors --words words.txt",
            ),
        )
    ]
