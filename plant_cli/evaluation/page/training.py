"""How systems were trained: epoch by epoch, what stage 2 keeps of planted attention, and what stage 1 and size do for the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plant_cli.api.corpus import SplitName
from plant_cli.artefacts.metrics import Bound
from plant_cli.evaluation.page.charts import Axis, Figure, Section, Series
from plant_cli.evaluation.page.evaluated import Evaluated

CURVES = {"MAP": "points", "macro-F1": "points"}
RANDOM = "random "
RESULT = "macro-F1"

Histories = Mapping[str, Sequence[Mapping[str, Any]]]  # epochs by the name of the system


def write_training(systems: Sequence[Evaluated]) -> Section:
    """All figures of training that the records allow; for the others a sentence."""
    second = {system.name: history for system in systems if (history := system.read_history("finetune"))}
    first = {system.name: history for system in systems if (history := system.read_history("pretrain-attn"))}
    figures = [*_draw_second(second, systems), *_draw_attention(second, first, systems)]
    missing = []
    if not second:
        missing.append("There are no training curves: no system has a network. `plant finetune` without --no-network trains one.")
    elif not any(figure.name == "attention" for figure in figures):
        missing.append(
            "What stage 2 keeps of the attention was not measured: it needs the relevance of words. `plant mig`, then "
            "`plant finetune --force` records it after every epoch."
        )
    if not first:
        missing.append("There is no curve of stage 1: no system was trained from planted attention. `plant pretrain-attn` plants it.")
    for found in (draw_planting(systems), draw_sizes(systems)):
        if isinstance(found, Figure):
            figures.append(found)
        else:
            missing.append(found)
    return Section(name="training", title="Training", figures=figures, missing=missing)


def _describe(systems: Sequence[Evaluated], names: Sequence[str]) -> list[str]:
    return [f"measured on validation, without intervals; {_count('validation', [s for s in systems if s.name in names])}"]


def _count(split: SplitName, systems: Sequence[Evaluated]) -> str:
    return f"documents of {split}: " + "; ".join(f"{s.name} {s.documents.get(split, 0):,}, seed {s.seed}" for s in systems)


def _draw_second(histories: Histories, systems: Sequence[Evaluated]) -> list[Figure]:
    figures = []
    for name in CURVES:
        series = [read_curve(system, history, name) for system, history in histories.items()]
        if any(one.y for one in series):
            figures.append(
                Figure(
                    name=f"training-{name.lower()}",
                    title=f"{name} on validation during stage 2",
                    description="After every epoch; 0 is the start. The best epoch is kept.",
                    form="lines",
                    x=Axis(title="epoch", unit="count"),
                    y=Axis(title=f"{name}, points"),
                    series=[one for one in series if one.y],
                    notes=_describe(systems, list(histories)),
                )
            )
    losses = [one for one in (read_curve(system, history, "loss") for system, history in histories.items()) if one.y]
    if losses:
        figures.append(
            Figure(
                name="training-loss",
                title="Loss of stage 2",
                description="The mean loss of each epoch on the training documents. Systems with other losses cannot be compared by it.",
                form="lines",
                x=Axis(title="epoch", unit="count"),
                y=Axis(title="loss", unit="exact"),
                series=losses,
                notes=[_count("train", [s for s in systems if s.name in histories])],
            )
        )
    return figures


def read_curve(name: str, history: Sequence[Mapping[str, Any]], figure: str) -> Series:
    """One figure of each epoch that has it."""
    rows = [row for row in history if row.get(figure) is not None]
    return Series(name=name, x=[row["epoch"] for row in rows], y=[row[figure] for row in rows])


def _draw_attention(second: Histories, first: Histories, systems: Sequence[Evaluated]) -> list[Figure]:
    figures = []
    for name, title, said, histories in (
        ("planting", "Attention during stage 1", "how well attention orders words by relevance", first),
        ("attention", "Attention through stage 2", "what stage 2 keeps of it", second),
    ):
        measured = {system: quality for system, history in histories.items() if (quality := _find_quality(history))}
        series = [read_curve(system, histories[system], quality) for system, quality in measured.items()]
        chance = [
            read_curve(f"{system}, random order", histories[system], f"{RANDOM}{quality}") for system, quality in list(measured.items())[:1]
        ]
        if measured:
            figures.append(
                Figure(
                    name=name,
                    title=title,
                    description=f"nDCG of the words of validation documents, ranked by their labels' attention against relevance: {said}. "
                    "A random order of the words shows where nothing is planted.",
                    form="lines",
                    x=Axis(title="epoch", unit="count"),
                    y=Axis(title=f"{next(iter(measured.values()))}, points"),
                    series=[one for one in (*series, *chance) if one.y],
                    notes=_describe(systems, list(measured)),
                )
            )
    return figures


def _find_quality(history: Sequence[Mapping[str, Any]]) -> str | None:
    return next((name for row in history for name in row if name.startswith("nDCG@")), None)


def draw_planting(systems: Sequence[Evaluated]) -> Figure | str:
    """Quality of planted attention against the final macro-F1 (as Figure 3 of the paper, left); else why it is left out."""
    points = [(system, found, bound) for system in systems if (found := _find_planted(system)) and (bound := _find_result(system))]
    if len(points) < 2:
        return (
            "Stage 1 against the result is left out: it takes two or more systems with a stage 1, such as other "
            "`plant pretrain-attn --tag`, named by `plant finetune --planted`."
        )
    quality = points[0][1][0]
    return Figure(
        name="planting-against-result",
        title=f"Stage 1 against the final {RESULT}",
        description=f"Each system: how well stage 1 orders words on validation against its {RESULT} on {systems[0].metrics.split}.",
        form="points",
        x=Axis(title=f"{quality} of stage 1, points"),
        y=Axis(title=f"{RESULT}, points"),
        series=[_place(system.name, [(value, bound)]) for system, (_, value), bound in points],
        notes=[f"stage 1: {_count('validation', [s for s, _, _ in points])}", systems[0].conditions],
    )


def _find_planted(system: Evaluated) -> tuple[str, float] | None:
    record = None if system.trained is None else system.find("pretrain-attn")
    named = {} if record is None else {n: v for n, v in record.summary.items() if n.startswith("nDCG@") and isinstance(v, int | float)}
    return next(iter(named.items()), None)


def _find_result(system: Evaluated) -> Bound | None:
    bound = system.metrics.metrics.get(RESULT)
    return bound if bound is not None and bound.value is not None else None


def _place(name: str, places: Sequence[tuple[float, Bound]]) -> Series:
    return Series(
        name=name,
        x=[x for x, _ in places],
        y=[bound.value or 0.0 for _, bound in places],
        low=[bound.low for _, bound in places],
        high=[bound.high for _, bound in places],
    )


def draw_sizes(systems: Sequence[Evaluated]) -> Figure | str:
    """The result against training documents (as Figure 3 of the paper, right); else why it is left out."""
    kinds: dict[str, list[tuple[float, Bound]]] = {}
    for system in systems:
        bound, size = _find_result(system), system.documents.get("train")
        if bound is not None and size:
            kinds.setdefault(_describe_kind(system), []).append((float(size), bound))
    if len({size for places in kinds.values() for size, _ in places}) < 2:
        return (
            "The result against the size of train is left out: all systems have as many training documents. "
            "`plant run RECIPE --set data.train_share=0.5 --run HALF` trains on half of them."
        )
    return Figure(
        name="training-size",
        title=f"{RESULT} against training documents",
        description=f"Systems of one kind are joined; each has its {RESULT} on {systems[0].metrics.split} with its interval.",
        form="lines",
        x=Axis(title="training documents", unit="count", log=True),
        y=Axis(title=f"{RESULT}, points"),
        series=[_place(kind, sorted(places, key=lambda place: place[0])) for kind, places in kinds.items()],
        notes=[systems[0].conditions],
    )


def _describe_kind(system: Evaluated) -> str:
    """What systems have in common that differ in the size of train alone."""
    trained = system.trained
    if trained is None:
        return system.name
    if not trained.options.get("network", True):
        return "scorers"
    return f"{trained.options.get('init', '')} attention" + (f" ({system.tag})" if system.tag else "")
