"""Runs one stage or action, or all steps of a recipe, in a run folder: from what the user asked to a recorded result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from plant_cli.api import ArtefactError, Interrupted, PlantError, RecipeError, Request, Result, StageSpec, StepResult
from plant_cli.api.sections import SHARED_SECTIONS
from plant_cli.artefacts.records import StageRecord
from plant_cli.base.commands import command_for
from plant_cli.recipe.components import find_choices
from plant_cli.recipe.consent import Consent
from plant_cli.recipe.layers import Layer, merge
from plant_cli.recipe.replay import DoneStep, write_recipe
from plant_cli.recipe.sources import load_recipe, parse_command, read_run_recipe
from plant_cli.recipe.steps import Step, check_sections, join_tag, resolve_step, resolve_steps
from plant_cli.running.attempt import attempt
from plant_cli.running.context import CorpusCache, RunContext
from plant_cli.running.named_corpus import refuse_other_corpus
from plant_cli.running.refusals import lost_record, refusal
from plant_cli.running.seeds import repeat
from plant_cli.runs.changes import find_changes, refuse_changed_sources
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.interruption import Interruption
from plant_cli.runs.shortages import find_shortage
from plant_cli.runs.stage import StageFolder

LOCKING = ("run", "quickstart", "mig edit")  # what locks the run itself, and so cannot be a step of a recipe
Start = Literal["fresh", "resume", "pass over"]


def run_stage(request: Request, name: str, tag: str | None = None) -> Result:
    """Run a stage or an action. See `plant_cli.api.Runner.run_stage`."""
    return RequestRunner(request).run(name, tag).result


def run_recipe(request: Request) -> list[StepResult]:
    """Run all steps of the request's recipe. See `plant_cli.api.Runner.run_recipe`."""
    return list(RequestRunner(request).run_all())


def print_config(request: Request, name: str, tag: str | None = None) -> str:
    """What `run_stage` would run with, as a recipe in YAML."""
    step = RequestRunner(request).resolve(name, tag)
    return write_recipe(step.spec.summary, [DoneStep(section=step.name, stage=name, options=step.values, sections=step.sections)])


class FreshRunner:
    """What a stage is given as `context.runner`: every call runs a request of its own."""

    run_stage = staticmethod(run_stage)
    run_recipe = staticmethod(run_recipe)


class RequestRunner:
    """Runs the steps of one request; they share the lock, the signals and the corpus in memory.

    Args:
        request: what the user asked for.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self._recipe = load_recipe(request.recipe).layer if request.recipe is not None else Layer()
        self._consent = Consent(self._recipe, parse_command(request.sets, request.flags))
        self._interruption = Interruption(request.reporter.note)
        self._corpora_cache = CorpusCache()
        self._run: Run | None = None

    def run(self, name: str, tag: str | None = None) -> StepResult:
        """Run one stage or action."""
        step = self.resolve(name, tag)
        return self._write(step, pass_over=False) if step.spec.writes else self._act(step)

    def open(self, name: str, tag: str | None = None) -> RunContext:
        """The context of an action, for a caller who does its work in Python; the run is not locked."""
        return self._open(self.resolve(name, tag))

    def run_all(self) -> Iterator[StepResult]:
        """Run the steps of the request's recipe in order, passing over what has not changed.

        All are validated before the first runs. Shared sections come from the recipe alone, not from earlier stages of
        the run, so that one recipe always means one experiment. Under several seeds the stages of training are repeated.
        """
        over = parse_command(self.request.sets, self.request.flags)
        steps = resolve_steps(self._recipe, over, self.request.registry)
        inner = next((step.spec.name for step in steps if step.spec.name in LOCKING), None)
        if inner is not None:
            raise RecipeError(
                f"`{inner}` cannot be a step of a recipe: it locks the run itself",
                where=f"{self.request.recipe}, section '{inner}'",
                expected="sections of stages, and of actions that only read",
                todo="use `extends:` to build on another recipe; run the command by itself before or after",
            )
        if self.request.seeds > 1:
            steps = resolve_steps(
                repeat(merge(self._recipe, over), steps, self.request.seeds, self.request.registry), Layer(), self.request.registry
            )
        with self._hold("a recipe") as run:
            refuse_changed_sources(run)
            for step in steps:
                if self._interruption.requested:
                    raise Interrupted(
                        f"stopped before '{step.name}'",
                        where=str(run.path),
                        expected="every step of the recipe",
                        todo="run it again with --resume",
                    )
                yield self._write(step, pass_over=True) if step.spec.writes else self._act(step)

    def resolve(self, name: str, tag: str | None, flags: Mapping[str, Mapping[str, Any]] | None = None) -> Step:
        """The step that the request means: earlier stages' shared sections < recipe < what it is resumed with < `--set` < flags."""
        spec = self.request.registry.find(StageSpec, name)
        given = dict(self.request.flags if flags is None else flags)
        if tag is not None and name in given:
            given[join_tag(name, tag)] = given.pop(name)  # a flag must win over the tagged section of the recipe
        early = self._earlier_sections() if spec.needs_run else Layer()
        late: tuple[Layer, ...] = (parse_command(self.request.sets, given),)
        if self.request.resume and self.request.recipe is None and spec.writes:
            late = (self._recorded(name, tag), *late)
        layers = [early, self._recipe, *late]
        check_sections(merge(*layers), self.request.registry)
        return resolve_step(layers, spec, tag, self.request.registry)

    def ensure(self, name: str, tag: str | None, options: dict[str, Any]) -> None:
        """Run a stage unless the run has a finished one with these options whose inputs are still the same."""
        shared = {section: given for section, given in self.request.flags.items() if section in SHARED_SECTIONS}
        step = self.resolve(name, tag, {**shared, name: options} if options else shared)
        with self._hold(step.name) as run:
            folder = run.stage(name, tag)
            record = folder.record()
            if record is None and folder.holds_work():
                raise lost_record(folder, command_for(name, tag, self.request.run_path))
            if record is None or record.status != "done" or self._asked_changes(record, step, run):
                self._write(step, pass_over=False)

    def _asked_changes(self, record: StageRecord, step: Step, run: Run) -> list[str]:
        asked = step.layer.values.get("options", {})
        options = {key: value if key in asked else record.options.get(key) for key, value in step.values.items()}
        return find_changes(record, options, record.sections, run)

    def _earlier_sections(self) -> Layer:
        return read_run_recipe(self.request.run_path).only(SHARED_SECTIONS)

    def _recorded(self, name: str, tag: str | None) -> Layer:
        if not (self.request.run_path / HEADER_NAME).exists():
            return Layer()
        folder = Run.open(self.request.run_path).stage(name, tag)
        record = folder.record()
        if record is None:
            return Layer()
        values = {join_tag(name, tag): record.options, **record.sections}
        origin = str(folder.path / "stage.json")
        return Layer(values, {(section, key): origin for section, given in values.items() for key in given})

    @contextmanager
    def _hold(self, purpose: str) -> Iterator[Run]:
        """Lock the run and catch signals; within another such block, give the same run again."""
        if self._run is not None:
            yield self._run
            return
        with Run.hold(self.request.run_path, purpose) as run, self._interruption:
            self._run = run
            try:
                yield run
            finally:
                self._run = None

    def _context(self, step: Step, run: Run | None, folder: Path, *, resume: bool) -> RunContext:
        return RunContext(
            request=self.request,
            runner=FreshRunner(),
            step=step,
            run=run,
            folder=folder,
            resume=resume,
            interruption=self._interruption,
            corpora=self._corpora_cache,
            consent=self._consent,
            perform=self.ensure,
        )

    def _act(self, step: Step) -> StepResult:
        started = time.perf_counter()
        context = self._open(step)
        with self._named_shortages(resumes=False), context.reading_whole():
            result = step.spec.run(context, step.options)
        return _report(step, result, started)

    def _open(self, step: Step) -> RunContext:
        return self._context(step, self._run, self.request.run_path, resume=self.request.resume)

    @contextmanager
    def _named_shortages(self, *, resumes: bool) -> Iterator[None]:
        """Explain that disk or memory ran out, where no attempt at a stage is under way that would explain it."""
        try:
            yield
        except PlantError:
            raise
        except Exception as error:
            shortage = find_shortage(error, self.request.run_path, "nothing that was done is lost", resumes=resumes)
            if shortage is not None:
                raise shortage from error
            raise

    def _require_consent(self, step: Step) -> None:
        """Refuse, before anything is written, components that need a consent which the user did not give."""
        sections = [getattr(step, name) for name in step.spec.sections]
        for _, kind, chosen in (found for options in (step.options, *sections) for found in find_choices(options)):
            spec, options = self.request.registry.resolve(kind, chosen)
            self._consent.require(spec, chosen, options, self.request.run_path)

    def _write(self, step: Step, *, pass_over: bool) -> StepResult:
        self._require_consent(step)
        with self._named_shortages(resumes=True), self._hold(step.name) as run:
            folder = run.stage(step.spec.name, step.tag)
            context = self._context(step, run, folder.path, resume=False)
            refuse_other_corpus(context, run)
            before = self._record(folder)
            start = self._decide(step, folder, before, run, pass_over=pass_over)
            if start == "pass over" and before is not None:
                self.request.reporter.note(f"{step.name}: unchanged, passed over")
                return _report(step, Result(summary=before.summary), None)
            context.resume = start == "resume"
            started = time.perf_counter()
            result = attempt(context, step, folder, run)
            return _report(step, result, started)

    def _record(self, folder: StageFolder) -> StageRecord | None:
        try:
            return folder.record()
        except ArtefactError:
            if not self.request.force:
                raise
            folder.drop_record()
            return None

    def _decide(self, step: Step, folder: StageFolder, record: StageRecord | None, run: Run, *, pass_over: bool) -> Start:
        changes = find_changes(record, step.values, step.sections, run) if record is not None else []
        done = record is not None and record.status == "done"
        if record is not None and done and not changes and (pass_over or self.request.resume):
            damage = folder.find_damage(record)
            if not damage:
                return "pass over"
            if not self.request.force:
                raise damage[0].error(f"the stage '{folder.name}'", "make it again: repeat the command with --force")
        if self.request.force or not (done or folder.holds_work()):
            return "fresh"
        if record is None:
            raise lost_record(folder, command_for(step.spec.name, step.tag, self.request.run_path))
        if not done and self.request.resume and not changes:
            return "resume"
        raise refusal(folder, record, changes, run, resume=self.request.resume, one_of_many=pass_over)


def _report(step: Step, result: Result, started: float | None) -> StepResult:
    """The result of a step; `started` is the clock when it began, None if it was passed over."""
    seconds = 0.0 if started is None else time.perf_counter() - started
    return StepResult(name=step.name, writes=step.spec.writes, result=result, unchanged=started is None, seconds=seconds)
