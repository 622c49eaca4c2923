"""What a stage is given: the implementation of `api.StageContext` over a run folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant_cli.api import ArtefactError, Choice, Corpus, DataSection, Dataset, Options, Reporter, Task, UsageError
from plant_cli.api.components import SpecT
from plant_cli.api.context import command_for
from plant_cli.data.files import hash_file, hash_json
from plant_cli.runs.changes import trace_stale
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.repetition import find_input_tag
from plant_cli.runs.steps import Step, write_out

if TYPE_CHECKING:
    from plant_cli.data.records import StageRecord
    from plant_cli.data.store import StoredCorpus
    from plant_cli.runs.runner import RequestRunner


class RecordingReporter:
    """Passes everything on, and keeps the warnings for stage.json."""

    def __init__(self, inner: Reporter) -> None:
        self.warnings: list[str] = []
        self._inner = inner

    def progress(self, description: str, total: float | None, unit: str) -> AbstractContextManager[Task]:
        """See `Reporter.progress`."""
        return self._inner.progress(description, total, unit)

    def note(self, message: str) -> None:
        """See `Reporter.note`."""
        self._inner.note(message)

    def warn(self, message: str) -> None:
        """See `Reporter.warn`."""
        self.warnings.append(message)
        self._inner.warn(message)


class RunContext:
    """A `StageContext` over a run folder."""

    def __init__(self, runner: RequestRunner, step: Step, run: Run | None, folder: Path, *, resume: bool = False) -> None:
        self.request = runner.request
        self.runner = runner
        self.run_path = runner.request.run_path
        self.folder = folder
        self.tag = step.tag
        self.resume = resume
        self.force = runner.request.force
        self.recorder = RecordingReporter(runner.request.reporter)
        self.reporter: Reporter = self.recorder
        self.data = runner.consent.keep_named(step.data)
        self.model = step.model
        self.machine = step.machine
        self.inputs: dict[str, str] = {}
        self.on_input: Callable[[], None] = lambda: None  # called when an input was added
        self._records: dict[str, StageRecord] = {}  # of the inputs, when they were first read
        self._warned: set[str] = set()
        self._spec = step.spec
        self._run = run  # None for an action, which opens the run when it first reads from it

    @property
    def stopping(self) -> bool:
        """See `StageContext.stopping`."""
        return self.runner.interruption.requested

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """See `StageContext.component`."""
        spec, options = self.request.registry.resolve(kind, chosen)
        self.runner.consent.require(spec, chosen, options, self.run_path)
        return spec, options

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        """See `StageContext.components`."""
        return self.request.registry.specs(kind)

    def corpus(self) -> Corpus:
        """See `StageContext.corpus`."""
        return self.open_corpus()

    def open_corpus(self) -> StoredCorpus:
        """The same, with what the run keeps of it."""
        run = self._require_run("corpus")
        corpora, key = self.runner.corpora, hash_json(write_out(self.data, None))
        if key not in corpora:
            corpora[key] = self._load_corpus(run)
        return corpora[key]

    def input(self, stage: str, tag: str | None = None) -> Path:
        """See `StageContext.input`; warns if what that stage was made from has changed since."""
        run = self._require_run("stage")
        tag = find_input_tag(run, stage, tag, self.tag)
        folder = run.stage(stage, tag)
        record = folder.require(todo=command_for(stage, tag, self.run_path) + self._name_corpus(run))
        for name, reasons in trace_stale(folder.name, run).items():
            self._warn_stale(run, name, reasons)
        self.inputs[folder.name] = folder.output_hash(record)
        self._records.setdefault(folder.name, record)
        self.on_input()
        return folder.path

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        """See `StageContext.find_input`."""
        run = self._require_run("stage")
        found = run.stage(stage, find_input_tag(run, stage, tag, self.tag))
        return self.input(stage, tag) if found.is_done() else None

    def confirm_inputs(self) -> None:
        """See `StageContext.confirm_inputs`."""
        for name, record in self._records.items():
            folder = self._require_run("stage").folder(name)
            if not folder.holds(record):
                raise ArtefactError(
                    f"the stage '{name}' was made anew, or removed, while it was read",
                    where=str(folder.path),
                    expected="a finished stage that stays as it is until this command ends",
                    todo="repeat this command; if the stage is still being made, it says so",
                )

    @contextmanager
    def reading_whole(self) -> Iterator[None]:
        """Refuse what the block makes, or the error it ends with, if another process replaced an input of it meanwhile."""
        try:
            yield
        except Exception as error:
            try:
                self.confirm_inputs()
            except ArtefactError as replaced:
                raise replaced from error
            raise
        self.confirm_inputs()

    def ensure(self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None) -> Path:
        """See `StageContext.ensure`."""
        if self._run is not None:
            tag = find_input_tag(self._run, stage, tag, self.tag)
        self.runner.ensure(stage, tag, options or {})
        return self.input(stage, tag)

    def _name_corpus(self, run: Run) -> str:
        """The corpus as an argument, while no stage has finished and the run has no recipe to find it by."""
        return "" if self.data.path is None or run.recipe_path.exists() else f" {shlex.quote(self.data.path)}"

    def _warn_stale(self, run: Run, name: str, reasons: list[str]) -> None:
        record = run.folder(name).record()
        if record is not None and name not in self._warned:
            self._warned.add(name)
            command = command_for(record.stage, record.tag, self.run_path)
            self.reporter.warn(f"'{name}' is out of date: {'; '.join(reasons)}; `{command} --force` renews it")

    def _require_run(self, what: str) -> Run:
        if self._run is None and self._spec.needs_run:
            self._run = Run.open(self.run_path)
        if self._run is None:
            raise UsageError(
                f"'{self._spec.name}' works outside any run, so there is no {what} of a run to read",
                where=f"plant {self._spec.name}",
                expected="a stage or action that is given a run folder",
                todo="declare it with needs_run=True",
            )
        return self._run

    def _dataset(self) -> Dataset:
        from plant_cli.data.loading import load_dataset

        return load_dataset(self, self.data)

    def _load_corpus(self, run: Run) -> StoredCorpus:
        if run.header.data_hash is None and not self._spec.writes:
            raise ArtefactError(
                f"the run '{run.path}' has no corpus yet",
                where=str(run.path),
                expected="a run in which a stage has read its corpus",
                todo="start with `plant mig DATA`",
            )
        if run.header.data_hash is None:
            return self._prepare_corpus(run)
        from plant_cli.data.store import open_corpus

        if self.data == DataSection() and not run.recipe_path.exists():
            raise _without_recipe(run)
        corpus = open_corpus(run.corpus_path, self._dataset)
        self._refuse_other_options(corpus, run)
        self._warn_other_words(corpus)
        self._warn_other_titles(run)
        for what, file, recorded, found in (
            ("documents", "splits.json", run.header.data_hash, corpus.data_hash),
            ("label order", "labels.parquet", run.header.label_hash, corpus.labels.hash),
        ):
            if recorded != found:
                raise ArtefactError(
                    f"the {what} of the corpus in this run are not those that its stages were run on",
                    where=f"{run.path / HEADER_NAME} ({str(recorded)[:12]}…) against {run.corpus_path / file} ({found[:12]}…)",
                    expected="one hash in both",
                    todo=f"put {run.corpus_path} back as it was, or start another run with --run DIR",
                )
        return corpus

    def _warn_other_words(self, corpus: StoredCorpus) -> None:
        from plant_cli.data.analysers import find_other_packages

        if changed := find_other_packages(corpus.record.analyser):
            self.reporter.warn(
                f"words of this run were counted with {', '.join(changed)}: some may be reduced otherwise than when relevance was counted"
            )

    def _warn_other_titles(self, run: Run) -> None:
        for given in (self.data.vocabulary, self.data.titles):
            recorded = None if given is None else run.header.sources.get(str(_absolute(given)))
            if given is not None and recorded is not None and Path(given).is_file() and hash_file(Path(given)) != recorded:
                self.reporter.warn(
                    f"{given} has changed since this run was begun, which keeps its titles: another run (--run DIR) takes the new ones"
                )

    def _prepare_corpus(self, run: Run) -> StoredCorpus:
        from plant_cli.data.prepare import prepare

        if self.data == DataSection() and not any(folder.is_done() for folder in run.stages()):
            raise UsageError(
                f"there is no run in '{run.path}', and no corpus was named to start one with",
                where=str(run.path.absolute()),
                expected="the folder of a run, or a corpus: a table, or a folder of train, validation and test tables",
                todo="name the folder of your run with --run DIR, or start one with `plant mig CORPUS`, such as `plant mig data.parquet`",
            )
        dataset = self._dataset()
        corpus = prepare(dataset, self.data, run.corpus_path, self.reporter)
        sources = {str(path): hash_file(path) for path in map(_absolute, dataset.files) if path.is_file()}
        run.bind(data_hash=corpus.data_hash, label_hash=corpus.labels.hash, sources=sources)
        return corpus

    def _refuse_other_options(self, corpus: StoredCorpus, run: Run) -> None:
        now = self.data.model_dump(mode="json")
        for key, before in corpus.record.source.items():
            if key not in ("path", "dataset", "rejects") and now.get(key) != before and not _is_same_file(key, now.get(key), run):
                again = "leave the option out" if before is None else f"give it again: --set data.{key}={shlex.quote(json.dumps(before))}"
                raise ArtefactError(
                    f"the corpus of this run was prepared with {key} = {before!r}, not {now.get(key)!r}",
                    where=f"{corpus.folder}, data.{key}",
                    expected="the same options of the section `data` in every stage of a run",
                    todo=f"{again}, or start another run with --run DIR",
                )


def _is_same_file(key: str, given: str | None, run: Run) -> bool:
    """Whether an option names a file that the run's corpus was made of, in another place."""
    if key not in ("vocabulary", "titles", "evidence") or given is None or not Path(given).is_file():
        return False
    return hash_file(_absolute(given)) in run.header.sources.values()


def _without_recipe(run: Run) -> ArtefactError:
    """Nothing says where the run's corpus lies: its recipe was removed, or there was none yet."""
    lost = any(folder.is_done() for folder in run.stages())
    return ArtefactError(
        "the run has lost its recipe, which says where its corpus lies"
        if lost
        else "no corpus was named, and no stage of this run has finished, whose recipe would name it",
        where=str(run.recipe_path),
        expected="the file as `plant` wrote it" if lost else "the corpus, until the first stage has finished",
        todo=("restore it, or name the corpus again, " if lost else "name the corpus again, ")
        + f"as at the beginning of the run, or with --set data.path=PATH (it stands in {run.corpus_path / 'splits.json'}, under source)",
    )


def _absolute(path: str) -> Path:
    return Path(path).absolute()


def refuse_other_corpus(context: RunContext, run: Run) -> None:
    """Refuse a named corpus that is not that of the run, before anything is said of stages; nothing is read for one at the known place.

    A corpus that moved is known by the hashes of its files, one in another format by those of its documents.

    Args:
        context: of the step that is to begin.
        run: the run, held.

    Raises:
        DataError: it cannot be read.
        ArtefactError: it has other documents, labels or splits, or the run's corpus was made and not read from a path.
    """
    named = context.data.path
    if named is None or run.header.data_hash is None:
        return
    from plant_cli.data.corpus_files import NEW_RUN, SPLITS_FILE, CorpusRecord
    from plant_cli.data.loading import ANY, load_dataset

    source = CorpusRecord.read(run.corpus_path).source
    before = source.get("path")
    if named == before:
        return
    if before is None:
        dataset = source.get("dataset") or {}
        if not Path(named).exists():
            load_dataset(context, context.data.model_copy(update={"dataset": Choice(name=ANY)}))  # says what is missing
        raise ArtefactError(
            f"this run belongs to another corpus, made by '{dataset.get('name')}', and not to '{named}'",
            where=str(run.corpus_path / SPLITS_FILE),
            expected="a run folder of its own for each corpus",
            todo=NEW_RUN,
        )
    corpus = context.open_corpus()
    if all(Path(file).is_file() and hash_file(Path(file)) in run.header.sources.values() for file in corpus.dataset.files):
        return
    for split in corpus.record.splits:
        for _ in corpus.stream(split):
            pass
