"""The trained model of a run for Python callers: texts in, labels with their names and titles out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plant_cli.api import LabelIndex, Reporter, Request, SilentReporter, StageContext
from plant_cli.registry import installed
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.decisions import Thresholds, read_thresholds
from plant_cli.scoring.models import ModelSource, TrainedModel, load_model
from plant_cli.scoring.top_labels import Scoring

ACTION = "suggest"  # the action whose work is done here: its machine section and its checks hold


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A label that is suggested for a text.

    Args:
        label: its id.
        title: None if the corpus gives it none.
        score: the probability, calibrated on validation.
        threshold: the score from which the label is assigned, tuned on validation.
    """

    label: str
    title: str | None
    score: float
    threshold: float

    @property
    def assigned(self) -> bool:
        """Whether the score reaches the threshold."""
        return self.score >= self.threshold


@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A trained model that is loaded once and asked many times.

    Args:
        model: with a network or without.
        labels: the run's label index.
        thresholds: from which score a label is assigned.
        reporter: where progress goes.
    """

    model: TrainedModel
    labels: LabelIndex
    thresholds: Thresholds
    reporter: Reporter

    def suggest(self, texts: Sequence[str], *, k: int = 10, batch: int = 16) -> list[list[Suggestion]]:
        """The k best labels of each text, best first; none for an empty text.

        Args:
            texts: any number.
            k: labels of each text; fewer if the run has fewer.
            batch: texts scored at once; less needs less memory.
        """
        top = self.model.score(texts, Scoring(name="texts", k=k, batch=batch, reporter=self.reporter))
        found = zip(texts, top.labels.tolist(), top.scores.tolist(), self.thresholds.select(top.labels).tolist(), strict=True)
        return [[self._name(*one) for one in zip(*columns, strict=True)] if text.strip() else [] for text, *columns in found]

    def _name(self, label: int, score: float, threshold: float) -> Suggestion:
        return Suggestion(label=self.labels.ids[label], title=self.labels.titles[label], score=score, threshold=threshold)


def find_source(context: StageContext, folder: Path) -> ModelSource:
    """Where a stage finds a trained model.

    Args:
        context: of the stage or action that asks.
        folder: of the stage `finetune`.
    """
    return ModelSource(
        folder=folder,
        corpus=context.corpus(),
        component=context.component,
        machine=context.machine,
        relevance=lambda: context.find_input("mig"),
    )


def open_model(run_path: Path | str, tag: str | None = None, *, sets: Sequence[str] = (), reporter: Reporter | None = None) -> OpenModel:
    """Load the model that `finetune` left in a run, as `plant suggest` does. Nothing is written to the run.

    Args:
        run_path: the run folder.
        tag: the variant of `finetune`.
        sets: values over those of the run, such as `machine.device=cpu`.
        reporter: where warnings and progress go; None: nowhere.

    Raises:
        ArtefactError: there is no such run, `finetune` has not finished, its files are damaged, or the model runs code of its own and
            `sets` do not allow it.
    """
    heard = reporter or SilentReporter()
    request = Request(registry=installed(), run_path=Path(run_path), sets=sets, reporter=heard)
    context = RequestRunner(request).open(ACTION, tag)
    with context.reading_whole():
        folder, corpus = context.input("finetune", tag), context.corpus()
        model = load_model(find_source(context, folder))
        thresholds = read_thresholds(folder, corpus.labels.hash, len(corpus.labels))
    return OpenModel(model=model, labels=corpus.labels, thresholds=thresholds, reporter=heard)
