"""`plant significance A B …`: tests whether the difference between system A and each other system is real."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plant_cli.api import Result, StageContext, Table, UsageError
from plant_cli.commands.options import SignificanceOptions
from plant_cli.data.files import read_size, write_json
from plant_cli.evaluation.comparison import Comparison, as_json, make_table, measure_gates
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import Families
from plant_cli.evaluation.foreign import read_numbering
from plant_cli.evaluation.gold import Gold, describe_gold, find_hierarchy, read_gold
from plant_cli.evaluation.measurement import Measure, compare_systems, measure_system
from plant_cli.evaluation.results import check_gates, parse_gates
from plant_cli.evaluation.seeds import (
    Measured,
    Measurement,
    Systems,
    compare_seeds,
    keep_shared,
    make_difference_table,
    make_spread_table,
    summarise,
)
from plant_cli.evaluation.seeds import as_json as seeds_as_json
from plant_cli.evaluation.systems import choose_families, find_seeds, find_system, shorten_names


def run(context: StageContext, options: SignificanceOptions) -> Result:
    """Test each metric, correct over metrics and systems, and write significance.json; then check what was required.

    Raises:
        GateFailed: a requirement does not hold; the results are written all the same.
    """
    gates = parse_gates(options.require)
    families = choose_families(context, options.metric_options)
    gold = read_gold(context.corpus(), options.split)
    seeds: list[int] = []
    measured: Systems
    if options.seeds is None:
        measured = [(name, [_measure(context, options, name, gold, families)]) for name in options.systems]
    else:
        seeds, measured = _measure_seeds(context, options, options.seeds, gold, families)
    measured = keep_shared(measured)
    comparisons: list[Comparison] = []
    if len(measured) > 1:
        comparisons = compare_systems(
            measured,
            families,
            replicates=options.bootstrap,
            permutations=options.permutations,
            level=options.level,
            seed=context.machine.seed,
            reporter=context.reporter,
        )
    content = {
        "split": options.split,
        "documents": len(gold.doc_ids),
        "gold": gold.hash,
        "seed": context.machine.seed,
        **options.model_dump(include={"convention", "bootstrap", "permutations", "level", "systems"}),
        **({"metric_options": options.metric_options} if options.metric_options else {}),
        "comparisons": as_json(comparisons),
    }
    said = describe_gold(gold, CONVENTIONS[options.convention])
    tables = _show(comparisons, options, said, context.machine.seed) if comparisons else []
    if seeds:
        spread_tables, over_seeds = _show_seeds(
            [(name, [one.metrics for one in found]) for name, found in measured], seeds, options.level, said
        )
        tables, content = [*spread_tables, *tables], {**content, **over_seeds}
    write_json(context.folder / "significance.json", content)
    summary = {f"{c.metric} against {c.b}": c.print_text(c.p_holm) for c in comparisons}
    if gates:
        check_gates(gates, measure_gates(comparisons, paper=options.paper), str(context.folder))
    return Result(tables=tables, data=content, summary=summary)


def _measure(context: StageContext, options: SignificanceOptions, name: str, gold: Gold, families: Families) -> Measurement:
    measure = Measure(
        families=families,
        convention=CONVENTIONS[options.convention],
        wanted=options.metric,
        memory=read_size(options.memory),
        numbering=read_numbering(options.label_order, options.remove_pairs),
        hierarchy=find_hierarchy(options.hierarchy, context.corpus().labels, gold.labels, context.reporter),
    )
    return measure_system(find_system(context, name, gold), gold, measure, context.reporter)


def _measure_seeds(
    context: StageContext, options: SignificanceOptions, count: int, gold: Gold, families: Families
) -> tuple[list[int], Systems]:
    """The seeds, and every system's metrics with each; a file of another tool counts as the same with every seed."""
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
    measured: list[tuple[str, list[Measurement]]] = []
    for name, systems in found.items():
        names = [systems[seed] if systems else name for seed in seeds]
        known = {each: _measure(context, options, each, gold, families) for each in dict.fromkeys(names)}
        measured.append((name, [known[each] for each in names]))
    return seeds, measured


def _show_seeds(
    measured: list[tuple[str, Measured]], seeds: list[int], level: float, conditions: str
) -> tuple[list[Table], dict[str, Any]]:
    """The tables over seeds, and what significance.json says of them."""
    spreads = summarise(measured)
    differences = compare_seeds(spreads, level)
    short = shorten_names([name for name, _ in measured])
    shown = [replace(d, a=short[d.a], b=short[d.b]) for d in differences]
    said = f"{conditions}; seeds {', '.join(map(str, seeds))}"
    tables = [make_difference_table([d for d in shown if d.b == other], level, said) for other in list(short.values())[1:]]
    return [make_spread_table([replace(s, system=short[s.system]) for s in spreads], seeds, conditions), *tables], {
        "seeds": seeds,
        "spreads": seeds_as_json(spreads),
        "over_seeds": seeds_as_json(differences),
    }


def _show(comparisons: list[Comparison], options: SignificanceOptions, documents: str, seed: int) -> list[Table]:
    level, resamples = f"{100 * options.level:g}%", f"{options.bootstrap} paired resamples, seed {seed}"
    if options.paper:
        notes = [
            "▲ A is better, ▼ A is worse: p < 0.05 and the interval excludes 0, as published; not corrected for the number of metrics",
            f"gain: mean over replicates; {level} plain percentiles of {resamples}",
            "Wilcoxon over replicates (F1, AUC): its p shrinks as --bootstrap grows, which is no evidence: read the interval",
        ]
    else:
        notes = [
            "▲ A is better, ▼ A is worse: p < 0.05 after Holm and the interval excludes 0",
            "p: approximate randomisation over documents; Holm: corrected over all metrics and systems shown; "
            "Wilcoxon: per document; effect: mean difference of a document over its standard deviation",
            "documents for 1 point: as many show a true difference of one point in four of five test sets",
            f"{level} intervals from {resamples}",
        ]
    notes.append(documents)
    if options.seeds is not None:
        notes.append(f"values are means over {options.seeds} seeds: p and intervals are of the documents, for these seeds")
    short = shorten_names(options.systems)
    shown = [replace(c, a=short[c.a], b=short[c.b]) for c in comparisons]
    return [make_table([c for c in shown if c.b == other], paper=options.paper, notes=notes) for other in list(short.values())[1:]]
