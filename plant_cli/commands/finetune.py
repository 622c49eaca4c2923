"""Stage 2, `plant finetune`: train the network to assign labels, or fit scorers without a
network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plant_cli.api import Column, Result, ScorerSpec, StageContext, Table
from plant_cli.api.context import Cell, with_tag
from plant_cli.api.functions import Named
from plant_cli.commands.command_options import MigOptions
from plant_cli.commands.mig import make_rule
from plant_cli.relevance.relevance_table import read_edits
from plant_cli.relevance.weighing import BY_INFORMATION, RelevanceRule
from plant_cli.runs.folder import StageFolder
from plant_cli.runs.session import open_session
from plant_cli.scoring.calibration import FLATTEST, Calibrated, find_flattest
from plant_cli.scoring.decisions import describe_source, describe_tuning
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import has_network
from plant_cli.scoring.predictions import ALL_PARTS
from plant_cli.scoring.scorer_fitting import FusionFit
from plant_cli.training.judging import VALIDATION_METRICS, Gain
from plant_cli.training.scorers_alone import AloneResult, StageInputs, finetune_scorers
from plant_cli.training.training_options import FinetuneOptions

NETWORKED = Named("plant_cli.commands.finetune_network:run_network")  # with torch


def run(context: StageContext, options: FinetuneOptions) -> Result:
    """Fine-tune, keep the best epoch on validation, and tune the decision threshold there; or
    fit scorers alone.
    """
    corpus, tag, seed = context.corpus(), context.tag, context.machine.seed
    find_excluded(
        options.exclude, corpus.labels
    )  # a name that no label has is told before hours of training
    before = StageFolder(context.folder).usable()
    scorers_alone = before.is_done() and not has_network(
        before.path
    )  # as where the network did not add to them
    if not options.network or (options.only_new and scorers_alone):
        stage = StageInputs(
            corpus=corpus,
            machine=context.machine,
            session=open_session(context),
            component=context.component,
            rule=find_rule(context, options),
        )
        return _report_scorers(finetune_scorers(stage, options), options, seed, tag)
    result: Result = NETWORKED(context, options)
    return result


def find_rule(context: StageContext, options: FinetuneOptions) -> RelevanceRule:
    """How the run finds the relevance of words, where a scorer asks for it; by mutual
    information where it has not yet.
    """
    asked = any(
        context.component(ScorerSpec, one)[0].needs_relevance for one in options.chosen_scorers
    )
    folder = context.find_input("mig", options.relevance) if asked else None
    if folder is None:
        return BY_INFORMATION
    record = StageFolder(folder).record()
    given = MigOptions() if record is None else MigOptions(**record.options)
    return make_rule(context.corpus(), given, context.component, read_edits(folder))


def _report_scorers(
    reached: AloneResult, options: FinetuneOptions, seed: int, tag: str | None
) -> Result:
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in reached.fit.seconds.items())
    threshold = describe_threshold(reached.threshold, options, reached.split)
    notes = [threshold, tell_calibration(reached.calibrated), f"fitted: {seconds}"]
    if reached.split == "train":
        notes.append(
            "there is no validation split: figures and threshold are of left-out scores of train"
        )
    notes += [f"left out: {name} ({why})" for name, why in reached.fit.missing.items()]
    notes.append(f"{reached.conditions}; seed {seed}")
    return Result(
        tables=[
            tabulate_parts(f"Scorers ({reached.split})", reached.parts, reached.figures, notes)
        ],
        next_step=f"{with_tag('plant eval', tag)} --bootstrap 1000",
        summary={
            **reached.figures,
            "scorers": list_scorers(reached.fit),
            "ECE": reached.calibrated.reliability.error,
            "threshold": reached.threshold,
        },
    )


def list_scorers(fitted: FusionFit | None) -> list[str]:
    """The names of the scorers of a model."""
    return [] if fitted is None else [scorer.name for scorer in fitted.scorers.scorers]


def tabulate_parts(
    title: str,
    parts: Mapping[str, Mapping[str, float]],
    whole: Mapping[str, float],
    notes: Sequence[str],
) -> Table:
    """A table of the figures of each part of a model, and of all together."""
    columns = [
        Column(name="part"),
        *(Column(name=name, kind="points") for name in VALIDATION_METRICS),
    ]
    rows: list[list[Cell]] = [
        [name, *(figures[figure] for figure in VALIDATION_METRICS)]
        for name, figures in {**parts, ALL_PARTS: whole}.items()
    ]
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def tell_calibration(calibrated: Calibrated) -> str:
    """How far probabilities are off, and by what they were calibrated."""
    before, after = calibrated.before.error, calibrated.reliability.error
    if before is None or after is None:
        return (
            "the error of probabilities is not measured: there is no pair of document and "
            "label to measure it on"
        )
    pairs = int(calibrated.reliability.counts.sum())
    details = [
        f"{name} Brier score {losses.brier:.4f}, log loss {losses.log_loss:.4f}"
        for name, losses in calibrated.losses.items()
    ]
    linear = calibrated.calibration.linear
    flattest = find_flattest(linear)
    if flattest:
        some = f"labels of training frequency {' and '.join(f'{knot:g}' for knot in flattest)}"
        labels = some if len(flattest) < len(linear.knots) else "all labels"
        details.append(
            f"the slope of {labels} is at its floor, {FLATTEST:g}: their scores hardly separate "
            "right from wrong"
        )
    return (
        f"probabilities are off by {100 * after:.2g} points on average (expected calibration "
        f"error over {pairs:,} pairs of document "
        f"and label; {100 * before:.2g} before); calibrated by {calibrated.method}, the better on "
        f"left-out documents ({'; '.join(details)})"
    )


def describe_threshold(threshold: float, options: FinetuneOptions, split: str) -> str:
    """What threshold was tuned, and on what."""
    if options.tune != "per-label":
        return f"threshold {threshold:.3g} {describe_tuning(split, options.tune)}"
    return (
        f"one threshold for each label tuned on {describe_source(split)}; {threshold:.3g} (the "
        "best for macro-F1) for labels without a "
        f"{split} document among those scored highest"
    )


def describe_gain(gain: Gain, *, left_out: bool = False) -> str:
    """Whether the network is significantly better than the scorers alone."""
    if gain.low > 0:
        return f"the network adds to the scorers: {gain}, on the documents that chose its epoch"
    if left_out:
        return (
            "the model has the scorers alone: the network's gain over them is not significant "
            f"on these documents: {gain}"
        )
    advice = "`plant finetune --no-network --force` gives a model of the scorers alone"
    return (
        f"the network's gain over the scorers is not significant on these documents: {gain}; "
        f"{advice}"
    )
