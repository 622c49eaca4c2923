"""`plant eval`: every metric of a system on one split, with confidence intervals and the
rare-label report.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from plant_cli.api import Result, StageContext
from plant_cli.api.context import with_tag
from plant_cli.commands.command_options import EvalOptions
from plant_cli.data.files import read_size, write_json
from plant_cli.evaluation.aligned import Predictions, build_input, keep_documents, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.document_groups import (
    MeasuredGroups,
    measure_groups,
    read_groups,
    tabulate_groups,
)
from plant_cli.evaluation.foreign import Numbering, read_numbering
from plant_cli.evaluation.gold import Gold, find_hierarchy, read_gold
from plant_cli.evaluation.marked_words import draw_marked, measure_marks
from plant_cli.evaluation.measures import (
    Conditions,
    Evaluation,
    evaluate,
    measure_parts,
    write_document_table,
    write_label_table,
)
from plant_cli.evaluation.metric_tables import (
    describe_conditions,
    make_metric_tables,
    record_intervals,
    record_metrics,
    tabulate_marks,
)
from plant_cli.evaluation.reliability import describe_calibration, measure_reliability
from plant_cli.evaluation.results import (
    METRICS,
    PER_DOCUMENT_FILE,
    PER_LABEL_FILE,
    Bound,
    MarkedWords,
    check_gates,
    parse_gates,
)
from plant_cli.evaluation.systems import (
    System,
    choose_families,
    describe_thresholds,
    file_system,
    find_chosen,
    find_judged_tag,
    find_thresholds,
    read_scores,
    read_system,
    warn_leakage,
)
from plant_cli.runs.folder import Run, StageFolder
from plant_cli.runs.repetition import split_seed
from plant_cli.scoring.predictions import ALL_PARTS, NETWORK, list_parts

DRAWN_DOCUMENTS = (
    "documents with gold spans, drawn at random in the first thousands of the split; `plant "
    "explain --measure` takes all"
)
PartBounds = dict[str, dict[str, Bound]]
Reliabilities = dict[str, dict[str, Any]]
SUMMARY_METRICS = (
    "P@1",
    "P@5",
    "nDCG@5",
    "R@50",
    "micro-F1",
    "macro-F1",
)  # in the record of the stage

COMPARE = (
    "plant finetune --init random --tag baseline, then plant significance finetune "
    "finetune-baseline"
)
DECIDE = (
    "plant thresholds --target precision=0.9 says what can be assigned without a person; "
    "plant report makes a page of all figures"
)
"""What to do next where the run has no other system; the second after scorers without a
network, which have no training to compare.
"""


def run(context: StageContext, options: EvalOptions) -> Result:
    """Compute, write and show the metrics; then check what was required.

    Raises:
        GateFailed: a requirement does not hold; the results are written all the same.
    """
    gates = parse_gates(options.require)
    groups = read_groups(context, context.corpus().gold_labels(options.split).doc_ids, options.by)
    numbering = read_numbering(options.label_order, options.remove_pairs)
    evaluation, conditions, predictions = _evaluate(
        context, options, numbering, required=[gate.metric for gate in gates]
    )
    folder, parts = conditions.system.folder, PartBounds()
    if (
        folder is not None and not options.metric
    ):  # the system is of a run, and all metrics are wanted
        families = choose_families(context, options.metric_options)
        parts = measure_parts(
            folder, conditions, families, numbering, evaluation.scores, context.reporter
        )
    next_step = _suggest_next(context, options, conditions.system, parts)
    reliability, marks = (
        _measure_reliability(numbering, conditions, predictions),
        _measure_words(context, options),
    )
    kept = np.flatnonzero(keep_documents(conditions.gold, conditions.convention)).tolist()
    of_kept = {by: [values[row] for row in kept] for by, values in groups.items()}
    measured = measure_groups(evaluation, conditions, of_kept)
    result = _write(
        context.folder, evaluation, conditions, parts, measured, reliability, marks, next_step
    )
    check_gates(
        gates, {name: score.value for name, score in evaluation.scores.items()}, str(context.folder)
    )
    return result


def _evaluate(
    context: StageContext, options: EvalOptions, numbering: Numbering, required: list[str]
) -> tuple[Evaluation, Conditions, Predictions]:
    families = choose_families(context, options.metric_options)
    convention = CONVENTIONS[options.convention]
    gold = read_gold(context.corpus(), options.split)
    system = _find(context, options, gold)
    warn_leakage(system, context.reporter)
    predictions = read_predictions(system.predictions, gold, context.reporter, numbering)
    scores = read_scores(system, gold, read_size(options.memory))
    hierarchy = find_hierarchy(
        options.hierarchy, context.corpus().labels, gold.labels, context.reporter
    )
    data = build_input(predictions, gold, system.threshold, convention, scores, hierarchy)
    with context.reporter.progress("resampling documents", options.bootstrap, "resamples") as task:
        evaluation = evaluate(
            data,
            families,
            wanted=options.metric,
            required=required,
            replicates=options.bootstrap,
            level=options.level,
            generator=np.random.default_rng(context.machine.seed),
            advance=task.advance,
            remedy=_keep_scores(system, options.split),
            warn=context.reporter.warn,
        )
    conditions = Conditions(
        convention=convention,
        gold=gold,
        data=data,
        system=system,
        unknown=predictions.unknown,
        replicates=options.bootstrap,
        level=options.level,
        seed=context.machine.seed,
        metric_options=options.metric_options,
        removed=len(numbering.removed) + len(gold.excluded),
    )
    return evaluation, conditions, predictions


def _measure_reliability(
    numbering: Numbering, conditions: Conditions, predictions: Predictions
) -> Reliabilities:
    """The reliability of the system and of its network, as far as their scores are
    probabilities.
    """
    alone = list_parts(conditions.system.folder).get(NETWORK) if conditions.system.folder else None
    read = {
        ALL_PARTS: predictions,
        **(
            {NETWORK: read_predictions(alone, conditions.gold, numbering=numbering)}
            if alone
            else {}
        ),
    }
    drawn = {
        "replicates": conditions.replicates,
        "level": conditions.level,
        "seed": conditions.seed,
    }
    found = {name: measure_reliability(one, conditions.gold, **drawn) for name, one in read.items()}  # type: ignore[arg-type]
    return {name: one for name, one in found.items() if one is not None}


def _measure_words(context: StageContext, options: EvalOptions) -> MarkedWords | None:
    """Of a model of the run, on a corpus with gold spans, where all metrics are wanted."""
    if options.predictions is not None or options.metric or not options.explained:
        return None
    first = next(context.corpus().stream(options.split), None)
    if first is None or first.evidence is None:
        return None
    documents = draw_marked(first, options.explained, context.machine.seed)
    folder = context.find_input("finetune", find_judged_tag(context))  # none of an average
    return (
        measure_marks(context, folder, documents, scored=0)
        if folder is not None and len(documents)
        else None
    )


def _find(context: StageContext, options: EvalOptions, gold: Gold) -> System:
    chosen = find_chosen(context, options.thresholds)
    if options.predictions is not None:
        system = file_system(Path(options.predictions), options.threshold)
    else:
        tag = find_judged_tag(context)
        predict = context.ensure("predict", tag, {"split": options.split})
        tuned = find_thresholds(predict, lambda: context.input("finetune", tag))
        system = read_system(
            "finetune" if tuned != predict else "average", predict, lambda: tuned, gold
        )
        if options.threshold is not None:
            system = replace(
                system, threshold=options.threshold, origin=f"threshold {options.threshold:g} given"
            )
    return (
        system
        if chosen is None
        else replace(system, threshold=chosen.value, origin=describe_thresholds(chosen))
    )


def _keep_scores(system: System, split: str) -> str:
    """How to get the metrics that need every score; the path of the run is left out, so that a
    copy of it has the same results.
    """
    if system.folder is None:
        return "another tool's predictions hold no others"
    other = "" if split == "test" else f" --split {split}"
    record = StageFolder(system.folder).record()
    command = with_tag("plant predict", None if record is None else record.tag)
    return f"`{command}{other} --auc --force` in this run keeps them all"


def _suggest_next(
    context: StageContext, options: EvalOptions, system: System, parts: PartBounds
) -> str:
    """What to do next, with systems that this run has."""
    records = [(folder.name, folder.record()) for folder in Run.open(context.run_path).stages()]
    trained = [
        name
        for name, record in records
        if record is not None and record.stage == "finetune" and record.status == "done"
    ]
    own = (
        "finetune"
        if system.folder is None
        else system.folder.name.replace("predict", "finetune", 1)
    )
    if system.folder is None:
        own = shlex.quote(str(options.predictions))
    elif own not in trained:  # an average has no network of its own
        own = own.removeprefix("finetune-")
    others = [name for name in trained if name != own and split_seed(name)[1] is None]
    if others:
        first = "finetune" if "finetune" in others else others[0]
        return "plant significance " + " ".join((first, own) if own != "finetune" else (own, first))
    return DECIDE if parts and NETWORK not in parts else COMPARE


def _write(
    folder: Path,
    evaluation: Evaluation,
    conditions: Conditions,
    parts: PartBounds,
    groups: Sequence[MeasuredGroups],
    reliability: Reliabilities,
    marks: MarkedWords | None,
    next_step: str,
) -> Result:
    content = record_metrics(evaluation, conditions)
    content |= {
        key: reliability[name]
        for key, name in (("calibration", ALL_PARTS), ("calibration_network", NETWORK))
        if name in reliability
    }
    if parts:
        content["parts"] = {
            name: {metric: score.model_dump() for metric, score in scores.items()}
            for name, scores in parts.items()
        }
    if groups:
        content["by"] = {one.by: one.record() for one in groups}
    notes = [DRAWN_DOCUMENTS, describe_conditions(conditions)]
    if marks is not None:
        content["marked_words"] = marks.model_dump()
    kept = keep_documents(conditions.gold, conditions.convention)
    doc_ids = [doc_id for doc_id, keep in zip(conditions.gold.doc_ids, kept, strict=True) if keep]
    write_json(folder / METRICS, content)
    write_json(folder / "intervals.json", record_intervals(evaluation, conditions))
    write_label_table(folder / PER_LABEL_FILE, conditions.data, conditions.gold, conditions.level)
    write_document_table(
        folder / PER_DOCUMENT_FILE,
        conditions.data,
        evaluation.overall,
        doc_ids,
        describe_conditions(conditions),
    )
    return Result(
        tables=[
            *make_metric_tables(evaluation, conditions, describe_calibration(reliability), parts),
            *(tabulate_groups(one, conditions) for one in groups),
            *([] if marks is None else [tabulate_marks(conditions.gold.split, marks, notes)]),
        ],
        data=content,
        next_step=next_step,
        summary={
            name: evaluation.scores[name].value
            for name in SUMMARY_METRICS
            if name in evaluation.scores
        },
    )
