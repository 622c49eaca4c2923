"""The trained model of a run for Python callers: it takes texts and gives labels with their
names and titles.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api import (
    LabelIndex,
    Reporter,
    Request,
    SilentReporter,
    StageContext,
    StageSpec,
    UsageError,
    near_names,
)
from plant_cli.api.options import FIXED_SEED
from plant_cli.data.files import replacing_folder, require_free
from plant_cli.registry import installed
from plant_cli.runs.folder import CACHE
from plant_cli.runs.networks import find_networks
from plant_cli.runs.runner import RequestRunner, run_stage
from plant_cli.scoring.decisions import BANDS_FILE, Thresholds, read_thresholds
from plant_cli.scoring.explanations import Explanation, explain
from plant_cli.scoring.known_words import warn_of_unknown
from plant_cli.scoring.labelled_batches import add_columns, read_texts
from plant_cli.scoring.models import ModelSource, TrainedModel, load_model
from plant_cli.scoring.top_labels import Scoring, TopLabels

Trust = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A label that is suggested for a text."""

    label: str  # its id
    title: str | None  # None if the corpus gives it none
    score: float  # the probability, calibrated on validation
    threshold: float  # the score from which the label is assigned; infinite: never
    band: str  # by these scores: assign, review or reject
    why: str = ""  # what the scorers add to the log-odds, and by what, if asked for

    @property
    def assigned(self) -> bool:
        """Whether the score reaches the threshold."""
        return self.score >= self.threshold


@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A trained model that is loaded once and asked many times."""

    model: TrainedModel  # with a network or without
    labels: LabelIndex  # of the run
    thresholds: Thresholds  # from which score a label is assigned, or reviewed
    reporter: Reporter  # where progress goes
    run_path: Path  # the run that it is from
    holder: TemporaryDirectory[str] | None = None  # of a run that goes with the model
    tag: str | None = None  # the variant of `finetune`
    sets: tuple[str, ...] = ()  # values over those of the run

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes get the place of the model, and open it there once."""
        if self.holder is not None:
            raise UsageError(
                "a model that was not saved cannot be sent to other processes",
                where=str(self.run_path),
                expected="a model in a folder of its own",
                todo="model.save('FOLDER'), then send load('FOLDER')",
            )
        return _open_once, (str(self.run_path.absolute()), self.tag, self.sets)

    def label(self, batch: Any, *, text: str = "text", k: int = 10) -> Any:
        """A batch with the k best labels of each text in further columns: `labels`, `scores` and
        `bands`, lists, best first; empty for a text that tells the model nothing.

        It can be sent to other processes, which open the model by its path, once each.

        Args:
            batch: a DataFrame of polars or pandas, a Table or RecordBatch of Arrow, a mapping of
                columns, or a list of texts, of which a mapping is made.
            text: the column of texts.
            k: how many labels.

        Raises:
            UsageError: the batch has no such column, or has one of these three.
        """
        found = self.suggest(read_texts(batch, text), k=k)
        values: dict[str, list[list[Any]]] = {
            "labels": [[one.label for one in row] for row in found],
            "scores": [[one.score for one in row] for row in found],
            "bands": [[one.band for one in row] for row in found],
        }
        return add_columns(batch, values)

    def save(self, path: Path | str) -> None:
        """Keep the run as a folder, which `load` opens and every command takes; what only saves
        time is left out.

        Raises:
            UsageError: something is there.
        """
        target = Path(path)
        require_free(target, force=False, folder=True)
        with replacing_folder(target) as folder:
            shutil.copytree(
                self.run_path, folder, ignore=shutil.ignore_patterns(CACHE), dirs_exist_ok=True
            )

    def suggest(
        self, texts: Sequence[str], *, k: int = 10, batch: int = 16, why: bool = False
    ) -> list[list[Suggestion]]:
        """The k best labels of each text, best first; none for an empty text, or one that tells
        a model without a network nothing.
        """
        _refuse_strings(texts, "texts")
        top = self.model.score(
            texts, Scoring(name="texts", k=k, batch=batch, reporter=self.reporter, reasons=why)
        )
        self.warn_of_unknown(
            [f"text {number}" for number in range(1, len(texts) + 1)],
            self.find_trust(texts, top.trust),
        )
        return self.name_labels(texts, top)

    def name_labels(self, texts: Sequence[str], top: TopLabels) -> list[list[Suggestion]]:
        """The best labels of texts as suggestions; none of a text that tells the model nothing."""
        told = self.find_told(texts, top.trust)
        cuts, bands = (
            self.thresholds.select(top.labels).tolist(),
            self.thresholds.decide(top.labels, top.scores),
        )
        reasons = [[reason.text for reason in row] for row in top.reasons] or [
            [""] * top.labels.shape[1]
        ] * len(texts)
        rows = zip(
            told, top.labels.tolist(), top.scores.tolist(), cuts, bands, reasons, strict=True
        )
        ids, titles = self.labels.ids, self.labels.titles
        return [
            [
                Suggestion(
                    label=ids[label],
                    title=titles[label],
                    score=score,
                    threshold=threshold,
                    band=band,
                    why=reason,
                )
                for label, score, threshold, band, reason in zip(*columns, strict=True)
                if speaks
            ]
            for speaks, *columns in rows
        ]

    def explain(self, text: str, labels: Sequence[str]) -> list[Explanation]:
        """Why some labels, by their ids, have the scores that they have in a text: one explanation
        each.

        Raises:
            UsageError: an id is none of the run's labels.
        """
        rows = self.labels.positions
        for label in labels:
            if label not in rows:
                raise UsageError(
                    f"there is no label '{label}'",
                    where="labels to explain",
                    expected=f"ids of labels; {near_names(label, self.labels.ids)}",
                    todo="take ids from the suggestions, or from the table of labels",
                )
        return explain(
            self.model, text, [rows[label] for label in labels], self.labels, self.reporter
        )

    def find_trust(self, texts: Sequence[str], trust: Trust | None) -> Trust:
        """How far each text is believed [N], NaN for an empty one; NaN for all where the model
        does not say.
        """
        given = [bool(text.strip()) for text in texts]
        return np.where(given, np.nan if trust is None else trust, np.nan)

    def find_told(self, texts: Sequence[str], trust: Trust | None) -> list[bool]:
        """Whether each text tells the model anything, so that labels are suggested."""
        if trust is None or self.model.reads_pieces:
            return [bool(text.strip()) for text in texts]
        told: list[bool] = (self.find_trust(texts, trust) > 0).tolist()
        return told

    def warn_of_unknown(self, ids: Sequence[str], trust: Trust) -> None:
        """Name texts that tell the model nothing or little."""
        warn_of_unknown(ids, trust, self.reporter, reads_pieces=self.model.reads_pieces)


def find_source(context: StageContext, folder: Path) -> ModelSource:
    """Where a stage or action finds the model that `finetune` left in a folder."""
    return ModelSource(
        folder=folder,
        corpus=context.corpus(),
        component=context.component,
        networks=lambda: find_networks(context.request.registry),
        machine=context.machine,
        relevance=lambda: context.find_input("mig"),
    )


def open_model(
    run_path: Path | str,
    tag: str | None = None,
    *,
    sets: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> OpenModel:
    """Load the model that `finetune` left in a run, as `plant suggest` does. Nothing is written to
    the run.

    Args:
        run_path: the run folder.
        tag: the variant of `finetune`.
        sets: values over those of the run, such as `machine.device=cpu`.
        reporter: where warnings and progress go; None: nowhere.

    Raises:
        ArtefactError: there is no such run, `finetune` has not finished, its files are damaged, or
            the model runs code of its own and `sets` do not allow it.
    """
    heard = reporter or SilentReporter()
    request = Request(registry=installed(), run_path=Path(run_path), sets=sets, reporter=heard)
    action = next(spec.name for spec in request.registry.specs(StageSpec) if spec.opens_model)
    context = RequestRunner(request).open(action, tag)
    with context.reading_whole():
        return open_in(context)


def open_in(context: StageContext, thresholds: Thresholds | None = None) -> OpenModel:
    """The model of a context's run and tag, with these thresholds instead of its own."""
    folder = context.input("finetune", context.tag)
    corpus = context.corpus(folder)
    labels = corpus.labels
    chosen = thresholds or read_thresholds(folder, labels.hash, len(labels), BANDS_FILE)
    model = load_model(replace(find_source(context, folder), corpus=corpus))
    return OpenModel(
        model=model,
        labels=labels,
        thresholds=chosen,
        reporter=context.reporter,
        run_path=context.run_path,
        tag=context.tag,
        sets=tuple(context.request.sets),
    )


@lru_cache(maxsize=2)
def _open_once(run_path: str, tag: str | None, sets: tuple[str, ...]) -> OpenModel:
    """The model of a path for all that this process is sent."""
    return open_model(run_path, tag, sets=sets)


def fit(
    texts: Sequence[str],
    labels: Any,
    titles: Mapping[str, str] | None = None,
    *,
    validation: float = 0.1,
    **options: Any,
) -> OpenModel:
    """A model of texts and their labels, by scorers alone unless `network=True`. Its run goes with
    it; `save` keeps it.

    Args:
        texts: N of them.
        labels: the ids of each, N lists; or 0 and 1, an array or sparse matrix [N, L] whose columns
            have numbers as ids.
        titles: of labels by their ids.
        validation: share of the texts by which weights, probabilities and thresholds are chosen.
        options: of `plant finetune`, such as `scorers=["words", "neighbours"]`.

    Raises:
        UsageError: texts and labels do not fit.
        PlantError: the corpus or an option is refused, as on the command line.
    """
    _refuse_strings(texts, "texts")
    if len(getattr(labels, "shape", ())) > 1:
        matrix = csr_array(labels != 0)  # a sparse matrix may store zeros
        labels = [matrix.indices[slice(*ends)].tolist() for ends in pairwise(matrix.indptr)]
    _refuse_strings(labels, "labels")
    for row, one in enumerate(labels):
        _refuse_strings(one, f"labels[{row}]")
    labels = [[str(label) for label in one] for one in labels]
    if len(texts) != len(labels):
        raise UsageError(
            f"there are {len(texts)} texts and {len(labels)} lists of labels",
            where="fit(texts, labels)",
            expected="as many lists of labels as texts",
            todo="give an empty list for a text without labels",
        )
    holder = TemporaryDirectory(prefix="plant-")
    corpus, names, run = (
        Path(holder.name) / name for name in ("corpus.parquet", "titles.csv", "run")
    )
    order = np.random.default_rng(FIXED_SEED).permutation(len(texts))
    split = np.where(order < max(1, round(validation * len(texts))), "validation", "train")
    columns = {
        "doc_id": map(str, range(len(texts))),
        "text": texts,
        "labels": labels,
        "split": split,
    }
    schema: dict[str, Any] = {
        "doc_id": pl.String,
        "text": pl.String,
        "labels": pl.List(pl.String),
        "split": pl.String,
    }
    pl.DataFrame(
        {name: list(values) for name, values in columns.items()}, schema=schema
    ).write_parquet(corpus)
    data = {"path": str(corpus)}
    if titles is not None:
        pl.DataFrame({"label": list(titles), "title": list(titles.values())}).write_csv(names)
        data["titles"] = str(names)
    flags = {"data": data, "finetune": {"network": False, **options}}
    run_stage(Request(registry=installed(), run_path=run, flags=flags), "finetune")
    return replace(open_model(run), holder=holder)


def _refuse_strings(values: Any, name: str) -> None:
    if isinstance(values, str):
        raise UsageError(
            f"{name} is one string",
            where=name,
            expected="a list of strings",
            todo="put it into brackets: a list may have one element",
        )
