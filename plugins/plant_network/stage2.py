"""Stage 2: the network is trained to assign labels, with exact hard negatives, from planted
attention or from nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import (
    Choice,
    Decoder,
    GroupedDecoder,
    LabelLoss,
    LossSpec,
    PairDecoder,
    PlantableDecoder,
    RankLoss,
    Reading,
    Reporter,
    ShortlistSpec,
    Split,
    UsageError,
)
from plant_cli.scoring.calibration import Calibrated
from plant_cli.scoring.decisions import Bands
from plant_cli.scoring.fused_scorers import ScoredDocuments
from plant_cli.scoring.predictions import ALL_SCORERS, NETWORK
from plant_cli.scoring.proposed_labels import ShortlistedLabels, propose
from plant_cli.scoring.scorer_fitting import FusionFit
from plant_cli.scoring.top_labels import Room
from plant_cli.training.judging import Gain
from plant_cli.training.scorers_alone import (
    build_combination,
    fit_chosen,
    judge_parts,
    make_judge,
    rank_scored,
    save_combination,
)
from plant_cli.training.training_options import (
    LEAST_GAIN,
    PATIENCE,
    RATE_BOOST,
    RATE_HEAD,
    ROLES,
    SHORTLIST_FROM,
    FinetuneOptions,
)
from plant_network.answers import rank_by_attention, rank_tokens
from plant_network.assembly import EarlierNetwork, Network, save_network
from plant_network.candidates import measure_recall, proposed_pairs, score_all, score_pairs
from plant_network.checkpointing import load_state, trained_state
from plant_network.closed_form import RIDGE_SHARPNESSES, fit_classifiers
from plant_network.compute import send
from plant_network.hardware import Hardware
from plant_network.loop import Plan, TrainingLoop, TrainingResult
from plant_network.materials import Inputs, Setup, build_loss, require_same_network, set_up
from plant_network.new_labels import plant_new_labels
from plant_network.optimiser import Rates, decide_sparse
from plant_network.planting import AttentionMeasure, Planter, planted_loss
from plant_network.prototypes import SHARPNESSES, Prototypes
from plant_network.reading import HiddenReader
from plant_network.throughput import Throughput, measure_throughput
from plant_network.validation import Validation, starts_sparse

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


@dataclass
class FineTuning:
    """Loss of one micro-batch of stage 2 (`plant_network.loop.BatchLoss`).

    The loss looks only at the positives and the hardest negatives of each document. All labels are
    scored once, in memory O(B·L); the backward pass of the label attention computes only the
    (document, label) pairs that were chosen. With sparse updates labels are scored without
    gradient, and the chosen ones of each document once more with it: no gradient has a row for
    every label. With candidates hard negatives are these. If they are no more than the loss looks
    at, all of them count: they are scored once, beside positives and random negatives (in the
    loss's proportion to them), and nothing else is. Of more, all are scored without gradient, and
    the hardest once more with it.
    """

    network: Network
    reader: HiddenReader
    split: Split
    loss: LabelLoss
    hardware: Hardware
    anchor: Anchor | None = None
    sparse: bool = field(default=False, kw_only=True)
    candidates: ShortlistedLabels | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        candidates, loss = self.candidates, self.loss
        self.all_count = candidates is not None and candidates.most <= loss.hard_negatives
        self.random = loss.random_negatives
        if candidates is not None and self.all_count:
            self.random = -(-loss.random_negatives * candidates.most // loss.hard_negatives)
        self.twice = not self.all_count and (self.sparse or candidates is not None)

    def __call__(self, rows: Rows, *, epoch: int, seed: int) -> tuple[Tensor, float]:
        """The mean loss over some documents, and how many these are."""
        reading = self.reader.read(rows)
        targets = send(
            torch.from_numpy(self.split.gold[rows].toarray().astype(np.float32)),
            reading.mask.device,
        )
        with self.hardware.autocast():
            if isinstance(self.network.decoder, GroupedDecoder):
                reading = read = self.network.decoder.read_groups(reading)
                of_groups = group_loss(
                    self.network.decoder.groups, self.loss, read.group_logits, targets, seed
                )
                loss = self._label_loss(reading, targets, rows, seed) + of_groups
            else:
                loss = self._label_loss(reading, targets, rows, seed)
            if self.anchor is not None and self.anchor.strength(epoch) > 0:
                planted, _ = planted_loss(
                    self.network, self.anchor.planter, self.anchor.loss, reading, rows, seed
                )
                loss = loss + self.anchor.strength(epoch) * planted
        return loss, float(len(rows))

    def _label_loss(self, reading: Reading, targets: Tensor, rows: Rows, seed: int) -> Tensor:
        draw = torch.Generator(device=targets.device).manual_seed(seed)
        if self.candidates is not None and self.all_count:
            selected = add_random(
                proposed_pairs(self.candidates, rows, targets.device) | (targets > 0),
                self.random,
                draw,
            )
            return self.loss(
                score_pairs(self.network.decoder, reading, selected), targets, selected
            )
        with torch.set_grad_enabled(not self.twice):
            if self.candidates is None:
                logits = score_all(self.network.decoder, reading, self.network.labels)
            else:
                logits = score_pairs(
                    self.network.decoder,
                    reading,
                    proposed_pairs(self.candidates, rows, reading.mask.device),
                )
        if not self.loss.hard_negatives:
            return self.loss(logits, targets)
        selected = self.loss.select(logits.detach(), targets, draw)
        if self.twice:
            logits = torch.where(
                selected, score_pairs(self.network.decoder, reading, selected), logits
            )
        return self.loss(logits, targets, selected)


def add_random(chosen: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """The chosen labels [B, L] and, for each document, `count` others (all of them if there are
    fewer), drawn without replacement.
    """
    noise = torch.rand(chosen.shape, generator=draw, device=chosen.device).masked_fill_(
        chosen, -1.0
    )
    return chosen.scatter(1, noise.topk(min(count, chosen.shape[1]), dim=1).indices, True)


def group_loss(
    groups: Tensor, loss: LabelLoss, logits: Tensor, targets: Tensor, seed: int
) -> Tensor:
    """The loss over groups of labels, by their logits [B, G]; a document (targets [B, L]) has
    the groups [L] of its labels.
    """
    of_groups = (
        torch.zeros_like(logits).index_add_(1, groups, targets.to(logits.dtype)).clamp_max_(1.0)
    )
    if not loss.hard_negatives:
        return loss(logits, of_groups)
    draw = torch.Generator(device=logits.device).manual_seed(seed)
    return loss(logits, of_groups, loss.select(logits.detach(), of_groups, draw))


DEFAULT_SHORTLIST, NO_SHORTLIST = "words", "none"
MEASURED = 100
"""The recall of a shortlist is measured on so many of the labels that the network scores
highest, at most.
"""


@dataclass(frozen=True, kw_only=True)
class Shortlisted:
    """What a shortlist proposes."""

    train: ShortlistedLabels  # of each training document; its hard negatives are among them
    # of each validation document, with all that scorers list; these are scored between epochs
    validation: ShortlistedLabels
    recall_at: (
        int  # so many of the labels that the network scores highest are looked for among them
    )


def choose_shortlist(
    options: FinetuneOptions, hard_negatives: int, labels: int, *, relevance: bool
) -> Choice | None:
    """The shortlist of stage 2; None where every label is looked at.

    By default there is one if there are many labels, relevance and scorers: labels that are hardly
    ever proposed learn little, and where a network scores alone some of them come first.
    `shortlist_labels` then also asks for a decoder that scores chosen pairs (`PairDecoder`). The
    loss looks at so many hard negatives of each document, or at all labels (0).
    """
    if options.shortlist is None:
        useful = hard_negatives and options.chosen_scorers and labels >= SHORTLIST_FROM
        return Choice(name=DEFAULT_SHORTLIST) if useful and relevance else None
    if options.shortlist.name == NO_SHORTLIST:
        return None
    if not hard_negatives:
        raise UsageError(
            "a shortlist is of no use to a loss that looks at all labels",
            where="finetune, option shortlist",
            expected="a loss with hard negatives",
            todo="leave --shortlist out, or --set finetune.loss.hard_negatives=1000",
        )
    return options.shortlist


def shortlist_labels(
    given: Inputs,
    options: FinetuneOptions,
    setup: Setup,
    loss: LabelLoss,
    scored: ScoredDocuments | None,
    chosen: Choice | None,
) -> Shortlisted | None:
    """The labels of train and validation that a chosen shortlist proposes; None where every
    label is looked at.
    """
    if chosen is None or (
        options.shortlist is None and not isinstance(setup.network.decoder, PairDecoder)
    ):
        return None
    assert given.statistics is not None  # the stage has made sure of them, or they were looked for
    splits = {
        one.split.name: (one.split.texts, one.words)
        for one in (setup.train, setup.validation)
        if one.words is not None
    }
    proposed = propose(
        given.component(ShortlistSpec, chosen), given.statistics, splits, given.session.reporter
    )
    train, validation = proposed["train"], proposed["validation"]
    recall = validation.recall(setup.validation.split.gold)
    if scored is not None:
        validation = validation.join(scored.pairs.rows, scored.pairs.labels)
    joined = validation.recall(setup.validation.split.gold)
    given.session.reporter.note(
        f"shortlist {chosen.name}: {train.mean:.0f} of {setup.network.labels} labels are proposed "
        "for a training document, on average; for "
        f"those of validation {recall:.1%} of their own labels are. Between epochs "
        f"{validation.mean:.0f} labels of each are scored, "
        f"{joined:.1%} of its own among them; the figures at the end are of all labels"
    )
    return Shortlisted(
        train=train, validation=validation, recall_at=min(loss.hard_negatives, MEASURED)
    )


ATTENTION_K = 1000
"""Cut k of the nDCG@k that shows what stage 2 keeps of the planted attention."""
STAGE2_SAMPLE = 16
"""Validation documents of which every label is scored after each epoch, to see what a shortlist
misses.
"""


@dataclass(frozen=True, kw_only=True)
class FineTuned:
    """What stage 2 reached."""

    training: TrainingResult  # the history and the epoch that was kept
    quality: (
        str | None
    )  # the name of the figure that measures attention; None if the run has no relevance
    threshold: float  # the decision threshold for all labels
    bands: Bands
    scorers: FusionFit | None  # those beside the network, as they were fitted; None: there are none
    parts: Mapping[str, Mapping[str, float]]  # validation figures of each part alone, by its name
    gain: (
        Gain | None
    )  # of network and scorers together on the scorers alone, on validation; None without scorers
    left_out: (
        bool  # whether the network is no part of the model, since it does not add to the scorers
    )
    figures: Mapping[str, float]
    """Of network and scorers together, on validation, every label scored; those of epochs may
    be of a shortlist.
    """
    # how much the network and the scorers count, and how well probabilities hold on validation
    calibrated: Calibrated
    conditions: str  # which documents and labels the figures are of
    speed: Throughput  # how fast it trained
    cuts: dict[str, dict[str, Any]]  # what of each split was not read


def finetune(given: Inputs, options: FinetuneOptions) -> FineTuned:
    """Train the network, keep the epoch that is best on validation together with the scorers,
    calibrate and tune the threshold there.

    Network, scorers and thresholds are saved in the stage's folder.
    """
    loss: LabelLoss = build_loss(*given.component(LossSpec, options.loss), "label", given.losses)
    chosen = choose_shortlist(
        options,
        loss.hard_negatives,
        len(given.corpus.labels),
        relevance=given.statistics is not None,
    )
    if given.planted is not None:
        require_same_network(given.planted, given)
    fit = fit_chosen(given, options)
    scored = None if fit is None else fit.validation
    if options.only_if_better and scored is None:
        given.session.reporter.warn(
            "--only-if-better changes nothing: there are no scorers that the network could be "
            "better than"
        )
    setup = set_up(given, options, freeze_backbone=False, plants=options.init == "planted")
    shortlisted = shortlist_labels(given, options, setup, loss, scored, chosen)
    step = _make_step(given, options, setup, loss, shortlisted)
    room = setup.find_room(step, options)
    monitor = _make_monitor(given, options, setup, scored, shortlisted, room)
    outcome = _train(given, options, setup, step, monitor, room)
    judged = monitor.validation.run(every_label=True)
    judge = monitor.validation.judge
    calibrated, whole, figures = (
        judged.calibrated,
        judged.whole,
        monitor.validation.describe(judged),
    )
    parts: dict[str, dict[str, float]] = {}
    gain, left_out = None, False
    if scored is not None:
        without, scorers_alone = rank_scored(judge, scored)
        parts = {
            NETWORK: judge.figures(judged.alone),
            **judge_parts(judge, scored),
            ALL_SCORERS: judge.figures(scorers_alone),
        }
        gain = judge.gain(judged.whole, scorers_alone)
        left_out = options.only_if_better and gain.low <= 0
        if left_out:
            calibrated, whole, figures = without, scorers_alone, {**figures, **parts[ALL_SCORERS]}
    if not left_out:
        save_network(setup.network, given.session.folder)
    save_combination(
        given,
        build_combination(judge, calibrated, None if fit is None else fit.scorers),
        calibrated,
        parts,
        fit,
    )
    usual = setup.count_usual(room, options)
    speed = measure_throughput(
        setup.network, setup.train.reader, setup.hardware, step, outcome, usual
    )
    return FineTuned(
        training=outcome,
        quality=monitor.quality.name if monitor.quality else None,
        threshold=judge.save_thresholds(
            whole, options.tune, given.session, given.corpus.labels.hash
        ),
        bands=judge.save_bands(whole, given.session, given.corpus.labels.hash),
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


def warn_of_lost_order(
    name: str, before: Mapping[str, float], now: Mapping[str, float], reporter: Reporter
) -> None:
    """Warn if the sharpness that was chosen left less than half of the order of words that
    stage 1 planted, beyond a random order.
    """
    chance = before[f"random {name}"]
    if now[name] - chance < (before[name] - chance) / 2:
        reporter.warn(
            f"attention of sharpness {now['sharpness']:g} orders words hardly as relevance does: "
            f"{name} {100 * now[name]:.1f}, "
            f"{100 * before[name]:.1f} as planted, {100 * chance:.1f} in random order; "
            "--sharpness 1 keeps the planted order"
        )


def _go_on(
    earlier: EarlierNetwork,
    given: Inputs,
    setup: Setup,
    prototypes: Prototypes | None,
    monitor: Monitor,
    figure: str,
) -> dict[str, float]:
    """The figures of an earlier network on the corpus that has grown, with rows of new labels."""
    batch = monitor.validation.batch
    if earlier.new_labels and earlier.stays:
        plant_new_labels(
            earlier, setup.network, setup.train, given.corpus, setup.hardware, batch, given.session
        )
    elif earlier.new_labels and prototypes is not None:
        prototypes.choose_sharpness(monitor.validation, figure, (1.0,))
        earlier.carry_over(setup.network)
    return monitor()


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """The figures of an epoch."""

    validation: Validation  # gives metrics on the validation split
    quality: AttentionMeasure | None  # gives the quality of attention; None without relevance
    shortlisted: (
        Shortlisted | None
    )  # the share of the highest labels that it proposes is measured; None without one

    def __call__(self, figures: dict[str, float] | None = None) -> dict[str, float]:
        """All figures of the network as it is; those of validation may be there already."""
        found = {**(figures or self.validation()), **(self.quality() if self.quality else {})}
        if self.shortlisted is not None:
            at, m = self.validation, self.shortlisted.recall_at
            proposed = self.shortlisted.validation
            recall = measure_recall(
                at.network,
                at.material.reader,
                at.hardware,
                proposed,
                m,
                batch=at.batch,
                sample=STAGE2_SAMPLE,
            )
            found[f"shortlist recall@{m}"] = recall
        return found


def _make_step(
    given: Inputs,
    options: FinetuneOptions,
    setup: Setup,
    loss: LabelLoss,
    shortlisted: Shortlisted | None,
) -> FineTuning:
    network, train, known, anchor = setup.network, setup.train, given.statistics, None
    sparse = decide_sparse(network, options.sparse_updates, selects=loss.hard_negatives > 0)
    if options.anchor:
        assert known is not None, "the stage makes sure that the run has relevance"
        ranking = build_loss(*given.component(LossSpec, options.anchor_loss), "rank", given.losses)
        alone = options.fills_memory(setup.hardware.device.type, setup.hardware.processes.count)
        planter = Planter(known.table, train, contrast=64, labels_per_document=64, alone=alone)
        anchor = Anchor(
            planter=planter, loss=ranking, weight=options.anchor, epochs=options.anchor_epochs
        )
    candidates = None if shortlisted is None else shortlisted.train
    return FineTuning(
        network,
        train.reader,
        train.split,
        loss,
        setup.hardware,
        anchor,
        sparse=sparse,
        candidates=candidates,
    )


def _make_monitor(
    given: Inputs,
    options: FinetuneOptions,
    setup: Setup,
    scored: ScoredDocuments | None,
    shortlisted: Shortlisted | None,
    room: Room,
) -> Monitor:
    network, hardware = setup.network, setup.hardware
    quality = None
    if given.statistics is not None:
        quality = AttentionMeasure(
            network,
            setup.validation,
            given.statistics,
            hardware,
            k=ATTENTION_K,
            batch=room,
            rank=rank_by_attention if network.needs_words else rank_tokens,
        )
    validation = Validation(
        network,
        setup.validation,
        hardware,
        make_judge(given, options, setup.validation.split),
        batch=room,
        scored=scored,
        candidates=None if shortlisted is None else shortlisted.validation,
        starts_sparse=starts_sparse(network, setup.validation, hardware, room),
    )
    return Monitor(validation=validation, quality=quality, shortlisted=shortlisted)


def choose_head(options: FinetuneOptions, decoder: Decoder) -> str:
    """What the labels' classifiers start from: what the user asks for, else what the decoder
    can.
    """
    if options.head is not None:
        return options.head
    able = options.plants_tables and isinstance(decoder, PlantableDecoder)
    return "prototypes" if able else "random"


def fit_sharpest(setup: Setup, factors: Sequence[float], **given: Any) -> float:
    """Fit classifiers in closed form with each factor on the learned scores, and leave those
    behind that validation finds likeliest.
    """
    network = setup.network
    decoder = cast("PlantableDecoder", network.decoder)
    names = frozenset(name for name, _ in network.named_parameters() if name.startswith("decoder."))
    start = best = trained_state(network, names)
    chosen, least = factors[0], math.inf
    for factor in sorted(factors):
        load_state(network, start)
        if factor != 1.0:
            decoder.sharpen(factor)
        found = fit_classifiers(network, setup.train, setup.validation, setup.hardware, **given)
        if found.loss < least:
            chosen, least, best = factor, found.loss, trained_state(network, names)
    load_state(network, best)
    return chosen


def _train(
    given: Inputs,
    options: FinetuneOptions,
    setup: Setup,
    step: FineTuning,
    monitor: Monitor,
    room: Room,
) -> TrainingResult:
    """Train; the optimiser and the best epoch's copy are gone afterwards."""
    head = choose_head(options, setup.network.decoder)
    planted = head != "random"
    if not planted and (options.sharpness is not None or not options.epochs):
        raise UsageError(
            f"the decoder '{setup.network.section.decoder.name}' has no classifiers that train "
            "could start",
            where=f"finetune, option {'epochs = 0' if not options.epochs else 'sharpness'}",
            expected="a decoder whose tables can be set (plant_cli.api.ClosedFormDecoder, "
            "PlantableDecoder)",
            todo="leave the option out, or choose another --decoder",
        )
    plan = Plan(
        options=options,
        epochs=0 if given.earlier is not None and given.earlier.stays else options.epochs,
        monitor=options.monitor,
        rates=Rates(
            head=RATE_HEAD.choose(options.rate_head, planted=planted),
            boost=RATE_BOOST.choose(options.rate_boost, planted=planted),
            attention=options.rate_attention,
            backbone=options.rate_backbone,
            layers=options.layer_rates,
        ),
        patience=PATIENCE.choose(options.patience, planted=planted),
        least_gain=LEAST_GAIN.choose(options.least_gain, planted=planted),
        schedule=options.schedule,
        seed=given.machine.seed,
        room=room,
    )
    # only planted attention has an order of words that is worth another sharpness
    offered = RIDGE_SHARPNESSES if head == "ridge" else SHARPNESSES
    by_default = offered if options.init == "planted" else (1.0,)
    factors = by_default if options.sharpness is None else (options.sharpness,)
    reads: dict[str, Any] = {
        "seed": given.machine.seed,
        "batch": room,
        "session": given.session,
    }
    prototypes = None
    if head == "prototypes":
        prototypes = Prototypes(setup.network, setup.train, setup.hardware, **reads)

    def start() -> dict[str, float]:
        validation, judge = monitor.validation, monitor.validation.judge
        order = monitor.quality if options.init == "planted" else None
        before = order() if order else {}
        if prototypes is None:
            sharpness = fit_sharpest(setup, factors, **reads)
            figures = {**validation(), "sharpness": sharpness}
        else:
            figures = prototypes.choose_sharpness(validation, options.monitor, factors)
        if validation.scored is not None:
            gain = judge.gain(validation.run().whole, rank_scored(judge, validation.scored)[1])
            given.session.reporter.note(
                "before training, the network changes what the scorers reach on validation by "
                f"{gain}"
            )
        now = monitor(figures)
        if order and options.sharpness is None:
            warn_of_lost_order(order.name, before, now, given.session.reporter)
        return now

    plant = start if planted else None
    if given.earlier is not None:
        plant = partial(_go_on, given.earlier, given, setup, prototypes, monitor, options.monitor)
    training = TrainingLoop(
        given.session, setup.network, setup.hardware, plan, setup.lengths, ROLES
    )
    return training.run(step, monitor, plant=plant, memory=monitor.validation.memory)
