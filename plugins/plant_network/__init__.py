"""Networks: stage 1 (`plant pretrain-attn`), stage 2 of `plant finetune`, reading, and `plant
plan`.

A network is a backbone and a decoder, which other plugins bring; `assembly` joins, saves and loads
them. `stage1` plants relevance into attention, `stage2` trains labels; both set up their
`materials` and use the one `loop` with its `optimiser`, `checkpointing` and `strategies` (several
processes, `group`). `reading` and `state_cache` give hidden states, `candidates` scores with a
decoder, `network_scores` opens a trained network for `suggest` and its like. `planning` says what a
stage will take. `backbone_checks`, `decoder_checks` and `loss_checks` are the conformance checks of
parts of networks, which `plant_cli.testing` runs.

It needs torch, transformers, tokenizers, accelerate and peft. The core asks it through
`NetworkSpec`. It imports no other plugin. Backbones, decoders and losses may use its `compute`,
`hardware`, `ranked_lists`, `recomputation`, `replays` and `trainable_layers`. Of the core it uses
all rooms below the commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import (
    Choice,
    NetworkSpec,
    Options,
    StageContext,
    StageSpec,
    choice,
    hookimpl,
    option,
)
from plant_cli.api.options import everyday
from plant_cli.training.training_options import TrainingOptions

LISTS, FEWEST, MOST = 30, 2, 10
"""Lists that stage 1 ranks for a label by default, and within how many epochs."""
RATE_REGRESSED, RATE_DRAWN = 6e-3, 1e-2


class PretrainOptions(TrainingOptions):
    """Options of `pretrain-attn`."""

    relevance: str | None = option(
        None,
        "Tag of the `plant mig` whose relevance is planted, such as control (default: without a "
        "tag).",
    )
    loss: Choice = choice("loss", "lambda", "The ranking loss.")
    epochs: int | None = option(
        None,
        f"Passes over train at most. Default: as many as rank {LISTS} lists for each label, from "
        f"{FEWEST} to {MOST}; "
        f"{MOST} where queries start as they were drawn. 0: the start alone, a regression.",
        level="everyday",
        ge=0,
    )
    least_gain: float = option(
        0.003, "Least gain in validation nDCG of an epoch that counts as better.", ge=0
    )
    rate_attention: float | None = option(
        None,
        f"Peak learning rate of label queries and attention maps. Default: {RATE_REGRESSED:g} "
        "where queries start from a regression, "
        f"{RATE_DRAWN:g} where they start as they were drawn.",
        gt=0,
    )
    freeze_backbone: bool = option(
        True, "Train only the label attention; hidden states are then computed once and cached."
    )
    contrast: int = option(
        64,
        "Words without relevance that join each document's lists; 0: none (the paper), -1: all.",
        ge=-1,
    )
    labels_per_document: int = option(
        16, "Labels sampled beside the positives of a batch; -1: all labels.", ge=-1
    )
    score: Literal["log-mass", "mass", "log-mean"] = option(
        "log-mass", "A word's score by its tokens' attention."
    )
    start: Literal["regression", "random"] | None = option(
        None,
        "What label queries start from. regression: the queries whose scores come nearest to "
        "relevance, from one pass over train. "
        "random: as they were drawn, or the titles that --label-queries asks for (the paper). "
        "Default: regression, where the decoder can and --label-queries does not ask for titles.",
    )
    items: Literal["words", "positions"] = option(
        "words", "What is ranked: a document's distinct words, or each position (paper)."
    )
    title_documents: bool = option(
        False, "Train on the titles of labels, too: each is a short document with that label alone."
    )
    ndcg_k: int = option(1000, "Cut k of the validation nDCG@k.", ge=1)

    def regresses(self, *, able: bool, titles: bool) -> bool:
        """Whether queries start from a regression."""
        return self.start == "regression" or (self.start is None and able and not titles)

    def choose_epochs(
        self, *, regressed: bool, documents: int, assignments: int, labels: int
    ) -> int:
        """What the user gave, else by how many lists an epoch ranks."""
        if self.epochs is not None:
            return self.epochs
        sampled = labels if self.labels_per_document < 0 else min(self.labels_per_document, labels)
        needed = -(-LISTS * labels // max(1, documents * sampled + assignments))
        return min(max(needed, FEWEST), MOST) if regressed else MOST

    def choose_rate(self, *, regressed: bool) -> float:
        """What the user gave, else by where queries start."""
        if self.rate_attention is not None:
            return self.rate_attention
        return RATE_REGRESSED if regressed else RATE_DRAWN


class PlanOptions(Options):
    """What to plan."""

    recipe: str | None = everyday(
        None,
        "The recipe, a file or a shipped one's name (default: the run as it is).",
        argument=True,
    )
    documents: int | None = everyday(None, "For so many texts to label: needs no corpus.", ge=1)
    labels: int = everyday(10_000, "With --documents: how many labels.", ge=1)
    words: int = everyday(100, "With --documents: different words of a text.", ge=1, le=100_000)
    fitted_on: int = option(1_000_000, "With --documents: how many train the scorers.", ge=1)
    core_hour: float = option(0.05, "With --documents: the price of an hour of a core.", ge=0)


def require_relevance(context: StageContext, options: PretrainOptions) -> None:
    """What `pretrain-attn` needs, looked up before its module is imported: torch takes seconds."""
    context.corpus()
    context.input("mig", options.relevance)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Stage 1, with what the core asks for, and the plan."""
    return [
        NetworkSpec(
            name="pretrain-attn",
            group="Train by hand",
            summary="Plant relevance into the label attention (stage 1), by learning to rank each "
            "document's words.",
            options=PretrainOptions,
            source="PLANT, stage 1; LambdaLoss (Wang et al. 2018) on nDCG",
            run="plant_network.pretrain_attn:run",
            train="plant_network.finetune_network:run_network",
            load="plant_network.network_scores:load_network_model",
            meet="plant_network.group:meet",
            examine="plant_network.doctor_devices:examine",
            check="plant_network:require_relevance",
            help="Train label queries and attention maps so that attention ranks a document's "
            "words "
            "by their relevance for each label.",
            sections=("data", "model", "machine"),
            feeds=("finetune",),
            parallel=True,
            reads={"mig": "relevance"},
            seeded=True,
            order=2,
            examples=(
                "plant pretrain-attn",
                "plant pretrain-attn --epochs 5 --tag long",
                "plant pretrain-attn --backbone tiny --set model.backbone.hidden=64",
            ),
        ),
        StageSpec(
            name="plan",
            summary="Say what a recipe or the run will take before it starts: memory, disk, hours, "
            "and whether it fits.",
            options=PlanOptions,
            run="plant_network.plan:run",
            help="Plan with made-up weights: none are read, and nothing is written to the run.",
            sections=("data", "model", "machine"),
            writes=False,
            examples=(
                "plant plan recipe.yaml",
                "plant plan --set model.backbone=mistral",
                "plant plan --documents 100000000 --labels 100000 --words 150",
            ),
        ),
    ]
