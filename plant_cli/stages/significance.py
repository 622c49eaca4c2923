"""`plant significance A B …`: tests whether the difference between system A and each other system is real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from plant_cli.api import MetricSpec, Options, Result, StageContext, StageSpec, UsageError, option
from plant_cli.evaluation.conventions import find_convention

if TYPE_CHECKING:
    from plant_cli.api import MetricValue
    from plant_cli.evaluation.comparison import Comparison
    from plant_cli.evaluation.gold import Gold

DEFAULT_METRICS = ("P@1", "P@5", "nDCG@5", "PSP@5", "R@10", "R@50", "MAP", "micro-F1", "macro-F1", "R@10[1-5]", "R@50[1-5]")


class SignificanceOptions(Options):
    """Options of `significance`."""

    systems: list[str] = option(
        ...,
        "A, then the systems to compare it with: folder in the run (finetune-baseline), tag, another run's folder, or predictions file. "
        "A positive difference means that A is better.",
        argument=True,
        path=True,
        min_length=2,
    )
    metric: list[str] = option([], f"Only this metric (repeatable). Default: {', '.join(DEFAULT_METRICS)}.", short="-m")
    bootstrap: int = option(1000, "Resamples of the documents behind the interval of the difference.", ge=1)
    permutations: int = option(10000, "Random swaps behind p (approximate randomisation); p is at least 1/(1 + this).", ge=1)
    level: float = option(0.95, "Coverage of the intervals.", gt=0, lt=1)
    convention: str = option("plant", "Whose way of scoring: plant, paper, xmlrepo, caml, libmultilabel or annif.")
    paper: bool = option(False, "Mark by the published rule: Wilcoxon over bootstrap replicates (its p shrinks with their number).")
    split: Literal["validation", "test"] = option("test", "The split to compare on.")


def run(context: StageContext, options: SignificanceOptions) -> Result:
    """Test each metric, correct over metrics and systems, and write significance.json."""
    import numpy as np

    from plant_cli.api.files import write_json
    from plant_cli.evaluation.comparison import as_json, compare
    from plant_cli.evaluation.gold import read_gold

    _refuse_repeated(options.systems)
    corpus = context.corpus()
    gold = read_gold(corpus, options.split)
    measured = [(name, _measure(context, options, name, gold)) for name in options.systems]
    with context.reporter.progress("resampling documents", options.bootstrap + options.permutations, "resamples") as task:
        comparisons = compare(
            measured,
            replicates=options.bootstrap,
            permutations=options.permutations,
            level=options.level,
            generator=np.random.default_rng(context.machine.seed),
            advance=task.advance,
        )
    content = {
        "split": options.split,
        "documents": len(gold.doc_ids),
        "gold": gold.hash,
        "seed": context.machine.seed,
        **options.model_dump(include={"convention", "bootstrap", "permutations", "level", "systems"}),
        "comparisons": as_json(comparisons),
    }
    write_json(context.folder / "significance.json", content)
    return _show(comparisons, options, content)


def _refuse_repeated(systems: list[str]) -> None:
    repeated = sorted({name for name in systems if systems.count(name) > 1})
    if repeated:
        raise UsageError(
            f"'{repeated[0]}' is given twice",
            where="plant significance " + " ".join(systems),
            expected="different systems",
            todo="name each system once, A first",
        )


def _measure(context: StageContext, options: SignificanceOptions, name: str, gold: Gold) -> list[MetricValue]:
    from plant_cli.evaluation.bins import measure_bins
    from plant_cli.evaluation.families import choose, compute_families
    from plant_cli.evaluation.predictions import build_input, read_predictions
    from plant_cli.evaluation.systems import find_system

    system = find_system(context, name, options.split, gold.label_hash)
    data = build_input(read_predictions(system.predictions, gold), gold, system.threshold, find_convention(options.convention))
    values = compute_families(cast("list[MetricSpec]", context.components("metric")), data, options.metric)
    values += [metric for b in measure_bins(data) for metric in b.metrics]
    known = {value.name for value in values}
    return choose(values, options.metric or [metric for metric in DEFAULT_METRICS if metric in known])


def _show(comparisons: list[Comparison], options: SignificanceOptions, content: dict[str, object]) -> Result:
    from plant_cli.evaluation.comparison import make_table

    rule = (
        "marked by the published rule: Wilcoxon over bootstrap replicates, whose p shrinks as --bootstrap grows: read the interval"
        if options.paper
        else "p: approximate randomisation over documents; Holm: corrected over all metrics and systems shown; Wilcoxon: per document"
    )
    notes = [
        "▲ A is better, ▼ A is worse: p < 0.05" + ("" if options.paper else " after Holm") + " and the interval excludes 0",
        rule,
        f"{content['documents']} documents; {100 * options.level:g}% intervals from {options.bootstrap} paired resamples",
    ]
    others = options.systems[1:]
    tables = [make_table([c for c in comparisons if c.b == other], paper=options.paper, notes=notes) for other in others]
    summary = {f"{c.metric} against {c.b}": c.print_text(c.p_holm) for c in comparisons}
    return Result(tables=tables, data=content, summary=summary)


SPECS = (
    StageSpec(
        name="significance",
        summary="Is the difference between systems real? Paired bootstrap, approximate randomisation, Wilcoxon, Holm.",
        options=SignificanceOptions,
        run=run,
        sections=("machine",),
        examples=("plant significance finetune finetune-baseline", "plant significance finetune other-tool.parquet --metric P@5"),
    ),
)
