"""Stage 1, `plant pretrain-attn`: train the attention of labels to rank words by relevance."""

from __future__ import annotations

from plant_cli.api import Column, Result, StageContext, Table
from plant_cli.api.context import with_tag
from plant_cli.relevance.relevance_table import load_statistics
from plant_network import PretrainOptions
from plant_network.materials import Inputs
from plant_network.stage1 import Planted, plant_attention


def run(context: StageContext, options: PretrainOptions) -> Result:
    """Train attention on a ranking loss and report how well it ranks words."""
    corpus = context.corpus()
    statistics = load_statistics(context.input("mig", options.relevance), corpus)
    inputs = Inputs.of(context, statistics=statistics)
    counted = (
        f"{len(corpus.split('validation'))} documents of validation; {len(corpus.labels)} "
        "labels counted, each document's own"
    )
    conditions = (
        f"{counted}; convention: gains 2^relevance - 1, documents without such words left "
        f"out; seed {context.machine.seed}"
    )
    return _report(plant_attention(inputs, options, statistics), conditions, context.tag)


def _report(reached: Planted, conditions: str, tag: str | None) -> Result:
    outcome, name = reached.training, reached.measure
    rows = [
        [str(e["epoch"] or "start"), e["loss"], e[name], e[f"random {name}"], e["tau"]]
        for e in outcome.history
    ]
    columns = [Column(name="epoch"), Column(name="loss", kind="exact")]
    columns += [Column(name=n, kind="points") for n in (name, "in random order", "Kendall's tau")]
    table = Table(
        title="Attention ranks words by relevance (validation, each document's own labels)",
        columns=columns,
        rows=rows,
        notes=[
            f"kept: {outcome.kept_epoch}; relevance is fitted on train only",
            conditions,
            reached.speed.note,
        ],
    )
    best = outcome.kept
    return Result(
        tables=[table],
        next_step=with_tag(
            "plant finetune" if tag is None else f"plant finetune --planted {tag}", tag
        ),
        summary={
            name: best[name],
            f"random {name}": best[f"random {name}"],
            "tau": best["tau"],
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch + 1,
            **reached.speed.summary(),
            **reached.cuts,
        },
    )
