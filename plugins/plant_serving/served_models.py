"""The models of a server: each is loaded once, and one thread of its own scores the texts that
wait for it, some at a time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from plant_cli.api import ArtefactError, PlantError, Reporter, Request, SilentReporter
from plant_cli.data.blocks import checking
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import Run, StageFolder
from plant_cli.runs.runner import RequestRunner
from plant_cli.runs.session import never
from plant_cli.runs.stage_context import RunContext
from plant_cli.scoring.known_words import LITTLE
from plant_cli.scoring.models import has_network
from plant_cli.scoring.opened_models import OpenModel, open_in
from plant_cli.scoring.top_labels import Scoring, TopLabels, raise_if_stopped
from plant_serving.label_search import LabelSearch

TEXTS_AT_ONCE = 32  # texts that are scored in one go
CHARACTERS_AT_ONCE = 300_000  # of them together: a second or less, where the words are counted
MOST_SPELT = 300_000  # characters of the different words of a text; a novel in English has 150,000
_WORD = re.compile(r"\w+")
FIRST_TITLES = 100  # the text that a model is tried with
NOTES = {
    "empty": "the text is empty",
    "nothing": "no word of the text is one that the model learned from",
    "little": "the text has few words that the model knows, or common ones: scores are near base "
    "rates",
}


class Deaf(SilentReporter):
    """A reporter that keeps nothing: a server runs for months."""

    def note(self, message: str) -> None:
        """Forget a note."""

    def warn(self, message: str) -> None:
        """Forget a warning."""


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """What was read from a run at one time."""

    opened: OpenModel
    record: StageRecord  # of the stage `finetune`
    documents: int  # of train
    language: str  # of most documents, ISO 639-1
    network: bool

    @cached_property
    def search(self) -> LabelSearch:
        """Finds labels by name."""
        return LabelSearch(self.opened.labels)

    def decide(self, place: int, score: float) -> str:
        """`assign`, `review` or `reject` for a label with this score."""
        return self.opened.thresholds.decide(np.array([[place]]), np.array([[score]]))[0][0]

    @property
    def parts(self) -> list[str]:
        """The network and the scorers of the model."""
        scorers = self.opened.model.scorers
        return [
            *(["network"] if self.network else []),
            *([] if scorers is None else (one.name for one in scorers.scorers)),
        ]

    def suggest(
        self, texts: Sequence[str], limit: int, should_stop: Callable[[], bool] = never
    ) -> list[dict[str, Any]]:
        """The best labels of each text, as `POST /api/suggest` gives them; none for a text that
        tells the model nothing.
        """
        top = self.opened.model.score(
            texts,
            Scoring(
                name="texts",
                k=limit,
                batch=TEXTS_AT_ONCE,
                reporter=self.opened.reporter,
                should_stop=should_stop,
            ),
        )
        answers = []
        for row, (text, found) in enumerate(
            zip(texts, self.opened.name_labels(texts, top), strict=True)
        ):
            suggestions = [
                {
                    "label": one.label,
                    "title": one.title,
                    "score": one.score,
                    "threshold": _finite(one.threshold),
                    "band": one.band,
                }
                for one in found
            ]
            note = _remark(text, top, row)
            answers.append({"suggestions": suggestions, **({} if note is None else {"note": note})})
        return answers

    def explain(self, text: str, labels: Sequence[str]) -> list[dict[str, Any]]:
        """Why these labels have their scores, as `POST /api/explain` gives it."""
        opened = self.opened
        places = np.array([[opened.labels.positions[label] for label in labels]])
        thresholds = opened.thresholds.select(places)[0].tolist()
        return [
            {**one.to_json(), "threshold": _finite(threshold)}
            for one, threshold in zip(opened.explain(text, labels), thresholds, strict=True)
        ]

    def describe(self, name: str) -> dict[str, Any]:
        """The model as `GET /api/models` lists it."""
        target = self.opened.thresholds.objective
        bands = self.record.summary.get("bands", {})
        measured = bands if bands.get("target") == target else {}  # others were chosen: unknown
        return {
            "id": name,
            "title": name,
            "labels": len(self.opened.labels),
            "documents": self.documents,
            "parts": self.parts,
            "target": target,
            "right": measured.get("right"),
            "recall": measured.get("recall"),
            "network": self.network,
        }


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _remark(text: str, top: TopLabels, row: int) -> str | None:
    if not text.strip():
        return NOTES["empty"]
    if top.trust is None or top.trust[row] >= LITTLE:
        return None
    return NOTES["little" if top.trust[row] > 0 else "nothing"]


@dataclass(kw_only=True)
class Waiting:
    """Something that a model is to do."""

    work: Callable[[LoadedModel], Any] | None = (
        None  # None: texts are to be scored, together with others
    )
    texts: Sequence[str] = ()
    limit: int = 0
    result: Future[Any] = field(default_factory=Future)
    left: bool = False  # nobody waits for the result any more


def cut_jobs(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in jobs of which each takes a second or so: a long text is alone."""
    some: list[str] = []
    size = 0
    for text in texts:
        if some and (len(some) == TEXTS_AT_ONCE or size + len(text) > CHARACTERS_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(text)
        size += len(text)
    if some:
        yield some


def has_few_words(text: str, most: int = MOST_SPELT) -> bool:
    """Whether the different words of a text have so many characters together, at most; it ends
    with the first beyond.
    """
    seen, left = set[str](), most
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if word not in seen:
            seen.add(word)
            left -= len(word)
            if left < 0:
                return False
    return True


class ServedModel:
    """A model and the thread that asks it; it is replaced as a whole, between two jobs."""

    def __init__(self, request: Request, path: Path, tag: str | None, batch_wait: float) -> None:
        self.id = path.absolute().name
        self._request, self._path, self._tag, self._batch_wait = request, path, tag, batch_wait
        self._waiting: SimpleQueue[Waiting | None] = SimpleQueue()
        self.loaded = self._load()
        self._thread = Thread(target=self._work, name=f"model {self.id}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[LoadedModel], Any]) -> Waiting:
        """Have the model's thread do something."""
        job = Waiting(work=work)
        self._waiting.put(job)
        return job

    def score(self, texts: Sequence[str], limit: int) -> Waiting:
        """Have a few texts scored (`cut_jobs`), together with those of others: a list of
        answers (`LoadedModel.suggest`).
        """
        job = Waiting(texts=texts, limit=limit)
        self._waiting.put(job)
        return job

    def close(self) -> None:
        """End the thread once all jobs are done."""
        self._waiting.put(None)
        self._thread.join()

    def reload(self, *, force: bool) -> bool:
        """Load the model anew if its training was repeated since (or `force`); True if it was
        loaded. The old one works on until then.

        Raises:
            PlantError: the new one cannot be read; the old one stays.
        """
        record = Run.open(self._path).stage("finetune", self._tag).record()
        if (
            record is None
            or record.status != "done"
            or (record == self.loaded.record and not force)
        ):
            return False
        self.loaded = self._load()
        return True

    @property
    def reporter(self) -> Reporter:
        """That of the command."""
        return self._request.reporter

    def open_context(self) -> RunContext:
        """A context of the model's run."""
        return RequestRunner(replace(self._request, run_path=self._path)).open("serve", self._tag)

    def _load(self) -> LoadedModel:
        context = self.open_context()
        with context.reading_whole():
            opened, folder = (
                open_in(context),
                context.input("finetune", self._tag),
            )
            corpus, record = context.open_corpus(folder), StageFolder(folder).record()
        assert record is not None  # its folder was just read
        loaded = LoadedModel(
            opened=replace(opened, reporter=Deaf()),
            record=record,
            documents=corpus.sizes["train"],
            language=next(iter(corpus.record.analyser.shares), "en"),
            network=has_network(folder),
        )
        loaded.suggest(
            [" ".join(filter(None, corpus.labels.titles[:FIRST_TITLES]))], 1
        )  # what is read at first use is read now
        return loaded

    def _work(self) -> None:
        ends = False
        while not ends and (first := self._waiting.get()) is not None:
            jobs, ends = self._gather(first)
            _do(self.loaded, [job for job in jobs if job.result.set_running_or_notify_cancel()])

    def _gather(self, first: Waiting) -> tuple[list[Waiting], bool]:
        """The jobs that wait now, or arrive within the time that is waited for more, as far as
        they fit; and whether none may follow.
        """
        jobs, until = [first], time.monotonic() + self._batch_wait
        while (
            sum(len(job.texts) for job in jobs) < TEXTS_AT_ONCE
            and sum(len(text) for job in jobs for text in job.texts) < CHARACTERS_AT_ONCE
        ):
            try:
                job = self._waiting.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False


def _do(loaded: LoadedModel, jobs: Sequence[Waiting]) -> None:
    """Do some jobs; texts are scored together."""
    for job in jobs:
        if job.work is not None:
            _finish([job], partial(map, job.work, [loaded]))
    together = [job for job in jobs if job.work is None]
    if together:
        _finish(together, lambda: _score_together(loaded, together))


def _are_left(jobs: Sequence[Waiting]) -> bool:
    return all(job.left for job in jobs)


def _score_together(loaded: LoadedModel, jobs: Sequence[Waiting]) -> list[list[dict[str, Any]]]:
    answers = iter(
        loaded.suggest(
            [text for job in jobs for text in job.texts],
            max(job.limit for job in jobs),
            partial(_are_left, jobs),
        )
    )
    parts = [[next(answers) for _ in job.texts] for job in jobs]
    return [
        [{**answer, "suggestions": answer["suggestions"][: job.limit]} for answer in part]
        for job, part in zip(jobs, parts, strict=True)
    ]


def _finish(jobs: Sequence[Waiting], work: Callable[[], Iterable[Any]]) -> None:
    """Give each job its result, or all of them the error; the work stops where nobody waits for
    any of them.
    """
    try:
        with checking(lambda: raise_if_stopped(partial(_are_left, jobs))):
            for job, result in zip(jobs, work(), strict=True):
                job.result.set_result(result)
    except BaseException as error:
        for job in jobs:
            job.result.set_exception(error)


def open_models(
    request: Request, paths: Sequence[Path], tag: str | None, batch_wait: float
) -> dict[str, ServedModel]:
    """The models of these runs by id, the name of each folder."""
    names = [path.absolute().name for path in paths]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ArtefactError(
            f"two runs are called '{repeated}'",
            where=", ".join(
                str(path) for path, name in zip(paths, names, strict=True) if name == repeated
            ),
            expected="folders with different names, which are the ids of the models",
            todo="rename one of the folders, or make a link to it with another name",
        )
    return {
        name: ServedModel(request, path, tag, batch_wait)
        for name, path in zip(names, paths, strict=True)
    }


def renew(models: Sequence[ServedModel], *, force: bool = False) -> None:
    """Load models anew whose training was repeated; what goes wrong is a warning, and the old
    model stays.
    """
    for model in models:
        reporter = model.reporter
        try:
            if model.reload(force=force):
                reporter.note(
                    f"{model.id}: the model was loaded anew, {len(model.loaded.opened.labels):,} "
                    "labels"
                )
        except (
            Exception
        ) as error:  # a damaged file raises what its library likes, and the next one may be read
            reason = error if isinstance(error, PlantError | OSError) else type(error).__name__
            reporter.warn(
                f"{model.id}: the new model could not be loaded, and the one before goes on: "
                f"{reason}"
            )
