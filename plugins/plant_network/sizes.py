"""`plant plan --documents`: what texts will take that nobody has seen yet, from their number and
the slopes of `plant_cli.scoring.forecast`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plant_cli.api import Column, Result, Table, UsageError
from plant_cli.data.words import number_words
from plant_cli.scoring.forecast import Forecast, LabellingForecast
from plant_network import PlanOptions

LABELS_OF_A_DOCUMENT = 5
GB, HOUR = 1e9, 3600
FIGURES = (
    "documents",
    "labels",
    "words",
    "fitted on",
    "fit: core-hours",
    "fit: GB of memory",
    "label: core-hours",
    "label: GB a worker",
    "GB of disk",
    "price",
)
PLAN_NOTES = (
    "fit: `plant finetune --no-network` in one process, on texts of 5 labels each; label: `plant "
    "suggest` in as many processes as there are, without a network",
    "disk: the texts, the labels that are written, and the model while it is fitted",
    "fitting was measured up to 1,200,000 documents and 670,000 labels, labelling up to 60,000 "
    "labels and 200 words; what is beyond is drawn on from there",
)


@dataclass(frozen=True, kw_only=True)
class PlannedSizes:
    """What fitting on some documents and labelling all of them takes; hours are of one core."""

    documents: int
    labels: int
    words: int
    fitted_on: int
    fit_hours: float
    fit_gb: float
    label_hours: float
    worker_gb: float
    disk_gb: float
    price: float

    @classmethod
    def of(cls, options: PlanOptions, documents: int) -> PlannedSizes:
        """For documents as the options have them."""
        labels, words = options.labels, options.words
        fitted = min(documents, options.fitted_on)
        text = [f"word{number:04d}" for number in range(words)]
        fit = Forecast.of(number_words([text]), LABELS_OF_A_DOCUMENT, labels, fitted)
        label = LabellingForecast.of(documents, labels, words)
        hours = fit.seconds / HOUR, label.seconds / HOUR
        return cls(
            documents=documents,
            labels=labels,
            words=words,
            fitted_on=fitted,
            fit_hours=hours[0],
            fit_gb=fit.memory / GB,
            label_hours=hours[1],
            worker_gb=label.memory / GB,
            disk_gb=(fit.disk + label.disk) / GB,
            price=sum(hours) * options.core_hour,
        )

    def cells(self) -> list[str | int | float | None]:
        """A row of the table; two digits are more than the slopes are good for."""
        figures = [self.fit_hours, self.fit_gb, self.label_hours, self.worker_gb, self.disk_gb]
        counts = [self.documents, self.labels, self.words, self.fitted_on]
        return [*counts, *map(round_figure, figures), round_figure(self.price)]


def plan_sizes(options: PlanOptions, documents: int) -> Result:
    """The row of a number of documents. `UsageError` if there is a recipe, too."""
    if options.recipe is not None:
        raise UsageError(
            "a recipe and a number of documents are two plans",
            where=f"plant plan {options.recipe} --documents {documents}",
            expected="one of them: a recipe's corpus says how many documents there are",
            todo="leave one out",
        )
    found = PlannedSizes.of(options, documents)
    columns = [Column(name=name, kind="exact") for name in FIGURES]
    rate = f"price: at {options.core_hour:g} a core-hour; memory and disk are not in it"
    table = Table(
        title=f"{documents:,} documents",
        columns=columns,
        rows=[found.cells()],
        notes=[*PLAN_NOTES, rate],
    )
    return Result(tables=[table], data=asdict(found))


def round_figure(value: float) -> float:
    """Two digits that count."""
    short = float(f"{value:.2g}")
    return int(short) if short == int(short) else short
