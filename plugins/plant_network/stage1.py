"""Stage 1: attention is trained to rank the words of a document by their relevance for each of
its labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plant_cli.api import ComponentError, DataError, LossSpec, QueryDecoder
from plant_cli.relevance.relevance_table import WordStatistics
from plant_network import PretrainOptions
from plant_network.assembly import Network, save_network
from plant_network.loop import Plan, TrainingLoop, TrainingResult
from plant_network.materials import Inputs, build_loss, set_up
from plant_network.optimiser import Rates, decide_sparse
from plant_network.planting import AttentionMeasure, Planter, Planting
from plant_network.regression import plant_queries
from plant_network.throughput import Throughput, measure_throughput


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What stage 1 reached."""

    training: TrainingResult  # the history and the epoch that was kept
    measure: str  # the name of the figure that chose it
    speed: Throughput  # how fast it trained
    cuts: dict[str, dict[str, Any]]  # what of each split was not read


def plant_attention(given: Inputs, options: PretrainOptions, known: WordStatistics) -> Planted:
    """Train label queries and attention maps so that attention ranks a document's words by their
    relevance for each label.

    The network of the best epoch is saved in the stage's folder.
    """
    if not known.table.matrix.nnz:
        raise DataError(
            "there is nothing to plant: no word indicates any label",
            where=str(given.session.run_path / "mig"),
            expected="at least one word with relevance (a label of every document has none, nor "
            "has one whose words are too rare)",
            todo="look at the corpus with plant data stats, or count rarer words with plant mig "
            "--min-df 1 --force",
        )
    loss = build_loss(*given.component(LossSpec, options.loss), "rank", given.losses)
    setup = set_up(
        given, options, freeze_backbone=options.freeze_backbone, titles=options.title_documents
    )
    network, hardware, train = setup.network, setup.hardware, setup.train
    if network.backbone_is_frozen and not options.freeze_backbone:
        given.session.reporter.warn(
            f"the backbone {network.section.backbone.name} has nothing that can be trained, so it "
            "stays as it is in spite of "
            "--no-freeze-backbone (to train it: --set model.backbone.adapter=lora, or full)"
        )
    planter = Planter(
        known.table,
        train,
        contrast=options.contrast,
        labels_per_document=options.labels_per_document,
        score=options.score,
        items=options.items,
        alone=options.fills_memory(hardware.device.type, hardware.processes.count),
    )
    decide_sparse(
        network, options.sparse_updates, selects=0 <= options.labels_per_document < network.labels
    )
    step = Planting(network, train.reader, planter, loss, hardware)
    room = setup.find_room(step, options)
    measure = AttentionMeasure(
        network,
        setup.validation,
        known,
        hardware,
        k=options.ndcg_k,
        batch=room,
        contrast=-1 if options.contrast else 0,
        items=options.items,
    )
    gold, regressed = train.split.gold, _starts_from_regression(network, options)
    rate = options.choose_rate(regressed=regressed)
    plan = Plan(
        options=options,
        epochs=options.choose_epochs(
            regressed=regressed, documents=gold.shape[0], assignments=gold.nnz, labels=gold.shape[1]
        ),
        monitor=measure.name,
        rates=Rates(
            head=rate,
            boost=rate,
            attention=rate,
            backbone=options.rate_backbone,
            layers=options.layer_rates,
        ),
        patience=options.patience,
        least_gain=options.least_gain,
        returns=regressed,
        seed=given.machine.seed,
        room=room,
    )
    roles = frozenset({"attention"} if network.backbone_is_frozen else {"attention", "backbone"})

    def plant() -> dict[str, float]:
        plant_queries(network, train.reader, planter, hardware, room, given.session)
        return measure()

    training = TrainingLoop(given.session, network, hardware, plan, setup.lengths, roles)
    drawn = None if plan.epochs else measure  # queries as they are drawn are all that there is
    outcome = training.run(step, measure, plant=plant if regressed else drawn)
    save_network(network, given.session.folder)
    speed = measure_throughput(
        network, train.reader, hardware, step, outcome, setup.count_usual(room, options)
    )
    return Planted(training=outcome, measure=measure.name, speed=speed, cuts=setup.summarise_cuts())


def _starts_from_regression(network: Network, options: PretrainOptions) -> bool:
    """Whether label queries are planted before training; else they start as they were drawn."""
    able = isinstance(network.decoder, QueryDecoder)
    if options.start == "regression" and not able:
        raise ComponentError(
            f"the label queries of the decoder '{network.section.decoder.name}' cannot start from "
            "a regression",
            where="pretrain-attn, option start",
            expected="a decoder with keys and plant_queries (plant_cli.api.QueryDecoder)",
            todo="--start random, or another --decoder",
        )
    return options.regresses(able=able, titles=network.section.label_queries == "titles")
