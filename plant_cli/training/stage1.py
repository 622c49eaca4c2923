"""How well attention ranks words by relevance on held-out documents: what stage 1 is measured by, and what stage 2 keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from plant_cli.api import ComponentError, DataError, LossSpec, QueryDecoder
from plant_cli.network.assembly import Network, save_network
from plant_cli.network.hardware import Hardware
from plant_cli.network.list_ranking import kendall_tau, ndcg, random_ndcg
from plant_cli.network.reading import lengths, sorted_batches
from plant_cli.network.reading_checks import WordStatistics
from plant_cli.training.loop import Plan, TrainingLoop, TrainingResult, make_plan
from plant_cli.training.materials import Inputs, Material, Setup, micro_sizes, rank_loss, set_up
from plant_cli.training.optimiser import decide_sparse
from plant_cli.training.options import PretrainOptions
from plant_cli.training.planting import Planter, Planting, positives_only, rank_words
from plant_cli.training.regression import QueryRegression
from plant_cli.training.strategies import sharing_mode
from plant_cli.training.throughput import Throughput, measure_throughput


class AttentionMeasure:
    """nDCG@k of attention against relevance on a split, over every (document, own label) list with all of its words.

    Args:
        k: cut of nDCG@k.
        contrast: words without relevance in each list (−1: all).
        items: what is ranked.
    """

    def __init__(
        self,
        network: Network,
        material: Material,
        known: WordStatistics,
        hardware: Hardware,
        *,
        k: int,
        batch: int,
        contrast: int = -1,
        items: Literal["words", "positions"] = "words",
    ) -> None:
        self.network = network
        self.reader = material.reader
        split, tokens = material.split, material.reader.tokens
        self.planter = Planter(known.table, split, tokens, known.analyser, contrast=contrast, labels_per_document=0, items=items)
        self.hardware = hardware
        self.k = k
        self.batch = batch
        self.name = f"nDCG@{k}"

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Mean nDCG@k, Kendall's τ, and the nDCG@k that a random order would have."""
        self.network.eval()
        sums = np.zeros(4)  # of the three figures, and how many lists
        for rows in self.hardware.processes.share(sorted_batches(lengths(self.reader.tokens), self.batch)):
            labels, counts = positives_only(self.planter, rows)
            if not len(labels):
                continue
            reading = self.reader.read(rows)
            with self.hardware.autocast():
                lists = rank_words(self.network.decoder, self.planter, reading, rows, labels, counts, np.random.default_rng(0))
            if lists is None:
                continue
            found = (
                ndcg(lists.scores, lists.relevance, lists.offsets, self.k),
                kendall_tau(lists.scores, lists.relevance, lists.offsets),
                random_ndcg(lists.relevance, lists.offsets, self.k),
            )
            sums += [*(float(torch.nan_to_num(values).sum()) for values in found), len(lists)]
        self.hardware.processes.add_arrays(sums)
        mean = sums[:3] / max(1.0, sums[3])
        return {self.name: float(mean[0]), "tau": float(mean[1]), f"random {self.name}": float(mean[2])}


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What stage 1 reached."""

    training: TrainingResult  # the history and the epoch that was kept
    measure: str  # the name of the figure that chose it
    speed: Throughput  # how fast it trained
    cuts: dict[str, dict[str, Any]]  # what of each split was not read


def plant_attention(given: Inputs, options: PretrainOptions, known: WordStatistics) -> Planted:
    """Train label queries and attention maps so that attention ranks a document's words by their relevance for each label.

    The network of the best epoch is saved in the stage's folder.

    Raises:
        DataError: no word has relevance for any label.
        ComponentError: the loss is one of stage 2, or the decoder's queries cannot start from a regression.
        Interrupted: the user stopped the command; a checkpoint is saved.
        TrainingError: the loss is not a number.
    """
    if not known.table.matrix.nnz:
        raise DataError(
            "there is nothing to plant: no word indicates any label",
            where=str(given.session.run_path / "mig"),
            expected="at least one word with relevance (a label of every document has none, nor has one whose words are too rare)",
            todo="look at the corpus with plant data stats, or count rarer words with plant mig --min-df 1 --force",
        )
    loss = rank_loss(*given.component(LossSpec, options.loss), given.losses)
    setup = set_up(given, options, freeze_backbone=options.freeze_backbone, titles=options.title_documents)
    network, hardware, train = setup.network, setup.hardware, setup.train
    if network.backbone_is_frozen and not options.freeze_backbone:
        given.session.reporter.warn(
            f"the backbone {network.section.backbone.name} has nothing that can be trained, so it stays as it is in spite of "
            "--no-freeze-backbone (to train it: --set model.backbone.adapter=lora, or full)"
        )
    planter = Planter(
        known.table,
        train.split,
        train.reader.tokens,
        known.analyser,
        contrast=options.contrast,
        labels_per_document=options.labels_per_document,
        score=options.score,
        items=options.items,
    )
    measure = AttentionMeasure(
        network,
        setup.validation,
        known,
        hardware,
        k=options.ndcg_k,
        batch=options.micro_batch,
        contrast=-1 if options.contrast else 0,
        items=options.items,
    )
    start = _make_start(given, options, setup, planter)
    plan = _make_plan(given, options, setup, measure.name, regressed=start is not None)
    samples = 0 <= options.labels_per_document < network.labels
    decide_sparse(network, options.sparse_updates, selects=samples, shared=sharing_mode() != "whole")
    roles = frozenset({"attention"} if network.backbone_is_frozen else {"attention", "backbone"})
    step = Planting(network, train.reader, planter, loss, hardware)

    def plant() -> dict[str, float]:
        assert start is not None
        start.plant()
        return measure()

    outcome = TrainingLoop(given.session, network, hardware, plan, setup.lengths, roles).run(
        step, lambda epoch: measure(), plant=None if start is None else plant
    )
    save_network(network, given.session.folder)
    speed = measure_throughput(network, train.reader, hardware, step, outcome, micro_sizes(options.batch, options.micro_batch)[0])
    return Planted(training=outcome, measure=measure.name, speed=speed, cuts=setup.summarise_cuts())


def _make_plan(given: Inputs, options: PretrainOptions, setup: Setup, monitor: str, *, regressed: bool) -> Plan:
    gold = setup.train.split.gold
    rate = options.choose_rate(regressed=regressed)
    epochs = options.choose_epochs(regressed=regressed, documents=gold.shape[0], assignments=gold.nnz, labels=gold.shape[1])
    return make_plan(
        options,
        given.machine,
        epochs=epochs,
        monitor=monitor,
        attention=rate,
        head=rate,
        boost=rate,
        patience=options.patience,
        least_gain=options.least_gain,
    )


def _make_start(given: Inputs, options: PretrainOptions, setup: Setup, planter: Planter) -> QueryRegression | None:
    """What plants the label queries before training; None if they start as they were drawn."""
    network = setup.network
    able = isinstance(network.decoder, QueryDecoder)
    if options.start == "regression" and not able:
        raise ComponentError(
            f"the label queries of the decoder '{network.section.decoder.name}' cannot start from a regression",
            where="pretrain-attn, option start",
            expected="a decoder with keys and plant_queries (plant_cli.api.QueryDecoder)",
            todo="--start random, or another --decoder",
        )
    if not options.regresses(able=able, titles=network.section.label_queries == "titles"):
        return None
    return QueryRegression(
        network, setup.train, planter.documents, planter.table, setup.hardware, batch=options.micro_batch, session=given.session
    )
