"""Sections that set systems next to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from plant_cli.api.context import Cell, Column, Reporter, Table
from plant_cli.api.corpus import Corpus, Split
from plant_cli.api.errors import ArtefactError, DataError, PlantError
from plant_cli.api.metrics import MetricInput
from plant_cli.data.files import read_size
from plant_cli.evaluation.comparison import Comparison
from plant_cli.evaluation.conventions import CONVENTIONS, Convention
from plant_cli.evaluation.counters import Families, compute_value
from plant_cli.evaluation.foreign import read_numbering
from plant_cli.evaluation.gold import Gold, read_gold, read_hierarchy
from plant_cli.evaluation.measurement import Measure, compare_systems, measure_system
from plant_cli.evaluation.measures import evaluate, measure_labels
from plant_cli.evaluation.results import DEFAULT_METRICS, Bound
from plant_cli.evaluation.seeds import Measurement, keep_shared
from plant_cli.evaluation.systems import System, file_system, other_system
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.figures import Axis, Figure, Section, Series
from plant_cli.scoring.decisions import THRESHOLDS, read_thresholds

SAME = 1e-9  # differences of sums in another order
RESAMPLES = 1000  # behind the intervals of differences, where evaluations have none


@dataclass(frozen=True, kw_only=True)
class Readable:
    """What a report reads of the corpus.

    Args:
        corpus: of the first system's run.
        split: its documents that were evaluated.
        gold: of them.
        train: the training documents; None where labels have parents, so that they are not needed.
    """

    corpus: Corpus
    split: Split
    gold: Gold
    train: Split | None


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Predictions beside gold.

    Args:
        readable: None if the corpus cannot be read.
        measured: of each system, by its name; empty if the predictions cannot be read.
        reason: why something is not there, in a sentence; empty if all is.
    """

    readable: Readable | None = None
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    reason: str = ""

    @property
    def data(self) -> dict[str, MetricInput]:
        """What metrics are computed from, by system."""
        return {name: one.data for name, one in self.measured.items()}


def find_convention(system: Evaluated) -> Convention:
    """The convention that a system was measured by; `DataError` if this version has none of that name."""
    found = next((convention for name, convention in CONVENTIONS.items() if name == system.metrics.convention), None)
    if found is None:
        raise DataError(
            f"there is no convention '{system.metrics.convention}'",
            where=str(system.folder),
            expected=f"one of {', '.join(CONVENTIONS)}",
            todo=system.command("eval", "--force"),
        )
    return found


def lay_beside(systems: Sequence[Evaluated], families: Families, open_corpus: Callable[[], Corpus], reporter: Reporter) -> Beside:
    """Read the corpus and every system's predictions; what cannot be read is warned about.

    Args:
        systems: evaluated alike.
        families: metric families with their options.
        open_corpus: gives the corpus of the first system's run.
        reporter: where warnings go.

    Raises:
        DataError: the corpus has other gold labels now.
        ArtefactError: the predictions do not give the figures of the evaluation.
    """
    readable = None
    try:
        readable = _read(systems[0], open_corpus())
        measured = {system.name: _measure(system, systems[0], readable.gold, families, reporter) for system in systems}
    except PlantError as error:
        reporter.warn(explain(error))
        return Beside(readable=readable, reason=explain(error))
    if readable.gold.hash != systems[0].metrics.gold:
        raise DataError(
            "the gold labels are not those of the evaluation",
            where=f"{systems[0].folder}: gold {systems[0].metrics.gold[:12]} then, {readable.gold.hash[:12]} now",
            expected="the corpus that was evaluated",
            todo=systems[0].command("eval", "--force"),
        )
    for system in systems:
        if system.label_hash == systems[0].label_hash:
            _refuse_changed(system, measured[system.name])
    return Beside(readable=readable, measured=measured)


def explain(error: PlantError) -> str:
    """An error as a sentence with its remedy."""
    return f"{error.what} ({error.where}); {error.todo}."


def _read(system: Evaluated, corpus: Corpus) -> Readable:
    split = corpus.split(system.metrics.split)
    train = None if any(corpus.labels.parents) else corpus.split("train")
    return Readable(corpus=corpus, split=split, gold=read_gold(corpus, split.name), train=train)


def _measure(system: Evaluated, first: Evaluated, gold: Gold, families: Families, reporter: Reporter) -> Measurement:
    """As the evaluation measured: the tests are of the same figures."""
    options = system.record.options
    above = options.get("hierarchy")
    measure = Measure(
        families=families,
        convention=find_convention(system),
        wanted=(),
        memory=read_size(options.get("memory") or "1GB"),
        numbering=read_numbering(options.get("label_order"), options.get("remove_pairs")),
        hierarchy=None if above is None else read_hierarchy(Path(above), gold.labels),
    )
    return measure_system(_find(system, first, gold), gold, measure, reporter)


def _find(system: Evaluated, first: Evaluated, gold: Gold) -> System:
    """The predictions, assigned by the thresholds that the evaluation assigned by."""
    options = system.record.options
    found = (
        file_system(system.foreign, options.get("threshold"))
        if system.foreign is not None
        else other_system(system.name, system.run, system.system_tag, gold, first.run / "corpus")
    )
    if options.get("thresholds") is not None:
        path = Path(options["thresholds"])
        folder = next((system.run / name for name in system.record.inputs if system.stages[name].stage == "thresholds"), None)
        place = (path.parent, path.name) if folder is None else (folder, THRESHOLDS)
        chosen = read_thresholds(place[0], gold.label_hash, gold.indexed, place[1])
        return replace(found, threshold=chosen.value)
    given = options.get("threshold")
    return found if given is None else replace(found, threshold=float(given))


def _refuse_changed(system: Evaluated, measured: Measurement) -> None:
    """The predictions must give the recorded figures: tests are of these."""
    recorded = system.metrics.all_metrics()
    for metric in measured.metrics:
        said, now = recorded.get(metric.name), compute_value(metric)
        if said is not None and said.value is not None and not abs(said.value - now) < SAME:
            raise ArtefactError(
                f"the predictions of '{system.name}' do not give its recorded figures: {metric.name} {said.value:.6g}, now {now:.6g}",
                where=str(system.folder),
                expected="figures of these predictions, computed by this version",
                todo=system.command("eval", "--force"),
            )


def align(systems: Sequence[Evaluated], beside: Beside, families: Families) -> list[Evaluated]:
    """The systems with figures over the labels of the first.

    Averages over labels, bins of frequency and propensities go by the labels of train and their counts. A system that was trained on
    others, such as on a part of the documents, is evaluated again on those of the first: its own figures are over something else.

    Args:
        systems: the first gives the labels.
        beside: their predictions, laid beside the gold labels of the first; where they cannot be read, figures stay as they are.
        families: metric families with their options.
    """
    first = systems[0].label_hash
    return [
        _evaluate_again(system, beside, families) if system.label_hash != first and system.name in beside.measured else system
        for system in systems
    ]


def _evaluate_again(system: Evaluated, beside: Beside, families: Families) -> Evaluated:
    assert beside.readable is not None
    data, record = beside.measured[system.name].data, system.metrics
    drawn = system.record.options.get("bootstrap") or 0
    found = evaluate(data, families, replicates=drawn, level=record.level, generator=np.random.default_rng(record.seed))
    bounds = {name: Bound(value=score.value, low=score.low, high=score.high) for name, score in found.scores.items()}
    bins = {
        b.name: {"labels": b.labels, "present": b.present, **{m.name.removesuffix(f"[{b.name}]"): bounds.pop(m.name) for m in b.metrics}}
        for b in found.bins
    }
    changes = {"metrics": bounds, "bins": bins, "labels_averaged": found.labels_averaged, "labels_never": found.labels_never}
    labels = measure_labels(data, beside.readable.gold, record.level)
    return replace(system, metrics=record.model_copy(update=changes), measured_again=labels)


def compare_evaluated(
    systems: Sequence[Evaluated], beside: Beside, families: Families, permutations: int, reporter: Reporter
) -> tuple[list[Comparison], str]:
    """The first system beside each other one, as `plant significance` compares them, or why not, in a sentence.

    Args:
        systems: evaluated alike.
        beside: their predictions.
        families: metric families with their options.
        permutations: random swaps of approximate randomisation.
        reporter: where progress goes.
    """
    if len(systems) < 2:
        return [], "Nothing is compared, since one system is given: `plant report A B` marks real differences with ▲ and ▼."
    if beside.reason:
        return [], f"Differences are not tested: {beside.reason}"
    found = compare_systems(
        keep_shared([(name, [one]) for name, one in beside.measured.items()]),
        families,
        replicates=systems[0].record.options.get("bootstrap") or RESAMPLES,
        permutations=permutations,
        level=systems[0].metrics.level,
        seed=systems[0].metrics.seed,
        reporter=reporter,
    )
    return found, ""


DRAWN = ("P@5", "R@50", "micro-F1", "macro-F1", "R@50[1-5]")
UNIT = "points (0 to 100)"


def describe_systems(systems: Sequence[Evaluated]) -> Table:
    """What each system is: its network and scorers, what it was trained on, its seed and threshold."""
    columns = [Column(name="system"), Column(name="trained on", kind="count"), Column(name="network"), Column(name="attention")]
    columns += [Column(name="scorers"), Column(name="seed"), Column(name="threshold")]
    rows: list[list[Cell]] = []
    for system in systems:
        trained = system.trained
        if trained is None:
            rows.append([system.name, None, _describe_untrained(system), "", "", None, system.metrics.threshold])
            continue
        model, has_network = trained.sections.get("model", {}), trained.options.get("network", True)
        network = " + ".join(_name(model.get(part)) for part in ("backbone", "decoder")) if has_network else "none"
        scorers = ", ".join(trained.summary.get("scorers") or []) or "none"
        init = str(trained.options.get("init", "")) if has_network else "none"
        rows.append([system.name, system.documents.get("train"), network, init, scorers, str(trained.seed), system.metrics.threshold])
    notes = ["trained on: training documents; attention: planted by stage 1, or random", systems[0].conditions]
    notes += [
        f"LEAKAGE: '{system.name}' saw validation and test documents in training (plant mig --allow-leakage): its figures are too good"
        for system in systems
        if system.metrics.leakage
    ]
    return Table(title="What is compared", columns=columns, rows=rows, notes=notes)


def _describe_untrained(system: Evaluated) -> str:
    if system.foreign is not None:
        return f"another tool ({system.foreign.name})"
    predicted = system.predicted
    members = {} if predicted is None else predicted.summary.get("average") or {}
    return f"average of {', '.join(members)}" if members else "not trained in this run"


def _name(component: object) -> str:
    return str(component.get("name", "?")) if isinstance(component, dict) else str(component or "?")


def make_headline(systems: Sequence[Evaluated], comparisons: Sequence[Comparison], *, paper: bool) -> Table:
    """Metrics of every system, and of each pair with the first the difference as the paper prints it.

    Args:
        systems: the first is judged against the others.
        comparisons: of `plant significance`, the first system is A in each; none: nothing was tested.
        paper: by the published rule, and not by the p that is corrected for all metrics and systems.
    """
    found = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DEFAULT_METRICS if any(name in metrics for metrics in found)]
    tested = {(c.metric, c.b): c.print_published() if paper else c.print_text(c.p_holm) for c in comparisons}
    others = list(dict.fromkeys(c.b for c in comparisons))
    rows: list[list[Cell]] = []
    for name in names:
        row: list[Cell] = [name, *(show_bound(metrics.get(name)) for metrics in found)]
        rows.append([*row, *(tested.get((name, other), "") for other in others)])
    columns = [Column(name="metric"), *(Column(name=system.name) for system in systems)]
    columns += [Column(name=f"{systems[0].name} against {other}") for other in others]
    return Table(title="Headline", columns=columns, rows=rows, notes=_explain(systems, bool(comparisons), paper=paper))


def _explain(systems: Sequence[Evaluated], tested: bool, *, paper: bool) -> list[str]:
    notes = [f"in points, with intervals in brackets; {systems[0].conditions}"]
    if tested and paper:
        notes.append(
            "▲ the first system is better, ▼ it is worse: p < 0.05 and the interval excludes 0, by the published rule, which corrects for "
            "nothing; in brackets mean gain and plain percentiles. Its p of F1 and AUC shrinks as --bootstrap grows"
        )
    elif tested:
        notes.append(
            "▲ the first system is better, ▼ it is worse: p < 0.05 after Holm over all metrics and systems shown, and the interval of the "
            "difference excludes 0; in brackets the difference and its interval; tests as of `plant significance`"
        )
    others = [system for system in systems[1:] if system.label_hash != systems[0].label_hash]
    for system in others:
        how = f"figures here are over the labels of '{systems[0].name}', not over its own as its evaluation's are"
        alone = "averages over labels are over its own, and cannot be compared"
        notes.append(f"'{system.name}' was trained on other labels: {alone if system.measured_again is None else how}")
    notes.append("[1-5]: labels with one to five training documents; recall of them is pooled over their assignments")
    return notes


def show_bound(bound: Bound | None) -> str:
    """A value with its interval in brackets, in points; a dash where it is undefined."""
    if bound is None or bound.value is None:
        return "–"
    value = f"{100 * bound.value:.1f}"
    return value if bound.low is None or bound.high is None else f"{value} [{100 * bound.low:.1f}, {100 * bound.high:.1f}]"


def draw_headline(systems: Sequence[Evaluated]) -> Figure | None:
    """Some metrics of all systems with their intervals; None if there are none."""
    found = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DRAWN if any(name in metrics and metrics[name].value is not None for metrics in found)]
    if not names:
        return None
    return Figure(
        name="headline",
        title="The main metrics",
        description="Each metric of each system as a dot, with its interval as a line.",
        form="dots",
        x=Axis(title="metric", ticks=names),
        y=Axis(title=UNIT),
        series=[draw_bounds(system.name, names, metrics) for system, metrics in zip(systems, found, strict=True)],
        notes=[systems[0].conditions],
    )


def draw_bounds(series: str, names: Sequence[str], metrics: dict[str, Bound]) -> Series:
    """Metrics by name, as dots over their places in a list of names; one that is not defined is left out."""
    places = [(i, metrics[name]) for i, name in enumerate(names) if name in metrics and metrics[name].value is not None]
    return Series(
        name=series,
        x=[i for i, _ in places],
        y=[bound.value for _, bound in places if bound.value is not None],
        low=[bound.low for _, bound in places],
        high=[bound.high for _, bound in places],
    )


def write_headline(systems: Sequence[Evaluated], headline: Table, untested: str) -> Section:
    """The section of the headline.

    Args:
        systems: all of them.
        headline: see `make_headline`.
        untested: why nothing was tested, in a sentence; empty if it was.
    """
    figure = draw_headline(systems)
    return Section(
        name="headline",
        title="Results",
        tables=[describe_systems(systems), headline],
        figures=[figure] if figure else [],
        missing=[untested] if untested else [],
    )
