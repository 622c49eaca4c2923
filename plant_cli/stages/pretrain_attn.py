"""Stage 1, `plant pretrain-attn`: plant the words that tell of a label into the label attention (learning to rank)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from plant_cli.api import Choice, Column, DataError, Result, StageContext, StageSpec, Table, choice, option
from plant_cli.training.options import TrainingOptions

if TYPE_CHECKING:
    from plant_cli.training.loop import TrainingResult
    from plant_cli.training.throughput import Throughput


class PretrainOptions(TrainingOptions):
    """Options of `pretrain-attn`."""

    loss: Choice = choice("loss", "lambda", "The ranking loss.")
    rate_attention: float = option(1e-2, "Peak learning rate of label queries and attention maps.", gt=0)
    freeze_backbone: bool = option(True, "Train only the label attention; hidden states are then computed once and cached.")
    contrast: int = option(64, "Words without relevance that join each document's lists; 0: none (the paper), -1: all.", ge=-1)
    labels_per_document: int = option(64, "Labels sampled beside the positives of a batch; -1: all labels.", ge=-1)
    score: Literal["log-mass", "mass", "log-mean"] = option(
        "log-mass", "A word's score: log of the attention mass on its tokens, the mass itself, or the log of its mean."
    )
    ndcg_k: int = option(1000, "Cut k of the validation nDCG@k.", ge=1)


def run(context: StageContext, options: PretrainOptions) -> Result:
    """Train label queries and attention maps so that attention ranks a document's words by their relevance for each label."""
    from plant_cli.artefacts.relevance import load_relevance
    from plant_cli.model.hardware import choose_hardware
    from plant_cli.model.network import assemble, save_network
    from plant_cli.model.reading import lengths
    from plant_cli.parallel.strategies.choice import sharing_mode
    from plant_cli.training.attention_quality import AttentionMeasure
    from plant_cli.training.loop import Training, make_plan
    from plant_cli.training.losses import rank_loss
    from plant_cli.training.materials import gather, summarise_cuts
    from plant_cli.training.optimiser import decide_sparse
    from plant_cli.training.planting import Planter, Planting
    from plant_cli.training.throughput import measure_throughput

    corpus = context.corpus()
    table = load_relevance(context.input("mig"), corpus.labels.hash)
    if not table.matrix.nnz:
        raise DataError(
            "there is nothing to plant: no word tells of any label",
            where=str(context.input("mig")),
            expected="at least one word with relevance (a label of every document has none, nor has one whose words are too rare)",
            todo="look at the corpus with plant data stats, or count rarer words with plant mig --min-df 1 --force",
        )
    hardware = choose_hardware(context.machine)
    network = assemble(context, corpus, context.model).to(hardware.device)
    if options.freeze_backbone:
        network.freeze_backbone()
    materials = gather(context, network, hardware, ("train", "validation"), options.cache_limit)
    train = materials["train"]
    planter = Planter(
        table,
        train.split,
        train.reader.tokens,
        contrast=options.contrast,
        labels_per_document=options.labels_per_document,
        score=options.score,
    )
    measure = AttentionMeasure(network, materials["validation"], table, hardware, k=options.ndcg_k, batch=options.micro_batch)
    plan = make_plan(
        options,
        context.machine,
        monitor=measure.name,
        head=options.rate_attention,
        boost=options.rate_attention,
        patience=options.patience,
    )
    decide_sparse(
        network, options.sparse_updates, selects=0 <= options.labels_per_document < network.labels, shared=sharing_mode() != "whole"
    )
    roles = frozenset({"attention"} if network.backbone_is_frozen else {"attention", "backbone"})
    training = Training(context, network, hardware, plan, lengths(train.reader.tokens), roles)
    step = Planting(network, train.reader, planter, rank_loss(context, options.loss), hardware)
    outcome = training.run(step, lambda epoch: measure())
    save_network(network, context.folder)
    speed = measure_throughput(network, train.reader, hardware, step, outcome, options.micro_batch)
    result = _report(outcome, measure.name, speed)
    return replace(result, summary={**result.summary, **summarise_cuts(materials)})


def _report(outcome: TrainingResult, name: str, speed: Throughput) -> Result:
    rows = [[e["epoch"], e["loss"], e[name], e[f"random {name}"], e["tau"]] for e in outcome.history]
    columns = [Column(name="epoch", kind="count"), Column(name="loss", kind="exact")]
    columns += [Column(name=n, kind="points") for n in (name, "in random order", "Kendall's tau")]
    table = Table(
        title="Attention ranks words by relevance (validation, each document's own labels)",
        columns=columns,
        rows=rows,
        notes=[f"kept: epoch {outcome.best_epoch + 1}; relevance is fitted on train only", *speed.notes()],
    )
    best = outcome.kept
    return Result(
        tables=[table],
        next_step="plant finetune",
        summary={
            name: best[name],
            f"random {name}": best[f"random {name}"],
            "tau": best["tau"],
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch + 1,
            **speed.summary(),
        },
    )


SPECS = (
    StageSpec(
        name="pretrain-attn",
        summary="Stage 1: plant relevance into the label attention, by learning to rank each document's words.",
        options=PretrainOptions,
        source="PLANT, stage 1; LambdaLoss (Wang et al. 2018) on nDCG",
        run=run,
        sections=("data", "model", "machine"),
        parallel=True,
        seeded=True,
        examples=("plant pretrain-attn", "plant pretrain-attn --backbone tiny --set model.backbone.hidden=64"),
    ),
)
