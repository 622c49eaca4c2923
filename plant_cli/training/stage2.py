"""Stage 2 as a whole: the network is trained to assign labels, from planted attention or from nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plant_cli.api import LabelLoss, LossSpec, PlantableDecoder, UsageError
from plant_cli.artefacts.predictions import NETWORK, SCORERS
from plant_cli.inference.calibration import Calibrated
from plant_cli.inference.model import save_combination
from plant_cli.inference.scorers import FittedScorers, ScoredDocuments
from plant_cli.model.candidates import measure_recall
from plant_cli.model.network import save_network
from plant_cli.model.word_statistics import WordStatistics
from plant_cli.parallel.strategies.choice import sharing_mode
from plant_cli.training.attention_quality import AttentionMeasure
from plant_cli.training.batches import micro_sizes
from plant_cli.training.finetuning import Anchor, FineTuning
from plant_cli.training.judging import Gain
from plant_cli.training.loop import Plan, Training, TrainingResult, make_plan
from plant_cli.training.losses import label_loss, rank_loss
from plant_cli.training.materials import Inputs, Setup, set_up
from plant_cli.training.optimiser import decide_sparse
from plant_cli.training.options import LEAST_GAIN, PATIENCE, RATE_BOOST, RATE_HEAD, ROLES, FinetuneOptions
from plant_cli.training.planting import Planter
from plant_cli.training.prototypes import SHARPNESSES, Prototypes
from plant_cli.training.scoring import combine, describe, fit_beside, judge_parts, make_judge, rank_scored
from plant_cli.training.shortlisting import Shortlisted, shortlist_labels
from plant_cli.training.throughput import Throughput, measure_throughput
from plant_cli.training.validation import Validation, starts_sparse

ATTENTION_K = 1000
"""Cut k of the nDCG@k that shows what stage 2 keeps of the planted attention."""
SAMPLE = 16
"""Validation documents of which every label is scored after each epoch, to see what a shortlist misses."""


@dataclass(frozen=True, kw_only=True)
class FineTuned:
    """What stage 2 reached.

    Args:
        training: the history and the epoch that was kept.
        quality: the name of the figure that measures attention; None if the run has no relevance.
        threshold: the decision threshold for all labels.
        scorers: those beside the network, as they were fitted; None: there are none.
        parts: validation figures of each part alone, by its name.
        gain: of network and scorers together on the scorers alone, on validation; None without scorers.
        left_out: whether the network is no part of the model, since it does not add to the scorers.
        figures: of network and scorers together, on validation, every label scored; those of epochs may be of a shortlist.
        calibrated: how much the network and the scorers count, and how well probabilities hold on validation.
        conditions: which documents and labels the figures are of.
        speed: how fast it trained.
        cuts: what of each split was not read.
    """

    training: TrainingResult
    quality: str | None
    threshold: float
    scorers: FittedScorers | None
    parts: Mapping[str, Mapping[str, float]]
    gain: Gain | None
    left_out: bool
    figures: Mapping[str, float]
    calibrated: Calibrated
    conditions: str
    speed: Throughput
    cuts: dict[str, dict[str, Any]]


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
    scorers, scored = fit_beside(given, options)
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
    combination = combine(calibrated, None if scorers is None else scorers.scorers, judge.train_counts[: setup.network.labels])
    save_combination(combination, given.session.folder, given.corpus, describe(calibrated, parts, scorers))
    largest = micro_sizes(options.batch, options.micro_batch)[0]
    speed = measure_throughput(setup.network, setup.train.reader, setup.hardware, step, outcome, largest)
    return FineTuned(
        training=outcome,
        quality=monitor.quality.name if monitor.quality else None,
        threshold=judge.save_thresholds(whole, options.tune, given.session, given.corpus.labels.hash),
        scorers=scorers,
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
    """The figures of an epoch.

    Args:
        validation: gives metrics on the validation split.
        quality: gives the quality of attention; None without relevance.
        shortlisted: what a shortlist proposes; None without one. Of the labels scored highest, the share that it proposes is measured.
        batch: documents in memory at once.
    """

    validation: Validation
    quality: AttentionMeasure | None
    shortlisted: Shortlisted | None
    batch: int

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


def _statistics(given: Inputs) -> WordStatistics:
    """For options that cannot do without: the stage has made sure that the run has them."""
    assert given.statistics is not None
    return given.statistics


def _make_step(given: Inputs, options: FinetuneOptions, setup: Setup, loss: LabelLoss, shortlisted: Shortlisted | None) -> FineTuning:
    network, train = setup.network, setup.train
    sparse = decide_sparse(network, options.sparse_updates, selects=loss.hard_negatives > 0, shared=sharing_mode() != "whole")
    anchor = _make_anchor(given, options, setup) if options.anchor else None
    candidates = None if shortlisted is None else shortlisted.train
    return FineTuning(network, train.reader, train.split, loss, setup.hardware, anchor, sparse=sparse, candidates=candidates)


def _make_anchor(given: Inputs, options: FinetuneOptions, setup: Setup) -> Anchor:
    loss = rank_loss(*given.component(LossSpec, options.anchor_loss), given.losses)
    train = setup.train
    known = _statistics(given)
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


def _choose_factors(options: FinetuneOptions) -> tuple[float, ...]:
    """The sharpness factors that are tried: only planted attention has an order of words worth another sharpness."""
    if options.sharpness is not None:
        return (options.sharpness,)
    return SHARPNESSES if options.init == "planted" else (1.0,)


def _train(
    given: Inputs, options: FinetuneOptions, setup: Setup, step: FineTuning, monitor: Monitor, prototypes: Prototypes | None
) -> TrainingResult:
    """Train; the optimiser and the best epoch's copy are gone afterwards."""
    plan = _make_plan(given, options, planted=prototypes is not None)
    training = Training(given.session, setup.network, setup.hardware, plan, setup.lengths, ROLES)
    factors = _choose_factors(options)
    plant = None if prototypes is None else lambda: monitor.plant(prototypes, options.monitor, factors)
    return training.run(step, lambda epoch: monitor(), plant=plant, memory=monitor.validation.memory)


def _make_plan(given: Inputs, options: FinetuneOptions, *, planted: bool) -> Plan:
    return make_plan(
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
