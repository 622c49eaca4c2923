"""What a reader wants to know first: how good a system is, where it is weak, what to do."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from plant_cli.data.labels import LABEL_RANGES
from plant_cli.data.printed_tables import name_label
from plant_cli.evaluation.metric_tables import show_bound
from plant_cli.scoring.decisions import Bands
from plant_report.evaluated import Evaluated
from plant_report.result_sections import DOCUMENTS_TO_BE_RANKED

FIRST_FIGURES = {
    "P@1": "the first label is right for {} of 100 documents",
    "R@10": "the first ten labels hold {} of 100 right labels of a document",
    "micro-F1": "F1 at the threshold over all pairs of document and label is {}",
}
WORST_NAMED = 3
MANY_UNSEEN = 0.05  # share of right labels without a training document that calls for titles
RARE_RANGE = "1-5"


def write_opening(system: Evaluated) -> list[str]:
    """A paragraph on each question, by what was recorded; none where nothing was."""
    labels = system.read_labels().with_columns(gold=pl.col("tp") + pl.col("fn"))
    answers = {
        "How good": _say_how_good(system),
        "Where it is weak": _say_where_weak(labels),
        "What to do": _say_what_to_do(system, labels),
    }
    told = {question: "; ".join(sentences) for question, sentences in answers.items()}
    return [f"{question}: {answer}." for question, answer in told.items() if answer]


def _say_how_good(system: Evaluated) -> Iterator[str]:
    measured = system.metrics.all_metrics()
    for name, sentence in FIRST_FIGURES.items():
        if (bound := measured.get(name)) is not None and bound.value is not None:
            yield f"{sentence.format(show_bound(bound))} ({name})"
    bands = None if system.trained is None else system.trained.summary.get("bands")
    if bands is not None:
        yield Bands(**bands).describe()


def _say_where_weak(labels: pl.DataFrame) -> Iterator[str]:
    gold = int(labels["gold"].sum())
    if not gold:
        yield "no label of the split can be judged"
        return
    if unseen := share_unseen(labels):
        yield (
            f"{100 * unseen:.0f} of 100 right labels have no training document, and cannot be "
            "found "
            "without titles"
        )
    found = []
    for name, least, most in LABEL_RANGES:
        part = labels.filter(pl.col("train_count").is_between(least, most) & (pl.col("gold") > 0))
        if least and len(part):
            found.append(f"{100 * int(part['tp'].sum()) / int(part['gold'].sum()):.0f} ({name})")
    yield (
        "right labels that are found at the threshold, of 100, by training documents of the "
        f"label: {', '.join(found) or 'none'}"
    )
    often = labels.filter(
        (pl.col("gold") >= DOCUMENTS_TO_BE_RANKED) & (pl.col("train_count") > 0)
    ).sort("F1", "gold", "label", descending=[False, True, False])
    if len(often):
        worst = often.head(WORST_NAMED).iter_rows(named=True)
        named = (f"{name_label(row['label'], row['title'])} {100 * row['F1']:.0f}" for row in worst)
        yield (
            f"lowest F1 of labels with {DOCUMENTS_TO_BE_RANKED} documents or more: "
            f"{', '.join(named)}"
        )


def share_unseen(labels: pl.DataFrame) -> float:
    """The share of the right labels whose label has no training document; 0 where some of these
    labels are found, by their titles.
    """
    gold, unseen = int(labels["gold"].sum()), labels.filter(pl.col("train_count") == 0)
    return int(unseen["gold"].sum()) / gold if gold and not int(unseen["tp"].sum()) else 0.0


def _say_what_to_do(system: Evaluated, labels: pl.DataFrame) -> Iterator[str]:
    if share_unseen(labels) >= MANY_UNSEEN:
        yield (
            "name titles of all labels (`plant train DATA --vocabulary FILE --zero-shot`), so "
            "that those without training documents can be suggested"
        )
    _, least, most = next(bounds for bounds in LABEL_RANGES if bounds[0] == RARE_RANGE)
    seen = labels.filter(pl.col("train_count") > 0)
    rare = int(seen.filter(pl.col("train_count").is_between(least, most))["gold"].sum())
    if 2 * rare > int(seen["gold"].sum()):
        yield "more documents of rare labels help most: half of the right labels and more are rare"
    if system.trained is not None:
        yield (
            f"`{system.command('audit', '-O doubts.xlsx')}` finds labels of the corpus that may "
            "be wrong"
        )
        yield (
            f"`{system.command('review export')}` makes a sheet of suggestions, and what people "
            "decide in it trains the next model"
        )
        if "pretrain-attn" not in {record.stage for record in system.stages.values()}:
            yield "`plant train DATA --hours 1` says whether a network adds"
