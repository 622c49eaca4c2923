"""The implementation of `api.StageContext` over a run folder."""

# ruff: noqa: D102  # the methods of a protocol are described there
from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant_cli.api import (
    ArtefactError,
    Choice,
    Corpus,
    DatasetSpec,
    Options,
    Reporter,
    Task,
    UsageError,
)
from plant_cli.api.components import SpecT
from plant_cli.api.context import command_for
from plant_cli.api.functions import Named
from plant_cli.data.blocks import StoppableTask
from plant_cli.data.files import hash_json
from plant_cli.runs.changes import trace_stale
from plant_cli.runs.folder import Run, StageFolder
from plant_cli.runs.repetition import find_input_tag, split_seed
from plant_cli.runs.steps import Step, write_out

if TYPE_CHECKING:
    from plant_cli.data.records import StageRecord
    from plant_cli.data.store import StoredCorpus
    from plant_cli.runs.runner import RequestRunner

# with polars, which many actions do without
OWN_SHARE = Named("plant_cli.runs.run_corpus:find_own_share")
OPEN_OWN = Named("plant_cli.runs.run_corpus:open_own_corpus")
TAKE_PART = Named("plant_cli.data.training_part:take_part")


class RecordingReporter:
    """Passes everything on, and keeps the warnings for stage.json; what reports progress may be
    stopped whenever it does so.
    """

    def __init__(self, inner: Reporter) -> None:
        self.warnings: list[str] = []
        self._inner = inner

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        with self._inner.progress(description, total, unit) as task:
            yield StoppableTask(task)

    def note(self, message: str) -> None:
        self._inner.note(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        self._inner.warn(message)


class RunContext:
    """A `StageContext` over a run folder."""

    def __init__(
        self,
        runner: RequestRunner,
        step: Step,
        run: Run | None,
        folder: Path,
        *,
        resume: bool = False,
    ) -> None:
        self.request = runner.request
        self.runner = runner
        self.run_path = runner.request.run_path
        self.folder = folder
        self.tag = step.tag
        self.resume = resume
        self.force = runner.request.force
        self.recorder = RecordingReporter(runner.request.reporter)
        self.reporter: Reporter = self.recorder
        self.data, self._share = (
            runner.consent.keep_named(step.data),
            1.0,
        )  # of the run's training documents
        if (
            run is not None
            and run.header.data_hash is not None
            and step.spec.learns
            and step.data.train_share < 1
        ):
            self.data, self._share = OWN_SHARE(self.data, run)
        self.model = step.model
        self.machine = step.machine
        self.inputs: dict[str, str] = {}
        self.on_input: Callable[[], None] = lambda: None  # called when an input was added
        self._records: dict[str, StageRecord] = {}  # of the inputs, when they were first read
        self._warned: set[str] = set()
        self._told: set[str] = set()  # folders that are used until they are made anew
        self._spec = step.spec
        self._sections = step.sections
        self._run = run  # None for an action, which opens the run when it first reads from it

    @property
    def stopping(self) -> bool:
        return self.runner.interruption.requested

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        spec, options = self.request.registry.resolve(kind, chosen)
        self.runner.consent.require(spec, chosen, options, self.run_path)
        if isinstance(spec, DatasetSpec):
            self.runner.consent.require_corpus(spec, self.data, options, self.run_path)
        return spec, options

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        return self.request.registry.specs(kind)

    def corpus(self, made: Path | None = None) -> Corpus:
        corpus: Corpus = (
            self.open_corpus(made)
            if self._share == 1
            else TAKE_PART(self.open_corpus(made), self._share, self.data)
        )
        return corpus

    def open_corpus(self, made: Path | None = None) -> StoredCorpus:
        """The corpus with the run's record of it."""
        run = self._require_run("corpus")
        corpora, key = self.runner.corpora, self.corpus_key
        if made is not None:
            own: StoredCorpus | None = OPEN_OWN(self, run, StageFolder(made))
            if own is not None:
                return own
        if key not in corpora:
            from plant_cli.runs.run_corpus import (
                open_run_corpus,
            )  # with polars, which many actions do without

            corpora[key] = open_run_corpus(self, run, writes=self._spec.writes)
        return corpora[key]

    @property
    def corpus_key(self) -> str:
        """Of `RequestRunner.corpora`."""
        return hash_json(write_out(self.data, None))

    def input(self, stage: str, tag: str | None = None) -> Path:
        run = self._require_run("stage")
        tag = find_input_tag(run, stage, self._own_tag(tag), self.tag)
        folder = run.stage(stage, tag)
        if not self._spec.writes and (usable := folder.usable()) is not folder:
            if usable.name not in self._told:
                self._told.add(usable.name)
                self.reporter.note(
                    f"'{folder.name}' is being made anew: what it replaces is used until then"
                )
            folder = usable
        named = (
            self.data.path is not None and not run.recipe_path.exists()
        )  # no stage has finished: the corpus has to be named again
        corpus = f" {shlex.quote(str(self.data.path))}" if named else ""
        record = folder.require(todo=command_for(stage, tag, self.run_path) + corpus)
        for name, reasons in trace_stale(folder.name, run).items():
            stale = run.folder(name).record()
            if stale is not None and name not in {*self._warned, *self._told}:
                self._warned.add(name)
                command = command_for(stale.stage, stale.tag, self.run_path)
                self.reporter.warn(
                    f"'{name}' is out of date: {'; '.join(reasons)}; `{command} --force` renews it"
                )
        shares = [
            of.get("train_share", 1.0)
            for of in (record.sections.get("data", {}), self._sections.get("data", {}))
        ]
        if self._spec.learns and shares[0] != shares[1]:
            raise ArtefactError(
                f"'{folder.name}' learned from other training documents: data.train_share is "
                f"{shares[0]:g} there, and {shares[1]:g} here",
                where=str(folder.path),
                expected="one share of the training documents in all stages of a system",
                todo="name the stage of the same share, or change the share of all of them: "
                "`changes: {few: {data: {train_share: 0.1}}}`",
            )
        self.inputs[folder.name] = folder.output_hash(record)
        self._records.setdefault(folder.name, record)
        self.on_input()
        return folder.path

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        run = self._require_run("stage")
        folder = run.stage(stage, find_input_tag(run, stage, self._own_tag(tag), self.tag))
        found = folder if self._spec.writes else folder.usable()
        return self.input(stage, tag) if found.is_done() else None

    def _own_tag(self, tag: str | None) -> str | None:
        """A stage on a part of train reads what has its own tag, if none is named: the untagged
        one learned from all of train.
        """
        return tag if tag is not None or self._share == 1 else split_seed(self.tag)[0]

    def confirm_inputs(self) -> None:
        for name, record in self._records.items():
            folder = self._require_run("stage").folder(name)
            if not folder.holds(record):
                raise ArtefactError(
                    f"the stage '{name}' was made anew, or removed, while it was read",
                    where=str(folder.path),
                    expected="a finished stage that stays as it is until this command ends",
                    todo="repeat this command",
                )

    @contextmanager
    def reading_whole(self) -> Iterator[None]:
        """Refuse the result of the block, or replace its error, if another process replaced an
        input in the meantime.
        """
        try:
            yield
        except Exception as error:
            try:
                self.confirm_inputs()
            except ArtefactError as replaced:
                raise replaced from error
            raise
        self.confirm_inputs()

    def ensure(
        self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None
    ) -> Path:
        if self._run is not None:
            tag = find_input_tag(self._run, stage, tag, self.tag)
        self.runner.ensure(stage, tag, options or {})
        return self.input(stage, tag)

    def _require_run(self, what: str) -> Run:
        if self._run is None and self._spec.needs_run:
            self._run = Run.open(self.run_path)
        if self._run is None:
            raise UsageError(
                f"'{self._spec.name}' works outside any run, so it cannot read the {what} of a run",
                expected="a stage or action with a run folder",
                todo="declare it with needs_run=True",
            )
        return self._run
