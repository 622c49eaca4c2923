"""`plant thresholds`: which labels are assigned, reviewed by a person, or rejected, so that a
target is reached on validation.
"""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

from plant_cli.api import ArtefactError, DataError, Result, SplitName, StageContext, UsageError
from plant_cli.api.context import join_tag, with_tag
from plant_cli.commands.command_options import ThresholdOptions
from plant_cli.data.files import write_json
from plant_cli.evaluation.aligned import Predictions, read_predictions
from plant_cli.evaluation.gold import Gold, read_gold
from plant_cli.evaluation.systems import Location, find_judged_tag, find_thresholds, locate
from plant_cli.evaluation.targets import parse_targets
from plant_cli.evaluation.threshold_tuning import (
    DECISIONS,
    ScoredGold,
    are_probabilities,
    choose_bands,
    decide_left_out,
    find_decisions,
    make_decision_tables,
    record_decisions,
    refuse_unreachable,
)
from plant_cli.runs.folder import VALIDATION_FILE
from plant_cli.scoring.decisions import write_thresholds
from plant_cli.scoring.predictions import PREDICTIONS

GoldAndPredictions = tuple[Gold, Predictions]


def run(context: StageContext, options: ThresholdOptions) -> Result:
    """Choose both thresholds of each label on validation, write thresholds.json and
    decisions.json, and show what they lead to.
    """
    targets, seed = parse_targets(options.target), context.machine.seed
    location = _locate(context, options)
    path = _find_validation(context, location)
    gold, predictions = _read(context, path, "validation")
    calibrated = are_probabilities(predictions)
    if not calibrated:
        context.reporter.warn(
            f"the scores of {path.name} are not probabilities: there are no expected values"
        )
    refuse_unreachable(predictions, gold, targets, path.name)
    judged = ScoredGold.of(predictions, gold)
    chosen = choose_bands(judged, targets)
    decided = {"validation": (decide_left_out(judged, targets, seed), predictions, gold)}
    if options.measure is not None:
        other, scored = _read(context, _find_measured(context, options, location), options.measure)
        masks = find_decisions(ScoredGold.of(scored, other), chosen)
        decided[options.measure] = (masks, scored, other)
    drawn = {"replicates": options.bootstrap, "level": options.level, "seed": seed}
    content = record_decisions(
        decided,
        chosen,
        {"system": location.name, "target": str(targets), "calibrated": calibrated, **drawn},
    )
    write_thresholds(
        context.folder,
        chosen.assign.tolist(),
        str(targets),
        gold.label_hash,
        chosen.review.tolist(),
    )
    write_json(context.folder / DECISIONS, content)
    return Result(
        tables=make_decision_tables(content, {name: given[-1] for name, given in decided.items()}),
        data=content,
        next_step=_suggest_next(context, location),
        summary={
            "target": str(targets),
            "automatic": content["splits"]["validation"]["automatic"]["value"],
        },
    )


def _suggest_next(context: StageContext, location: Location) -> str:
    """How the thresholds are used, by commands for the same system."""
    use = f"--thresholds {context.folder.name}"
    if location.file is not None:
        return f"plant eval --predictions {shlex.quote(location.name)} {use} --tag decided"
    suggest = f"{with_tag('plant suggest new.csv', location.tag)} {use}"
    return f"{suggest}, or plant eval {use} --tag decided" if location.tag is None else suggest


def _locate(context: StageContext, options: ThresholdOptions) -> Location:
    if options.system is None:
        tag = find_judged_tag(context)
        return Location(name=join_tag("finetune", tag), tag=tag)
    location = locate(options.system)
    if location.run is not None:
        raise UsageError(
            f"'{options.system}' is another run: its thresholds belong into its own folder",
            where="plant thresholds",
            expected="a system of the run that is worked on, or a file of predictions",
            todo=with_tag(f"plant thresholds --run {shlex.quote(str(location.run))}", location.tag),
        )
    return location


def _find_validation(context: StageContext, location: Location) -> Path:
    """The file of a system's predictions of validation."""
    if not context.corpus().has_split("validation"):
        raise DataError(
            "the corpus has no validation split",
            where=str(context.run_path / "corpus"),
            expected="documents that no network was fitted on: thresholds chosen on train promise "
            "too much, and test is for final figures",
            todo="start a run whose corpus has more documents, so that a part of train is held "
            "out, or name a file of validation",
        )
    if location.file is not None:
        return location.file
    predict, trained = (
        context.find_input("predict", location.tag),
        partial(context.input, "finetune", location.tag),
    )
    folder = trained() if predict is None else find_thresholds(predict, trained)
    if not (folder / VALIDATION_FILE).exists():
        file = (
            f"{shlex.quote(str(context.run_path))}/"
            f"{'-'.join(filter(None, ('predict', location.tag)))}/{PREDICTIONS}"
        )
        command = with_tag("plant predict", location.tag)
        raise ArtefactError(
            "the system's predictions of validation were not kept",
            where=str(folder / VALIDATION_FILE),
            expected="predictions of validation, as `plant finetune` and `plant predict "
            "--average` keep them",
            todo=f"{command} --split validation --force, then plant thresholds {file}; or train "
            "again",
        )
    return folder / VALIDATION_FILE


def _find_measured(context: StageContext, options: ThresholdOptions, location: Location) -> Path:
    """The file of a system's predictions of the split that decisions are measured on."""
    if location.file is None:
        return context.ensure("predict", location.tag, {"split": options.measure}) / PREDICTIONS
    if options.measure_predictions is None:
        raise UsageError(
            f"the predictions of {options.measure} are not named",
            where="plant thresholds, option measure",
            expected=f"a second file: '{location.name}' holds those of validation",
            todo="add --measure-predictions FILE, or leave --measure out",
        )
    return Path(options.measure_predictions)


def _read(context: StageContext, path: Path, split: SplitName) -> GoldAndPredictions:
    gold = read_gold(context.corpus(), split)
    return gold, read_predictions(path, gold, context.reporter)
