"""Stage 2 on batches: exact hard negatives, and the planted order kept as an anchor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import GroupedDecoder, LabelLoss, LossSpec, PlantableDecoder, RankLoss, Reading, Split, UsageError
from plant_cli.network.assembly import Network, save_network
from plant_cli.network.candidates import ShortlistedLabels, measure_recall, score_all, score_pairs
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import HiddenReader
from plant_cli.scoring.calibration import Calibrated
from plant_cli.scoring.fused_scorers import ScoredDocuments
from plant_cli.scoring.predictions import NETWORK, SCORERS
from plant_cli.scoring.scorer_fitting import FusionFit
from plant_cli.training.judging import Gain
from plant_cli.training.loop import TrainingLoop, TrainingResult, make_plan
from plant_cli.training.materials import Inputs, Setup, label_loss, micro_sizes, rank_loss, set_up
from plant_cli.training.optimiser import decide_sparse
from plant_cli.training.options import LEAST_GAIN, PATIENCE, RATE_BOOST, RATE_HEAD, ROLES, FinetuneOptions
from plant_cli.training.planting import Planter, planted_loss
from plant_cli.training.prototypes import SHARPNESSES, Prototypes
from plant_cli.training.scorers_alone import combine, fit_chosen, judge_parts, make_judge, rank_scored, save_combination
from plant_cli.training.shortlisting import Shortlisted, shortlist_labels
from plant_cli.training.stage1 import AttentionMeasure
from plant_cli.training.strategies import sharing_mode
from plant_cli.training.throughput import Throughput, measure_throughput
from plant_cli.training.validation import Validation, starts_sparse

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """The stage 1 loss as an auxiliary term that fades out."""

    planter: Planter
    loss: RankLoss
    weight: float  # λ in the first epoch; it falls linearly to zero over `epochs`
    epochs: int

    def strength(self, epoch: int) -> float:
        """λ in an epoch."""
        return self.weight * max(0.0, 1.0 - epoch / max(1, self.epochs))


class FineTuning:
    """Loss of one micro-batch of stage 2 (`plant_cli.training.loop.BatchLoss`).

    The loss looks only at the positives and the hardest negatives of each document. All labels are scored once, in memory
    O(B·L); the backward pass of the label attention computes only the (document, label) pairs that were chosen. With sparse updates
    labels are scored without gradient, and the chosen ones of each document once more with it: no gradient has a row for every label.
    With candidates hard negatives are these. If they are no more than the loss looks at, all of them count: they are scored once, beside
    positives and random negatives (in the loss's proportion to them), and nothing else is. Of more, all are scored without gradient, and
    the hardest once more with it.

    Args:
        sparse: score twice.
        candidates: what a shortlist proposes for the documents of the split (None: all labels are scored).
    """

    def __init__(
        self,
        network: Network,
        reader: HiddenReader,
        split: Split,
        loss: LabelLoss,
        hardware: Hardware,
        anchor: Anchor | None = None,
        *,
        sparse: bool = False,
        candidates: ShortlistedLabels | None = None,
    ) -> None:
        self.network = network
        self.reader = reader
        self.gold = split.gold
        self.loss = loss
        self.hardware = hardware
        self.anchor = anchor
        self.candidates = candidates
        self.all_count = candidates is not None and candidates.most <= loss.hard_negatives
        self.random = loss.random_negatives
        if candidates is not None and self.all_count:
            self.random = -(-loss.random_negatives * candidates.most // loss.hard_negatives)
        self.twice = not self.all_count and (sparse or candidates is not None)

    def __call__(self, rows: Rows, *, epoch: int, seed: int) -> tuple[Tensor, float]:
        """The mean loss over some documents, and how many these are."""
        reading = self.reader.read(rows)
        targets = torch.from_numpy(self.gold[rows].toarray().astype(np.float32)).to(reading.mask.device)
        with self.hardware.autocast():
            if isinstance(self.network.decoder, GroupedDecoder):
                reading = read = self.network.decoder.read_groups(reading)
                of_groups = group_loss(self.network.decoder.groups, self.loss, read.group_logits, targets, seed)
                loss = self._label_loss(reading, targets, rows, seed) + of_groups
            else:
                loss = self._label_loss(reading, targets, rows, seed)
            if self.anchor is not None and self.anchor.strength(epoch) > 0:
                planted, _ = planted_loss(self.network, self.anchor.planter, self.anchor.loss, reading, rows, seed)
                loss = loss + self.anchor.strength(epoch) * planted
        return loss, float(len(rows))

    def _label_loss(self, reading: Reading, targets: Tensor, rows: Rows, seed: int) -> Tensor:
        draw = torch.Generator(device=targets.device).manual_seed(seed)
        if self.candidates is not None and self.all_count:
            selected = add_random(self.candidates.of(rows, targets.device) | (targets > 0), self.random, draw)
            return self.loss(score_pairs(self.network.decoder, reading, selected), targets, selected)
        with torch.set_grad_enabled(not self.twice):
            logits = self._score(reading, rows)
        if not self.loss.hard_negatives:
            return self.loss(logits, targets)
        selected = self.loss.select(logits.detach(), targets, draw)
        if self.twice:
            logits = torch.where(selected, score_pairs(self.network.decoder, reading, selected), logits)
        return self.loss(logits, targets, selected)

    def _score(self, reading: Reading, rows: Rows) -> Tensor:
        if self.candidates is None:
            return score_all(self.network.decoder, reading, self.network.labels)
        return score_pairs(self.network.decoder, reading, self.candidates.of(rows, reading.mask.device))


def add_random(chosen: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """The chosen labels [B, L] and, for each document, `count` others (all of them if there are fewer), drawn without replacement."""
    noise = torch.rand(chosen.shape, generator=draw, device=chosen.device).masked_fill_(chosen, -1.0)
    return chosen.scatter(1, noise.topk(min(count, chosen.shape[1]), dim=1).indices, True)


def group_loss(groups: Tensor, loss: LabelLoss, logits: Tensor, targets: Tensor, seed: int) -> Tensor:
    """The loss over groups of labels; a document has the groups of its labels.

    Args:
        groups: the group of each label [L].
        logits: of the groups [B, G].
        targets: 0/1 of the labels [B, L].
    """
    of_groups = torch.zeros_like(logits).index_add_(1, groups, targets.to(logits.dtype)).clamp_max_(1.0)
    if not loss.hard_negatives:
        return loss(logits, of_groups)
    draw = torch.Generator(device=logits.device).manual_seed(seed)
    return loss(logits, of_groups, loss.select(logits.detach(), of_groups, draw))


ATTENTION_K = 1000
"""Cut k of the nDCG@k that shows what stage 2 keeps of the planted attention."""
SAMPLE = 16
"""Validation documents of which every label is scored after each epoch, to see what a shortlist misses."""


@dataclass(frozen=True, kw_only=True)
class FineTuned:
    """What stage 2 reached."""

    training: TrainingResult  # the history and the epoch that was kept
    quality: str | None  # the name of the figure that measures attention; None if the run has no relevance
    threshold: float  # the decision threshold for all labels
    scorers: FusionFit | None  # those beside the network, as they were fitted; None: there are none
    parts: Mapping[str, Mapping[str, float]]  # validation figures of each part alone, by its name
    gain: Gain | None  # of network and scorers together on the scorers alone, on validation; None without scorers
    left_out: bool  # whether the network is no part of the model, since it does not add to the scorers
    figures: Mapping[str, float]
    """Of network and scorers together, on validation, every label scored; those of epochs may be of a shortlist."""
    calibrated: Calibrated  # how much the network and the scorers count, and how well probabilities hold on validation
    conditions: str  # which documents and labels the figures are of
    speed: Throughput  # how fast it trained
    cuts: dict[str, dict[str, Any]]  # what of each split was not read


def finetune(given: Inputs, options: FinetuneOptions) -> FineTuned:
    """Train the network, keep the epoch that is best on validation together with the scorers, calibrate and tune the threshold there.

    Network, scorers and thresholds are saved in the stage's folder.

    Raises:
        ArtefactError: what was planted belongs to another network, or cannot be read.
        ComponentError: the loss is one of stage 1, or the decoder cannot do what an option asks for.
        UsageError: options do not go together.
        Interrupted: the user stopped the command; a checkpoint is saved.
        TrainingError: the loss is not a number, or the model collapsed.
    """
    loss = label_loss(*given.component(LossSpec, options.loss), given.losses)
    fit = fit_chosen(given, options)
    scored = None if fit is None else fit.validation
    if options.only_if_better and scored is None:
        given.session.reporter.warn("--only-if-better changes nothing: there are no scorers that the network could be better than")
    setup = set_up(given, options, freeze_backbone=False)
    shortlisted = shortlist_labels(given, options, setup, loss, scored)
    step = _make_step(given, options, setup, loss, shortlisted)
    monitor = _make_monitor(given, options, setup, scored, shortlisted)
    prototypes = _make_prototypes(given, options, setup)
    outcome = _train(given, options, setup, step, monitor, prototypes)
    judged = monitor.validation.run(every_label=True)
    judge = monitor.validation.judge
    calibrated, whole, figures = judged.calibrated, judged.whole, monitor.validation.describe(judged)
    parts: dict[str, dict[str, float]] = {}
    gain, left_out = None, False
    if scored is not None:
        without, scorers_alone = rank_scored(judge, scored)
        parts = {NETWORK: judge.figures(judged.alone), **judge_parts(judge, scored), SCORERS: judge.figures(scorers_alone)}
        gain = judge.gain(judged.whole, scorers_alone)
        left_out = options.only_if_better and gain.low <= 0
        if left_out:
            calibrated, whole, figures = without, scorers_alone, {**figures, **parts[SCORERS]}
    if not left_out:
        save_network(setup.network, given.session.folder)
    save_combination(given, combine(judge, calibrated, None if fit is None else fit.scorers), calibrated, parts, fit)
    largest = micro_sizes(options.batch, options.micro_batch)[0]
    speed = measure_throughput(setup.network, setup.train.reader, setup.hardware, step, outcome, largest)
    return FineTuned(
        training=outcome,
        quality=monitor.quality.name if monitor.quality else None,
        threshold=judge.save_thresholds(whole, options.tune, given.session, given.corpus.labels.hash),
        scorers=fit,
        parts=parts,
        gain=gain,
        left_out=left_out,
        figures=figures,
        calibrated=calibrated,
        conditions=judge.conditions,
        speed=speed,
        cuts=setup.summarise_cuts(),
    )


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """The figures of an epoch."""

    validation: Validation  # gives metrics on the validation split
    quality: AttentionMeasure | None  # gives the quality of attention; None without relevance
    shortlisted: Shortlisted | None
    """What a shortlist proposes; None without one. Of the labels scored highest, the share that it proposes is measured."""
    batch: int  # documents in memory at once

    def __call__(self) -> dict[str, float]:
        """All figures of the network as it is."""
        return {**self.validation(), **self._others()}

    def plant(self, prototypes: Prototypes, name: str, factors: tuple[float, ...]) -> dict[str, float]:
        """Start the label tables from prototypes, with the sharpness under which a figure is best; all figures of that network."""
        return {**prototypes.choose_sharpness(self.validation, name, factors), **self._others()}

    def _others(self) -> dict[str, float]:
        figures = self.quality() if self.quality else {}
        if self.shortlisted is not None:
            at, m = self.validation, self.shortlisted.recall_at
            proposed = self.shortlisted.validation
            recall = measure_recall(at.network, at.material.reader, at.hardware, proposed, m, batch=self.batch, sample=SAMPLE)
            figures |= {f"shortlist recall@{m}": recall}
        return figures


def _make_step(given: Inputs, options: FinetuneOptions, setup: Setup, loss: LabelLoss, shortlisted: Shortlisted | None) -> FineTuning:
    network, train = setup.network, setup.train
    sparse = decide_sparse(network, options.sparse_updates, selects=loss.hard_negatives > 0, shared=sharing_mode() != "whole")
    anchor = _make_anchor(given, options, setup) if options.anchor else None
    candidates = None if shortlisted is None else shortlisted.train
    return FineTuning(network, train.reader, train.split, loss, setup.hardware, anchor, sparse=sparse, candidates=candidates)


def _make_anchor(given: Inputs, options: FinetuneOptions, setup: Setup) -> Anchor:
    loss = rank_loss(*given.component(LossSpec, options.anchor_loss), given.losses)
    train, known = setup.train, given.statistics
    assert known is not None, "the stage makes sure that the run has relevance"
    planter = Planter(known.table, train.split, train.reader.tokens, known.analyser, contrast=64, labels_per_document=64)
    return Anchor(planter=planter, loss=loss, weight=options.anchor, epochs=options.anchor_epochs)


def _make_monitor(
    given: Inputs, options: FinetuneOptions, setup: Setup, scored: ScoredDocuments | None, shortlisted: Shortlisted | None
) -> Monitor:
    network, hardware, batch = setup.network, setup.hardware, options.micro_batch
    quality = None
    if given.statistics is not None:
        quality = AttentionMeasure(network, setup.validation, given.statistics, hardware, k=ATTENTION_K, batch=batch)
    judge = make_judge(given, options, setup.validation.split)
    sparse = starts_sparse(network, setup.validation, hardware, batch)
    candidates = None if shortlisted is None else shortlisted.validation
    validation = Validation(
        network, setup.validation, hardware, judge, batch=batch, scored=scored, candidates=candidates, starts_sparse=sparse
    )
    return Monitor(validation=validation, quality=quality, shortlisted=shortlisted, batch=batch)


def _make_prototypes(given: Inputs, options: FinetuneOptions, setup: Setup) -> Prototypes | None:
    """What plants the label tables; None if they start plain, as by default where the decoder cannot plant them."""
    by_default = options.prototypes is None
    if options.plants_tables and (isinstance(setup.network.decoder, PlantableDecoder) or not by_default):
        return Prototypes(
            setup.network, setup.train, setup.hardware, seed=given.machine.seed, batch=options.micro_batch, session=given.session
        )
    if options.sharpness is not None:
        raise UsageError(
            "a sharpness is given, but no label tables start from prototypes",
            where="finetune, option sharpness",
            expected="--prototypes, or --init planted, with a decoder that can start its tables from prototypes",
            todo="leave --sharpness out, or add --prototypes",
        )
    return None


def _train(
    given: Inputs, options: FinetuneOptions, setup: Setup, step: FineTuning, monitor: Monitor, prototypes: Prototypes | None
) -> TrainingResult:
    """Train; the optimiser and the best epoch's copy are gone afterwards."""
    planted = prototypes is not None
    plan = make_plan(
        options,
        given.machine,
        epochs=options.epochs,
        monitor=options.monitor,
        attention=options.rate_attention,
        head=RATE_HEAD.choose(options.rate_head, planted=planted),
        boost=RATE_BOOST.choose(options.rate_boost, planted=planted),
        patience=PATIENCE.choose(options.patience, planted=planted),
        least_gain=LEAST_GAIN.choose(options.least_gain, planted=planted),
        schedule=options.schedule,
    )
    # only planted attention has an order of words that is worth another sharpness
    factors = SHARPNESSES if options.init == "planted" else (1.0,)
    if options.sharpness is not None:
        factors = (options.sharpness,)
    training = TrainingLoop(given.session, setup.network, setup.hardware, plan, setup.lengths, ROLES)
    plant = None if prototypes is None else lambda: monitor.plant(prototypes, options.monitor, factors)
    return training.run(step, lambda epoch: monitor(), plant=plant, memory=monitor.validation.memory)
