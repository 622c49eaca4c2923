"""The trained model of a run for Python callers: it takes texts and gives labels with their names and titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plant_cli.api import LabelIndex, Reporter, Request, SilentReporter, StageContext, StageSpec, UsageError, near_names
from plant_cli.registry import installed
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.decisions import Thresholds, read_thresholds
from plant_cli.scoring.explanations import Explanation, explain
from plant_cli.scoring.known_words import warn_of_unknown
from plant_cli.scoring.models import ModelSource, TrainedModel, load_model
from plant_cli.scoring.top_labels import Scoring, TopLabels


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A label that is suggested for a text."""

    label: str  # its id
    title: str | None  # None if the corpus gives it none
    score: float  # the probability, calibrated on validation
    threshold: float  # the score from which the label is assigned, tuned on validation
    band: str  # by these scores: assign, review or reject

    @property
    def assigned(self) -> bool:
        """Whether the score reaches the threshold."""
        return self.score >= self.threshold


@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A trained model that is loaded once and asked many times."""

    model: TrainedModel  # with a network or without
    labels: LabelIndex  # of the run
    thresholds: Thresholds  # from which score a label is assigned
    reporter: Reporter  # where progress goes

    def suggest(self, texts: Sequence[str], *, k: int = 10, batch: int = 16) -> list[list[Suggestion]]:
        """The k best labels of each text, best first; none for an empty text, or one that tells a model without a network nothing."""
        top = self.model.score(texts, Scoring(name="texts", k=k, batch=batch, reporter=self.reporter))
        told = self.find_told([f"text {number}" for number in range(1, len(texts) + 1)], texts, top)
        cuts, bands = self.thresholds.select(top.labels).tolist(), self.thresholds.decide(top.labels, top.scores)
        rows = zip(told, top.labels.tolist(), top.scores.tolist(), cuts, bands, strict=True)
        ids, titles = self.labels.ids, self.labels.titles
        return [
            [
                Suggestion(label=ids[label], title=titles[label], score=score, threshold=threshold, band=band)
                for label, score, threshold, band in zip(*columns, strict=True)
                if speaks
            ]
            for speaks, *columns in rows
        ]

    def explain(self, text: str, labels: Sequence[str]) -> list[Explanation]:
        """Why some labels, by their ids, have the scores that they have in a text: one explanation each.

        Raises:
            UsageError: an id is none of the run's labels.
        """
        rows = {label: row for row, label in enumerate(self.labels.ids)}
        for label in labels:
            if label not in rows:
                raise UsageError(
                    f"there is no label '{label}'",
                    where="labels to explain",
                    expected=f"ids of labels; {near_names(label, self.labels.ids)}",
                    todo="take ids from the suggestions, or from the table of labels",
                )
        return explain(self.model, text, [rows[label] for label in labels], self.labels, self.reporter)

    def find_told(self, ids: Sequence[str], texts: Sequence[str], top: TopLabels) -> list[bool]:
        """Whether each text tells the model anything, so that labels are suggested; a warning names those that tell nothing or little."""
        given = [bool(text.strip()) for text in texts]
        if top.trust is None:
            return given
        trust = np.where(given, top.trust, np.nan)
        warn_of_unknown(ids, trust, self.reporter, reads_pieces=self.model.reads_pieces)
        return given if self.model.reads_pieces else (trust > 0).tolist()


def find_source(context: StageContext, folder: Path) -> ModelSource:
    """Where a stage or action finds the model that `finetune` left in a folder."""
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
    action = next(spec.name for spec in request.registry.specs(StageSpec) if spec.opens_model)
    context = RequestRunner(request).open(action, tag)
    with context.reading_whole():
        return open_in(context)


def open_in(context: StageContext, thresholds: Thresholds | None = None) -> OpenModel:
    """The model of a context's run and tag, with these thresholds instead of its own."""
    folder, labels = context.input("finetune", context.tag), context.corpus().labels
    chosen = thresholds or read_thresholds(folder, labels.hash, len(labels))
    return OpenModel(model=load_model(find_source(context, folder)), labels=labels, thresholds=chosen, reporter=context.reporter)
