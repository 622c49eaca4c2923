"""`plant significance A B …`: tests whether the difference between system A and each other system is real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from plant_cli.api import MetricSpec, MetricValue, Result, StageContext, StageSpec, Table, UsageError, option
from plant_cli.base.files import write_json
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.options import ScoringOptions

if TYPE_CHECKING:
    from plant_cli.evaluation.comparison import Comparison
    from plant_cli.evaluation.families import Families
    from plant_cli.evaluation.gold import Gold
    from plant_cli.evaluation.seeds import Measured
    from plant_cli.evaluation.systems import System

DEFAULT_METRICS = ("P@1", "P@5", "nDCG@5", "PSP@5", "R@10", "R@50", "MAP", "micro-F1", "macro-F1", "R@10[1-5]", "R@50[1-5]")


class SignificanceOptions(ScoringOptions):
    """Options of `significance`."""

    systems: list[str] = option(
        ...,
        "A, then the systems to compare it with: folder in the run (finetune-baseline), tag, another run's folder, or predictions file. "
        "A positive difference means that A is better.",
        argument=True,
        path=True,
        min_length=1,
    )
    metric: list[str] = option([], f"Only this metric (repeatable). Default: {', '.join(DEFAULT_METRICS)}.", short="-m")
    bootstrap: int = option(1000, "Resamples of the documents behind the intervals of the differences.", ge=1)
    permutations: int = option(10000, "Random swaps behind p (approximate randomisation); p is at least 1/(1 + this).", ge=1)
    paper: bool = option(False, "Mark by the published rule: Wilcoxon over bootstrap replicates (its p shrinks with their number).")
    seeds: int | None = option(
        None, "Compare means over this many seeds, as `plant run --seeds` trains them; one system alone: only its spread.", ge=2
    )

    @model_validator(mode="after")
    def _one_system_has_only_a_spread(self) -> SignificanceOptions:
        if len(self.systems) < 2 and self.seeds is None:
            raise ValueError(
                f"there is nothing to compare {self.systems[0]} with: name two or more, A first, as in "
                "`plant significance finetune finetune-baseline`, or give --seeds"
            )
        return self


def run(context: StageContext, options: SignificanceOptions) -> Result:
    """Test each metric, correct over metrics and systems, and write significance.json."""
    from plant_cli.evaluation.comparison import as_json
    from plant_cli.evaluation.gold import read_gold
    from plant_cli.evaluation.seeds import average

    _refuse_repeated(options.systems)
    families = [context.component(MetricSpec, family) for family in options.choose_families(s.name for s in context.components(MetricSpec))]
    gold = read_gold(context.corpus(), options.split)
    seeds: list[int] = []
    if options.seeds is None:
        measured = [(name, _measure(context, options, name, gold, families)) for name in options.systems]
    else:
        seeds, repeated = _measure_seeds(context, options, options.seeds, gold, families)
        measured = [(name, average(metrics)) for name, metrics in repeated]
    comparisons = _compare(context, options, measured) if len(measured) > 1 else []
    content = {
        "split": options.split,
        "documents": len(gold.doc_ids),
        "gold": gold.hash,
        "seed": context.machine.seed,
        **options.model_dump(include={"convention", "bootstrap", "permutations", "level", "systems"}),
        **({"metric_options": options.metric_options} if options.metric_options else {}),
        "comparisons": as_json(comparisons),
    }
    tables = _show(comparisons, options, len(gold.doc_ids)) if comparisons else []
    if seeds:
        spread_tables, over_seeds = _show_seeds(repeated, seeds, options.level)
        tables, content = [*spread_tables, *tables], {**content, **over_seeds}
    write_json(context.folder / "significance.json", content)
    summary = {f"{c.metric} against {c.b}": c.print_text(c.p_holm) for c in comparisons}
    return Result(tables=tables, data=content, summary=summary)


def _compare(context: StageContext, options: SignificanceOptions, measured: list[tuple[str, list[MetricValue]]]) -> list[Comparison]:
    import numpy as np

    from plant_cli.evaluation.comparison import compare

    with context.reporter.progress("resampling documents", options.bootstrap + options.permutations, "resamples") as task:
        return compare(
            measured,
            replicates=options.bootstrap,
            permutations=options.permutations,
            level=options.level,
            generator=np.random.default_rng(context.machine.seed),
            advance=task.advance,
        )


def _refuse_repeated(systems: list[str]) -> None:
    repeated = sorted({name for name in systems if systems.count(name) > 1})
    if repeated:
        raise UsageError(
            f"'{repeated[0]}' is given twice",
            where="plant significance " + " ".join(systems),
            expected="different systems",
            todo="name each system once, A first",
        )


def _find(context: StageContext, name: str, options: SignificanceOptions, gold: Gold) -> System:
    """The system of a name; its predictions are made if it is one of this run and has none."""
    from plant_cli.evaluation.systems import file_system, locate, other_system, own_system

    location = locate(name)
    if location.file is not None:
        return file_system(location.file)
    if location.run is not None:
        return other_system(name, location.run, location.tag, options.split, gold.label_hash, context.run_path / "corpus")
    predict = context.ensure("predict", location.tag, {"split": options.split})
    return own_system(name, predict, context.input("finetune", location.tag), options.split, gold.label_hash)


def _measure(context: StageContext, options: SignificanceOptions, name: str, gold: Gold, families: Families) -> list[MetricValue]:
    from plant_cli.evaluation.bins import measure_bins
    from plant_cli.evaluation.families import choose, compute_families, find_missing
    from plant_cli.evaluation.predictions import build_input, read_predictions
    from plant_cli.evaluation.systems import warn_leakage

    system = _find(context, name, options, gold)
    warn_leakage(system, context.reporter)
    predictions = read_predictions(system.predictions, gold, context.reporter)
    data = build_input(predictions, gold, system.threshold, CONVENTIONS[options.convention])
    values = [metric for metric in compute_families(families, data, options.metric) if isinstance(metric, MetricValue)]
    values += [metric for b in measure_bins(data) for metric in b.metrics]
    missing = find_missing(families, data, "systems are compared on metrics of the highest-scored labels; `plant eval` gives its interval")
    known = {value.name for value in values}
    return choose(values, options.metric or [metric for metric in DEFAULT_METRICS if metric in known], missing)


def _measure_seeds(
    context: StageContext, options: SignificanceOptions, count: int, gold: Gold, families: Families
) -> tuple[list[int], list[tuple[str, Measured]]]:
    """The seeds, and every system's metrics with each; a file of another tool counts as the same with every seed."""
    from plant_cli.evaluation.systems import find_seeds

    found = {name: find_seeds(context.run_path, name, count) for name in options.systems}
    trained = {name: systems for name, systems in found.items() if systems}
    if len({frozenset(systems) for systems in trained.values()}) != 1:
        raise UsageError(
            "the systems were not trained with the same seeds" if trained else "none of the systems was trained with seeds",
            where="; ".join(f"{name}: {', '.join(map(str, systems)) or 'a file'}" for name, systems in found.items()),
            expected=f"{count} seeds in common: differences are taken seed by seed",
            todo=f"plant run RECIPE --seeds {count}, or leave --seeds out",
        )
    seeds = sorted(next(iter(trained.values())))
    measured: list[tuple[str, Measured]] = []
    for name, systems in found.items():
        names = [systems[seed] if systems else name for seed in seeds]
        known = {each: _measure(context, options, each, gold, families) for each in dict.fromkeys(names)}
        measured.append((name, [known[each] for each in names]))
    return seeds, measured


def _show_seeds(measured: list[tuple[str, Measured]], seeds: list[int], level: float) -> tuple[list[Table], dict[str, Any]]:
    """The tables over seeds, and what significance.json says of them."""
    from plant_cli.evaluation.seeds import as_json, compare_seeds, make_difference_table, make_spread_table, summarise

    spreads = summarise(measured)
    differences = compare_seeds(spreads, level)
    others = [name for name, _ in measured[1:]]
    tables = [make_difference_table([d for d in differences if d.b == other], level) for other in others]
    return [make_spread_table(spreads, seeds), *tables], {"seeds": seeds, "spreads": as_json(spreads), "over_seeds": as_json(differences)}


def _show(comparisons: list[Comparison], options: SignificanceOptions, documents: int) -> list[Table]:
    from plant_cli.evaluation.comparison import make_table

    rule = (
        "marked by the published rule: Wilcoxon over bootstrap replicates, whose p shrinks as --bootstrap grows: read the interval"
        if options.paper
        else "p: approximate randomisation over documents; Holm: corrected over all metrics and systems shown; Wilcoxon: per document"
    )
    notes = [
        "▲ A is better, ▼ A is worse: p < 0.05" + ("" if options.paper else " after Holm") + " and the interval excludes 0",
        rule,
        f"{documents} documents; {100 * options.level:g}% intervals from {options.bootstrap} paired resamples",
    ]
    if options.seeds is not None:
        notes.append(f"values are means over {options.seeds} seeds: p and intervals are of the documents, for these seeds")
    others = options.systems[1:]
    return [make_table([c for c in comparisons if c.b == other], paper=options.paper, notes=notes) for other in others]


SPECS = (
    StageSpec(
        name="significance",
        summary="Is the difference between systems real? Paired bootstrap, approximate randomisation, Wilcoxon, Holm.",
        options=SignificanceOptions,
        run=run,
        sections=("machine",),
        examples=(
            "plant significance finetune finetune-baseline",
            "plant significance finetune other-tool.parquet --metric P@5",
            "plant significance finetune finetune-baseline --seeds 5 --tag seeds5",
        ),
    ),
)
