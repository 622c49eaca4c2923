"""Stage 2, `plant finetune`: train the whole network to assign labels, from planted or from random attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from plant_cli.api import (
    ArtefactError,
    BackboneSpec,
    Choice,
    Column,
    DecoderSpec,
    PlantableDecoder,
    Result,
    StageContext,
    StageSpec,
    Table,
    choice,
    option,
)
from plant_cli.training.options import TrainingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from plant_cli.inference.lexical import LexicalScores
    from plant_cli.model.hardware import Hardware
    from plant_cli.model.network import Network
    from plant_cli.training.attention_quality import AttentionMeasure
    from plant_cli.training.finetuning import Anchor
    from plant_cli.training.loop import TrainingResult
    from plant_cli.training.materials import Material
    from plant_cli.training.throughput import Throughput
    from plant_cli.training.validation import Validation


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What `rate_head`, `rate_boost` and `patience` are unless they are given."""

    head: float
    boost: float
    patience: int | None


# Tables that hold something to lose learn slower than tables that start plain; and a start from nothing stands still before it learns.
PLANTED, PLAIN = Pace(head=3e-4, boost=3e-3, patience=2), Pace(head=1e-3, boost=3e-2, patience=None)

ROLES = frozenset({"attention", "value", "boost", "head", "backbone"})
"""Parts of the network that stage 2 trains."""


class FinetuneOptions(TrainingOptions):
    """Options of `finetune`."""

    init: Literal["planted", "random"] = option(
        "planted", "planted: from the attention of pretrain-attn, with all that is planted. random: from nothing (the clean contrast)."
    )
    prototypes: bool | None = option(
        None,
        "Start each label's tables from what its attention gathers on its training documents. Default: with --init planted (paper: no).",
    )
    sharpness: float | None = option(
        None,
        "Factor on the planted attention's scores when prototypes are made; default: the best on validation of 1, 1/2, 1/4 and 1/8.",
        gt=0,
    )
    lexical: bool | None = option(
        None,
        "Add what the document's words alone say for a label: the cosine of tf-idf and relevance, weighed on validation. "
        "Default: with --init planted (paper: no).",
    )
    patience: int | None = option(
        None,
        "Epochs without a better validation value before training stops. "
        "Default: 2 with planted tables; without, all epochs: a start from nothing stands still before it learns.",
        ge=1,
    )
    loss: Choice = choice("loss", "focal-hnm", "The loss over labels.")
    rate_head: float | None = option(
        None, "Peak learning rate of what labels share: value path and head. Default: 3e-4 with planted tables, 1e-3 without.", gt=0
    )
    rate_boost: float | None = option(
        None, "Peak learning rate of the tables of each label (boost). Default: 3e-3 where they are planted, 3e-2 where not.", gt=0
    )
    unfreeze: Literal["gradual", "all"] = option(
        "gradual", "gradual: first value path and head, then attention at a smaller rate, then the backbone from its last layers."
    )
    attention_factor: float = option(0.3, "Factor on the attention's rate under gradual unfreezing.", gt=0, le=1)
    anchor: float = option(0.0, "Weight of the stage 1 loss as an auxiliary term that fades out; 0: none.", ge=0)
    anchor_epochs: int = option(5, "Epochs over which the anchor fades out.", ge=1)
    anchor_loss: Choice = choice("loss", "lambda", "The ranking loss of the anchor.")
    shortlist: Choice | None = choice(
        "shortlist",
        None,
        "Look for hard negatives only among the labels that this proposes; needs `plant mig`. Validation scores every label all the same. "
        "Default: among all labels.",
    )
    monitor: Literal["MAP", "macro-F1", "micro-F1", "P@5"] = option(
        "MAP", "Validation figure that decides which epoch is kept; F1 at the threshold tuned on validation."
    )
    threshold: Literal["micro-F1", "macro-F1", "per-label"] = option(
        "micro-F1",
        "What the decision threshold, tuned on validation, maximises. per-label: one threshold per label, for the label's own F1.",
    )

    @property
    def plants_tables(self) -> bool:
        """Whether label tables start from prototypes."""
        return self.init == "planted" if self.prototypes is None else self.prototypes

    @property
    def uses_lexical(self) -> bool:
        """Whether lexical scores are added to the network's."""
        return self.init == "planted" if self.lexical is None else self.lexical


def run(context: StageContext, options: FinetuneOptions) -> Result:
    """Fine-tune, keep the best epoch on validation, and tune the decision threshold there."""
    from plant_cli.artefacts.thresholds import write_thresholds
    from plant_cli.model.hardware import choose_hardware
    from plant_cli.model.network import assemble, save_network
    from plant_cli.model.reading import lengths
    from plant_cli.parallel.strategies.choice import sharing_mode
    from plant_cli.training.finetuning import FineTuning
    from plant_cli.training.loop import Training, make_plan
    from plant_cli.training.losses import label_loss
    from plant_cli.training.materials import gather, summarise_cuts
    from plant_cli.training.optimiser import decide_sparse
    from plant_cli.training.shortlisting import propose_for, recall_of
    from plant_cli.training.throughput import measure_throughput

    corpus = context.corpus()
    hardware = choose_hardware(context.machine)
    network = assemble(context, corpus, context.model).to(hardware.device)
    if options.init == "planted":
        _plant(context, network)
    materials = gather(context, network, hardware, ("train", "validation"), options.cache_limit)
    train = materials["train"]
    loss = label_loss(context, options.loss)
    validation = _validation(context, options, network, materials["validation"], hardware)
    sparse = decide_sparse(network, options.sparse_updates, selects=loss.hard_negatives > 0, shared=sharing_mode() != "whole")
    anchor = _anchor(context, options, train)
    proposed = propose_for(context, options.shortlist, materials, loss.hard_negatives)
    step = FineTuning(network, train.reader, train.split, loss, hardware, anchor, sparse=sparse, candidates=proposed.get("train"))
    measure = _attention_quality(context, options, network, materials["validation"], hardware)
    recall = recall_of(proposed.get("validation"), network, materials["validation"], hardware, loss.hard_negatives, options.micro_batch)
    plant = _table_planter(context, options, network, train, hardware, validation, measure, recall)
    pace = PLAIN if plant is None else PLANTED
    plan = make_plan(
        options,
        context.machine,
        monitor=options.monitor,
        head=options.rate_head or pace.head,
        boost=options.rate_boost or pace.boost,
        patience=options.patience or pace.patience,
        schedule=options.unfreeze,
        attention_factor=options.attention_factor,
    )
    training = Training(context, network, hardware, plan, lengths(train.reader.tokens), ROLES)
    outcome = training.run(step, lambda epoch: {**validation(), **(measure() if measure else {}), **recall()}, plant=plant)
    save_network(network, context.folder)
    speed = measure_throughput(network, train.reader, hardware, step, outcome, options.micro_batch)
    lexical, weighed = _weigh_words(context, options, validation, materials["validation"])
    top = validation.score(lexical)
    threshold = validation.tune(top).value
    value = validation.tune_labels(top, threshold) if options.threshold == "per-label" else threshold
    write_thresholds(context.folder, value, options.threshold, corpus.labels.hash)
    result = _report(outcome, options, threshold, measure, lexical, weighed, speed)
    return replace(result, summary={**result.summary, **summarise_cuts(materials)})


def _plant(context: StageContext, network: Network) -> None:
    from plant_cli.model.network import described_section, restore_network

    folder = context.input("pretrain-attn")
    planted, wanted = (
        {"backbone": context.component(BackboneSpec, section.backbone), "decoder": context.component(DecoderSpec, section.decoder)}
        for section in (described_section(folder), context.model)
    )
    different = [kind for kind in planted if planted[kind] != wanted[kind]]
    if different:
        raise ArtefactError(
            "the attention was planted in another network than the one to be fine-tuned",
            where="; ".join(f"{kind}: {folder} has {planted[kind][1]!r}, this stage {wanted[kind][1]!r}" for kind in different),
            expected="the same backbone, decoder and options in both stages",
            todo="leave the model options to the run, or run plant pretrain-attn again with them and --force",
        )
    restore_network(network, folder)


def _table_planter(
    context: StageContext,
    options: FinetuneOptions,
    network: Network,
    train: Material,
    hardware: Hardware,
    validation: Validation,
    measure: AttentionMeasure | None,
    recall: Callable[[], dict[str, float]],
) -> Callable[[], dict[str, float]] | None:
    """What plants the tables of the labels and gives their validation figures; None if they are to start plain."""
    from plant_cli.training.prototypes import SHARPNESSES, Prototypes

    if not options.plants_tables or (options.prototypes is None and not isinstance(network.decoder, PlantableDecoder)):
        return None
    prototypes = Prototypes(network, train, hardware, seed=context.machine.seed, batch=options.micro_batch, context=context)
    factors = SHARPNESSES if options.init == "planted" else (1.0,)
    if options.sharpness is not None:
        factors = (options.sharpness,)
    return lambda: {**prototypes.plant_sharpest(validation, options.monitor, factors), **(measure() if measure else {}), **recall()}


def _weigh_words(
    context: StageContext, options: FinetuneOptions, validation: Validation, material: Material
) -> tuple[LexicalScores | None, dict[str, float]]:
    """The lexical scores with their weight from validation, saved beside the model, and the figures with them."""
    if not options.uses_lexical:
        return None, {}
    import numpy as np

    from plant_cli.artefacts.relevance import load_relevance, read_vocabulary
    from plant_cli.inference.lexical import LexicalScores, make_lexicon, save_lexicon

    corpus, folder = context.corpus(), context.input("mig")
    table = load_relevance(folder, corpus.labels.hash)
    with_word, with_label = read_vocabulary(folder)["docs_with_word"].to_numpy(), np.asarray(corpus.labels.train_counts)
    lexicon = make_lexicon(table, with_word, with_label, len(corpus.split("train")))
    lexical = LexicalScores(lexicon, material.split.texts)
    lexical.lexicon = replace(lexicon, centre=lexical.mean_cosine(material.split.gold))
    weight, figures = validation.weigh(lexical, options.monitor)
    if not weight:
        context.reporter.note("lexical scores do not help on validation: they are left out")
        return None, {}
    lexical.lexicon = replace(lexical.lexicon, weight=weight)
    save_lexicon(lexical.lexicon, context.folder, corpus.labels.hash)
    return lexical, figures


def _anchor(context: StageContext, options: FinetuneOptions, train: Material) -> Anchor | None:
    if not options.anchor:
        return None
    from plant_cli.artefacts.relevance import load_relevance
    from plant_cli.training.finetuning import Anchor
    from plant_cli.training.losses import rank_loss
    from plant_cli.training.planting import Planter

    table = load_relevance(context.input("mig"), context.corpus().labels.hash)
    planter = Planter(table, train.split, train.reader.tokens, contrast=64, labels_per_document=64)
    return Anchor(planter=planter, loss=rank_loss(context, options.anchor_loss), weight=options.anchor, epochs=options.anchor_epochs)


def _validation(context: StageContext, options: FinetuneOptions, network: Network, material: Material, hardware: Hardware) -> Validation:
    from plant_cli.training.validation import Validation

    return Validation(
        context,
        network,
        material,
        hardware,
        batch=options.micro_batch,
        objective="micro-F1" if options.threshold == "micro-F1" else "macro-F1",
    )


def _attention_quality(
    context: StageContext, options: FinetuneOptions, network: Network, material: Material, hardware: Hardware
) -> AttentionMeasure | None:
    """The yardstick of stage 1, if the run has a relevance table: it shows after every epoch what stage 2 left of the planting."""
    from plant_cli.artefacts.relevance import load_relevance
    from plant_cli.training.attention_quality import AttentionMeasure

    try:
        table = load_relevance(context.input("mig"), context.corpus().labels.hash)
    except ArtefactError:
        return None
    return AttentionMeasure(network, material, table, hardware, k=1000, batch=options.micro_batch)


def _report(
    outcome: TrainingResult,
    options: FinetuneOptions,
    threshold: float,
    measure: AttentionMeasure | None,
    lexical: LexicalScores | None,
    weighed: dict[str, float],
    speed: Throughput,
) -> Result:
    figures = ["MAP", "P@5", "micro-F1", "macro-F1"]
    recalls = [name for name in outcome.kept if name.startswith("shortlist")]
    shown = figures + ([measure.name] if measure else []) + recalls
    columns = [Column(name="epoch"), Column(name="loss", kind="exact")]
    columns += [Column(name=f"attention {name}" if measure and name == measure.name else name, kind="points") for name in shown]
    rows = [[str(e["epoch"] or "start"), e["loss"], *(e[name] for name in shown)] for e in outcome.history]
    kept = "start" if outcome.best_epoch < 0 else f"epoch {outcome.best_epoch + 1}"
    tuned = f"threshold {threshold:.3g} tuned on validation {options.threshold}"
    if options.threshold == "per-label":
        tuned = f"thresholds per label tuned on validation, {threshold:.3g} (the best for macro-F1) for labels that it cannot tell of"
    notes = [f"kept: {kept} by {options.monitor}; {tuned}"]
    if lexical:
        rows.append(["+ words", None, *(weighed.get(name) for name in shown)])
        notes.append(f"+ words: with lexical scores; a cosine of 1 adds {lexical.lexicon.weight:g} to a logit (the best on validation)")
    return Result(
        tables=[Table(title="Fine-tuning (validation)", columns=columns, rows=rows, notes=[*notes, *speed.notes()])],
        next_step="plant eval --bootstrap 1000",
        summary={
            **{name: outcome.kept[name] for name in shown},
            **{f"{name} with words": value for name, value in weighed.items()},
            "sharpness": outcome.history[0].get("sharpness", 1.0),
            "word_weight": lexical.lexicon.weight if lexical else 0.0,
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch + 1,
            "threshold": threshold,
            **speed.summary(),
        },
    )


SPECS = (
    StageSpec(
        name="finetune",
        summary="Stage 2: train the network to assign labels, from planted attention or, for comparison, from random.",
        options=FinetuneOptions,
        source="PLANT, stage 2",
        run=run,
        sections=("data", "model", "machine"),
        parallel=True,
        seeded=True,
        examples=("plant finetune", "plant finetune --init random --tag baseline"),
    ),
)
