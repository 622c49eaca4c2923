"""`plant eval`: every metric of a system on one split, with confidence intervals and the rare-label report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plant_cli.api import DataError, MetricSpec, Options, Result, StageContext, StageSpec, option
from plant_cli.base.sizes import SIZE_PATTERN, read_size
from plant_cli.evaluation.conventions import find_convention

if TYPE_CHECKING:
    from plant_cli.evaluation.gold import Gold
    from plant_cli.evaluation.report import Conditions
    from plant_cli.evaluation.score import Evaluation
    from plant_cli.evaluation.systems import System
    from plant_cli.kit.metrics import ScoreTable


class EvalOptions(Options):
    """Options of `eval`."""

    bootstrap: int = option(1000, "Resamples of the documents behind the intervals; 0: no intervals.", ge=0)
    level: float = option(0.95, "Coverage of the intervals.", gt=0, lt=1)
    convention: str = option("plant", "Whose way of scoring: plant, paper, xmlrepo, caml, libmultilabel or annif.")
    metric: list[str] = option([], "Only this metric, such as P@5 or 'R@10[1-5]' (repeatable).", short="-m")
    require: list[str] = option([], "Fail (exit code 7) unless this holds, such as 'P@5>=0.6' (repeatable).")
    predictions: str | None = option(
        None, "Evaluate another tool's predictions: Parquet, JSON lines or CSV with doc_id, labels, scores.", path=True
    )
    threshold: float | None = option(
        None, "Assign labels that score at least this (default: as tuned on validation; 0.5 for another tool)."
    )
    split: Literal["train", "validation", "test"] = option("test", "The split to evaluate on.")
    memory: str = option("1GB", "Memory for the scores that AUC reads at a time, such as 500MB.", pattern=SIZE_PATTERN)


def run(context: StageContext, options: EvalOptions) -> Result:
    """Compute, write and show the metrics; then check what was required."""
    from plant_cli.evaluation.gates import check_gates, parse_gates

    gates = parse_gates(options.require)
    evaluation, conditions = _evaluate(context, options, required=[gate.metric for gate in gates])
    result = _write(context.folder, evaluation, conditions)
    check_gates(gates, {name: score.value for name, score in evaluation.scores.items()}, str(context.folder))
    return result


def _evaluate(context: StageContext, options: EvalOptions, required: list[str]) -> tuple[Evaluation, Conditions]:
    import numpy as np

    from plant_cli.evaluation.gold import read_gold
    from plant_cli.evaluation.predictions import build_input, read_predictions
    from plant_cli.evaluation.report import Conditions
    from plant_cli.evaluation.score import evaluate

    convention = find_convention(options.convention)
    corpus = context.corpus()
    gold = read_gold(corpus, options.split)
    system = _find(context, options, corpus.labels.hash)
    predictions = read_predictions(system.predictions, gold, context.reporter)
    data = build_input(predictions, gold, system.threshold, convention, _read_scores(system, gold, read_size(options.memory)))
    if not len(data.top):
        raise DataError(
            f"no document of the {options.split} split has a gold label",
            where=context.data.path or str(context.run_path),
            expected="gold labels to measure against",
            todo="choose another split with --split",
        )
    with context.reporter.progress("resampling documents", options.bootstrap, "resamples") as task:
        evaluation = evaluate(
            data,
            context.components(MetricSpec),
            wanted=options.metric,
            required=required,
            replicates=options.bootstrap,
            level=options.level,
            generator=np.random.default_rng(context.machine.seed),
            advance=task.advance,
            remedy=_keep_scores(context, system, options.split),
        )
    conditions = Conditions(
        convention=convention,
        gold=gold,
        data=data,
        system=system.name,
        unknown=predictions.unknown,
        threshold=system.origin,
        replicates=options.bootstrap,
        level=options.level,
        seed=context.machine.seed,
        cut=system.cut,
    )
    return evaluation, conditions


def _find(context: StageContext, options: EvalOptions, label_hash: str) -> System:
    from dataclasses import replace

    from plant_cli.evaluation.systems import file_system, own_system

    if options.predictions is not None:
        return file_system(Path(options.predictions), options.threshold)
    system = own_system(context, "finetune", context.tag, options.split, label_hash)
    if options.threshold is None:
        return system
    return replace(system, threshold=options.threshold, origin=f"threshold {options.threshold:g} given")


def _read_scores(system: System, gold: Gold, memory: int) -> ScoreTable | None:
    import numpy as np

    from plant_cli.artefacts.scores import open_scores
    from plant_cli.kit.metrics import ScoreTable

    values = None if system.folder is None else open_scores(system.folder, gold.doc_ids, gold.label_hash)
    return None if values is None else ScoreTable(values=values, rows=np.arange(len(values)), memory=memory)


def _keep_scores(context: StageContext, system: System, split: str) -> str:
    """What to do to have the metrics that need every score."""
    from plant_cli.running.context import command_for

    if system.folder is None:
        return "another tool's predictions hold no others"
    other = "" if split == "test" else f" --split {split}"
    return f"`{command_for('predict', context.tag, context.run_path)}{other} --auc --force` keeps them all"


def _write(folder: Path, evaluation: Evaluation, conditions: Conditions) -> Result:
    from plant_cli.base.files import write_json
    from plant_cli.evaluation import report
    from plant_cli.evaluation.predictions import keep_documents

    content = report.as_json(evaluation, conditions)
    kept = keep_documents(conditions.gold, conditions.convention)
    doc_ids = [doc_id for doc_id, keep in zip(conditions.gold.doc_ids, kept, strict=True) if keep]
    write_json(folder / "metrics.json", content)
    write_json(folder / "intervals.json", report.intervals_as_json(evaluation, conditions))
    report.write_per_label(folder / "per_label.tsv", conditions.data, conditions.gold)
    report.write_per_document(folder / "per_document.parquet", evaluation.overall, doc_ids)
    shown = ("P@1", "P@5", "nDCG@5", "R@50", "micro-F1", "macro-F1")
    return Result(
        tables=report.make_tables(evaluation, conditions),
        data=content,
        next_step="plant finetune --init random --tag baseline, then plant significance finetune finetune-baseline",
        summary={name: evaluation.scores[name].value for name in shown if name in evaluation.scores},
    )


SPECS = (
    StageSpec(
        name="eval",
        summary="Every metric with confidence intervals, overall and for rare labels; our predictions or another tool's.",
        options=EvalOptions,
        run=run,
        sections=("data", "machine"),
        seeded=True,
        examples=("plant eval --bootstrap 1000", "plant eval --tag omikuji --predictions omikuji.parquet data.parquet"),
    ),
)
