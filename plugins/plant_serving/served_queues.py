"""The queues of a server: read from files, looked through by the model, with what people
decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from plant_cli.api import PlantError, SilentReporter
from plant_cli.data.loading import guess_text
from plant_cli.scoring.new_texts import TextReader
from plant_serving.document_queue import (
    DocumentQueue,
    Order,
    PastDecision,
    expect_changes,
    read_past,
)
from plant_serving.http_bodies import DroppedFile
from plant_serving.refusals import Refusal
from plant_serving.served_models import ServedModel, Waiting, cut_jobs, has_few_words

MOST_DROPPED = 8  # queues of dropped files: the one that was dropped first goes
LOOKED_THROUGH = 20  # labels of a document that its doubt is made of


class ServedQueues:
    """Queues by number. Decisions on their documents are those of the feedback file."""

    def __init__(
        self,
        model: ServedModel,
        feedback: Path | None,
        *,
        order: Order = "doubt",
        people: int = 1,
        log: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._model, self._feedback, self._log = model, feedback, log
        self._order: Order = order
        self._people = people
        self._queues: dict[int, DocumentQueue] = {}
        self._dropped: list[int] = []
        self._lock = Lock()
        self._job: Waiting | None = None
        self._ends = False
        self._threads: list[Thread] = []

    def add(self, path: str) -> DocumentQueue:
        """Make a queue of texts that `plant suggest` reads, which stays."""
        reporter = self._model.reporter
        documents = _read_texts(self._model, path, reporter.note, reporter.warn)
        return self._begin(Path(path).name, documents, dropped=False)[1]

    def drop(self, files: Sequence[DroppedFile]) -> tuple[int, list[str]]:
        """Make a queue of files that were dropped on the page; its number, and what was odd.

        Raises:
            Refusal: they are no texts.
        """
        notes: list[str] = []
        with TemporaryDirectory() as folder:
            for one in files:
                (Path(folder) / one.name).write_text(one.content, "utf-8", newline="")
            path = str(Path(folder) / files[0].name) if len(files) == 1 else folder

            def tell(message: str) -> None:
                notes.append(message.replace(f"{folder}/", "").replace(folder, "the files"))

            try:
                documents = _read_texts(self._model, path, tell, tell)
            except PlantError as error:
                parts = (error.what, error.where, error.expected, error.todo)
                what, where, expected, todo = (
                    part.replace(f"{folder}/", "").replace(folder, "the files") for part in parts
                )
                raise Refusal(422, what, where=where, expected=expected, todo=todo) from error
        name = files[0].name if len(files) == 1 else f"{len(files)} files"
        return self._begin(name, documents, dropped=True)[0], notes

    def __iter__(self) -> Iterator[tuple[int, DocumentQueue]]:
        return iter(sorted(self._queues.items()))

    def find(self, number: int) -> DocumentQueue:
        """The queue of this number."""
        queue = self._queues.get(number)
        if queue is None:
            raise Refusal(
                404,
                "there is no queue of this number",
                where="the queue",
                expected="a number that GET /api/queues lists",
                todo="drop the file on the page again: the decisions on it are kept",
            )
        return queue

    def take(self, doc_id: str, text: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Note decisions that were stored, as rows of the feedback file."""
        decisions = [past for row in rows if (past := read_past(row)) is not None]
        for _, queue in self:
            queue.take(doc_id, text, decisions)

    def close(self) -> None:
        """Look through no more documents."""
        self._ends = True
        if self._job is not None:
            self._job.left = True
        for thread in self._threads:
            thread.join()

    def _begin(
        self, name: str, documents: Sequence[tuple[str, str]], *, dropped: bool
    ) -> tuple[int, DocumentQueue]:
        queue = DocumentQueue(name, documents, order=self._order, people=self._people)
        with self._lock:
            number = max(self._queues, default=0) + 1
            self._queues = {**self._queues, number: queue}
            if dropped:
                self._dropped.append(number)
            for old in self._dropped[:-MOST_DROPPED]:
                self._queues = {one: kept for one, kept in self._queues.items() if one != old}
            self._dropped = self._dropped[-MOST_DROPPED:]
        # once it is in the list, since what is stored from now on is told to it
        for doc_id, text, past in _read_record(self._feedback):
            queue.take(doc_id, text, [past])
        if self._order == "doubt":
            thread = Thread(target=self._look_through, args=(number, queue), daemon=True)
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()
        return number, queue

    def _look_through(self, number: int, queue: DocumentQueue) -> None:
        """Find how doubtful each document is, some at a time, so that requests come in between."""
        documents = [one for one in queue.documents if has_few_words(one.text)]
        left = (one.place for one in documents)
        for some in cut_jobs([one.text for one in documents]):
            if self._ends or number not in self._queues:
                return
            self._job = job = self._model.score(some, LOOKED_THROUGH)
            try:
                answers = job.result.result()
            except Exception as error:
                if not self._ends:
                    self._log(
                        f"{queue.name} is not looked through to its end: {type(error).__name__}"
                    )
                return
            for answer in answers:
                queue.rate(next(left), expect_changes(answer["suggestions"]))


def _read_texts(
    model: ServedModel, path: str, note: Callable[[str], None], warn: Callable[[str], None]
) -> list[tuple[str, str]]:
    """Ids and texts of documents; columns are found as `plant suggest` finds them."""
    reporter = SilentReporter()
    context = model.open_context()
    reader = TextReader(data=context.data, reporter=reporter, guess=partial(guess_text, context))
    ids, texts = reader.read(path)
    for message in reporter.notes:
        note(message)
    for message in reporter.warnings:
        warn(message)
    return list(zip(ids, texts, strict=True))


def _read_record(path: Path | None) -> Iterator[tuple[str, str, PastDecision]]:
    """Document, text and decision of each line of a feedback file that is one: the text stands
    in the first line of a request alone.
    """
    if path is None or not path.is_file():
        return
    doc_id = text = ""
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a line that a dying machine did not finish
            past = read_past(row)
            if past is None:
                continue
            if row.get("text") or str(row.get("doc_id")) != doc_id:
                doc_id, text = str(row.get("doc_id")), str(row.get("text") or "")
            yield doc_id, text, past
