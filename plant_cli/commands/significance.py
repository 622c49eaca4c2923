"""`plant significance A B …`: tests whether the difference between system A and each other
system is real.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from plant_cli.api import Result, StageContext, UsageError
from plant_cli.commands.baseline import read_validation, warn_of_nothing_learned
from plant_cli.commands.command_options import SignificanceOptions
from plant_cli.data.files import read_size, write_json
from plant_cli.evaluation.comparison import (
    SIGNIFICANCE,
    Difference,
    compare_seeds,
    compare_systems,
    gate_names,
    make_difference_tables,
    make_overview,
    make_seed_tables,
    measure_gates,
    summarise_seeds,
)
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import Families
from plant_cli.evaluation.foreign import read_numbering
from plant_cli.evaluation.gold import Gold, describe_gold, find_hierarchy, read_gold
from plant_cli.evaluation.measurement import (
    Measure,
    Measurement,
    Systems,
    keep_shared,
    measure_system,
)
from plant_cli.evaluation.results import check_gates, parse_gates, require_named
from plant_cli.evaluation.systems import choose_families, find_seeds, find_system, shorten_names
from plant_cli.runs.machine import describe_origin


def run(context: StageContext, options: SignificanceOptions) -> Result:
    """Test each metric, correct over metrics and systems, and write significance.json; then check
    what was required.

    Raises:
        GateFailed: a requirement does not hold; the results are written all the same.
    """
    gates = parse_gates(options.require)
    families = choose_families(context, options.metric_options)
    gold = read_gold(context.corpus(), options.split)
    seeds: list[int] = []
    measured: Systems
    if options.seeds is None:
        measured = [
            (name, [one])
            for name, one in _measure(context, options, options.systems, gold, families).items()
        ]
    else:
        seeds, measured = _measure_seeds(context, options, options.seeds, gold, families)
    measured = keep_shared(measured)
    comparisons: list[Difference] = []
    if len(measured) > 1:
        require_named(gates, gate_names(metric.name for metric in measured[0][1][0].metrics))
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
        **options.model_dump(
            include={"convention", "bootstrap", "permutations", "level", "systems"}
        ),
        **({"metric_options": options.metric_options} if options.metric_options else {}),
        "comparisons": comparisons,
    }
    conditions = describe_gold(gold, CONVENTIONS[options.convention])
    names = (
        dict(zip(options.systems, options.names, strict=True))
        if options.names
        else shorten_names(options.systems)
    )
    notes, tables, details, spreads = (
        [conditions],
        [],
        options.details or len(options.systems) < 3,
        [],
    )
    if seeds:
        spreads = summarise_seeds(measured)
        over_seeds = compare_seeds(spreads, options.level)
        content |= {"seeds": seeds, "spreads": spreads, "over_seeds": over_seeds}
        tables = (
            make_seed_tables(spreads, over_seeds, names, seeds, options.level, conditions)
            if details
            else []
        )
        notes.append(
            f"values are means over {options.seeds} seeds: p and intervals are of the documents, "
            "for these seeds"
        )
    if comparisons and details:
        resamples = f"{options.bootstrap} paired resamples, seed {context.machine.seed}"
        tables += make_difference_tables(
            comparisons, names, notes, paper=options.paper, level=options.level, resamples=resamples
        )
    validation = read_validation(context, options.systems, options.seeds)
    least = warn_of_nothing_learned(context, validation, names)
    content |= {"names": names, "notes": notes, **describe_origin()}
    content |= {"validation": validation, "frequencies_on_validation": least}
    if len(options.systems) > 2:
        tables = [
            make_overview(comparisons, names, notes, paper=options.paper, spreads=spreads),
            *tables,
        ]
    write_json(context.folder / SIGNIFICANCE, content)
    summary = {f"{row['metric']} against {row['b']}": row["text"] for row in comparisons}
    if gates:
        check_gates(gates, measure_gates(comparisons, paper=options.paper), str(context.folder))
    return Result(tables=tables, data=content, summary=summary)


def _measure(
    context: StageContext,
    options: SignificanceOptions,
    names: Iterable[str],
    gold: Gold,
    families: Families,
) -> dict[str, Measurement]:
    """Each of the systems by its name; all are found before the first is measured, which may
    take minutes.
    """
    systems = {name: find_system(context, name, gold) for name in names}
    measure = Measure(
        families=families,
        convention=CONVENTIONS[options.convention],
        wanted=options.metric,
        memory=read_size(options.memory),
        numbering=read_numbering(options.label_order, options.remove_pairs),
        hierarchy=find_hierarchy(
            options.hierarchy, context.corpus().labels, gold.labels, context.reporter
        ),
    )
    return {
        name: measure_system(system, gold, measure, context.reporter)
        for name, system in systems.items()
    }


def _measure_seeds(
    context: StageContext, options: SignificanceOptions, count: int, gold: Gold, families: Families
) -> tuple[list[int], Systems]:
    """The seeds, and every system's metrics with each; a file of another tool counts as the
    same with every seed.
    """
    found = {name: find_seeds(context.run_path, name, count) for name in options.systems}
    trained = {name: systems for name, systems in found.items() if systems}
    if len({frozenset(systems) for systems in trained.values()}) != 1:
        raise UsageError(
            "the systems were not trained with the same seeds"
            if trained
            else "none of the systems was trained with seeds",
            where="; ".join(
                f"{name}: {', '.join(map(str, systems)) or 'a file'}"
                for name, systems in found.items()
            ),
            expected=f"{count} seeds in common: differences are taken seed by seed",
            todo=f"plant run RECIPE --seeds {count}, or leave --seeds out",
        )
    seeds = sorted(next(iter(trained.values())))
    folders = {
        name: [systems[seed] if systems else name for seed in seeds]
        for name, systems in found.items()
    }
    known = _measure(context, options, chain.from_iterable(folders.values()), gold, families)
    return seeds, [(name, [known[each] for each in names]) for name, names in folders.items()]
