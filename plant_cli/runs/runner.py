"""Runs the steps of a request: one stage, one action, or a whole recipe."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plant_cli.api import (
    Corpus,
    DecoderSpec,
    Interrupted,
    PlantError,
    RecipeError,
    Request,
    Result,
    StageSpec,
    StepResult,
)
from plant_cli.api.context import join_tag
from plant_cli.api.functions import Named
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.data.records import STAGE_FILE
from plant_cli.runs.ablation import NAMED_CHANGES, TUNING, expand_changes
from plant_cli.runs.attempt import at_work, attempt, perform
from plant_cli.runs.changes import decide_start, must_run, refuse_changed_sources
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.machine import find_shortage
from plant_cli.runs.recipes import (
    RecipeLayer,
    load_recipe,
    merge_layers,
    parse_command,
    read_run_recipe,
    write_recipe,
)
from plant_cli.runs.repetition import repeat
from plant_cli.runs.session import Interruption
from plant_cli.runs.side_by_side import (
    Workers,
    find_awaited,
    find_late,
    open_workers,
    run_side_by_side,
)
from plant_cli.runs.stage_context import RunContext
from plant_cli.runs.steps import (
    Consent,
    Step,
    check_sections,
    find_choices,
    require_titles,
    resolve_step,
    resolve_steps,
)
from plant_cli.runs.tuning import expand_chosen

if TYPE_CHECKING:
    from plant_cli.data.store import StoredCorpus


# with polars, which many actions do without
FIND_COLUMNS = Named("plant_cli.runs.run_corpus:find_run_columns")


def run_stage(request: Request, name: str, tag: str | None = None) -> Result:
    """Run a stage or an action. See `plant_cli.api.Runner.run_stage`."""
    return RequestRunner(request).run(name, tag).result


def run_recipe(request: Request) -> list[StepResult]:
    """Run all steps of the request's recipe. See `plant_cli.api.Runner.run_recipe`."""
    return list(RequestRunner(request).run_all())


def run_below(request: Request, name: str) -> StepResult:
    """Run one step of the request's recipe; the process that started this one holds the lock."""
    runner = RequestRunner(request)
    with runner.below():
        return runner.run_step(name)


def run_stage_below(request: Request, name: str, tag: str | None) -> StepResult:
    """As `run_stage`; the process that started this one, or a caller, holds the lock."""
    runner = RequestRunner(request)
    with runner.below():
        return runner.run(name, tag)


def print_config(request: Request, name: str, tag: str | None = None) -> str:
    """What `run_stage` would run with, as a recipe in YAML."""
    step = RequestRunner(request).resolve(name, tag)
    return write_recipe(step.spec.summary, {step.name: step.record()})


class RequestRunner:
    """Runs the steps of one request; they share the lock, the signals and the corpus in memory."""

    run_stage = staticmethod(run_stage)  # for `context.runner`: they start new requests
    run_recipe = staticmethod(run_recipe)

    def __init__(self, request: Request) -> None:
        self.request = request
        self.interruption = Interruption(request.reporter.note)
        self.corpora: dict[str, StoredCorpus] = {}  # read so far, by the hash of their data section
        over = parse_command(request.sets, request.flags)
        self._over = over.without(NAMED_CHANGES, TUNING)
        recipe = RecipeLayer() if request.recipe is None else load_recipe(request.recipe)
        recipe = merge_layers(recipe, over.only({NAMED_CHANGES, TUNING}))
        self.chosen = expand_chosen(recipe, self._over, request.registry)
        self._recipe = (
            expand_changes(recipe, request.registry) if self.chosen is None else self.chosen.layer
        )
        self.consent = Consent(self._recipe, self._over)
        self._run: Run | None = None

    def run(self, name: str, tag: str | None = None) -> StepResult:
        """Run one stage or action."""
        step = self.resolve(name, tag)
        return self._write(step, may_skip=False) if step.spec.writes else self._act(step)

    def open(self, name: str, tag: str | None = None) -> RunContext:
        """The context of an action, for a caller who does its work in Python; the run is not
        locked.
        """
        return self._open(self.resolve(name, tag))

    def read_corpus(self) -> Corpus:
        """The corpus, before the steps of the request's recipe run; all are validated first."""
        self._steps()
        with self._hold("a recipe"):
            return self.open("mig").corpus()

    def run_all(self) -> Iterator[StepResult]:
        """Run the steps of the request's recipe in order, and skip what has not changed.

        All are validated before the first runs. Shared sections come from the recipe alone, not
        from earlier stages of the run, so that one recipe always means one experiment. Under
        several seeds the stages of training are repeated.
        """
        steps = self._steps()
        inner = next((step.spec.name for step in steps if step.spec.locks), None)
        if inner is not None:
            raise RecipeError(
                f"`{inner}` cannot be a step of a recipe: it locks the run itself",
                where=f"{self.request.recipe}, section '{inner}'",
                expected="sections of stages, and of actions that only read",
                todo="use `extends:` to build on another recipe; run the command by itself "
                "before or after",
            )
        with self._hold("a recipe") as run:
            if not self.request.grow:
                refuse_changed_sources(run)
            self._check_networks(steps, run)
            if self.request.jobs > 1:
                late = find_late(steps)
                with open_workers(self, run) as workers:
                    yield from run_side_by_side(
                        workers, self, [step for step in steps if step not in late], run_below
                    )
                steps = late
            for step in steps:
                self.require_going_on(step.name)
                yield self._write(step, may_skip=True) if step.spec.writes else self._act(step)

    def steps_to(self, folder: str) -> list[Step]:
        """The steps of the recipe up to the one of this name."""
        steps = {step.name: step for step in self._steps()}
        wanted, found = [folder], set[str]()
        while wanted:
            name = wanted.pop()
            found.add(name)
            wanted += find_awaited(steps[name], steps.values()) - found
        return [step for step in steps.values() if step.name in found]

    def run_step(self, name: str) -> StepResult:
        """Run one step of the request's recipe."""
        return self._write(next(step for step in self._steps() if step.name == name), may_skip=True)

    @contextmanager
    def below(self) -> Iterator[None]:
        """Work without the lock, which another process, or a caller, holds for this one."""
        self._run = Run.open(self.request.run_path)
        with self.interruption:
            yield

    @contextmanager
    def working(self, purpose: str) -> Iterator[Workers]:
        """Hold the lock inside the block, with workers for single stages (`run_stage_below`)."""
        with self._hold(purpose) as run, open_workers(self, run) as workers:
            yield workers

    def _steps(self) -> list[Step]:
        """The steps of the request's recipe, repeated for its seeds."""
        steps = resolve_steps(self._recipe, self._over, self.request.registry)
        if self.chosen is not None:
            steps = [step for step in steps if step.name in self.chosen.needed]
        if self.request.seeds == 1:
            return steps
        recipe = repeat(
            merge_layers(self._recipe, self._over), steps, self.request.seeds, self.request.registry
        )
        return resolve_steps(recipe, RecipeLayer(), self.request.registry)

    def _check_networks(self, steps: Sequence[Step], run: Run) -> None:
        """Refuse a recipe one of whose networks needs what the corpus lacks (titles, parents),
        before another one is trained.
        """
        for step in steps:
            if "model" not in step.spec.sections:
                continue
            step = self._with_columns(step, run)
            context = RunContext(self, step, run, run.path)
            decoder, options = context.component(DecoderSpec, step.model.decoder)
            if step.model.label_queries == "titles":
                require_titles(context.open_corpus().labels)
            if decoder.check is not None:
                decoder.check(options, context.open_corpus().labels)

    def require_going_on(self, name: str) -> None:
        """`Interrupted` if the user asked to stop before this step began."""
        if self.interruption.requested:
            expected, todo = "every step of the recipe", "run it again with --resume"
            raise Interrupted(
                f"stopped before '{name}'",
                where=str(self.request.run_path),
                expected=expected,
                todo=todo,
            )

    def resolve(
        self, name: str, tag: str | None, flags: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Step:
        """The step of the request: shared sections of earlier stages < recipe < options of the
        resumed stage < `--set` < flags.
        """
        spec = self.request.registry.find(StageSpec, name)
        flags = dict(self.request.flags if flags is None else flags)
        if tag is not None and name in flags:
            flags[join_tag(name, tag)] = flags.pop(
                name
            )  # a flag must win over the tagged section of the recipe
        early = (
            read_run_recipe(self.request.run_path).only(SHARED_SECTIONS)
            if spec.needs_run
            else RecipeLayer()
        )
        late: tuple[RecipeLayer, ...] = (
            parse_command(self.request.sets, flags).without(NAMED_CHANGES, TUNING),
        )
        for stage, option in spec.reads.items():
            given = merge_layers(self._recipe, *late)
            own = self._recorded(
                stage, given.find((join_tag(name, tag), option)) or given.find((name, option))
            ).only(("model",))
            early = merge_layers(
                early.only([section for section in SHARED_SECTIONS if section not in own.values]),
                own,
            )
        if self.request.resume and self.request.recipe is None and spec.writes:
            late = (self._recorded(name, tag), *late)
        layers = [early, self._recipe, *late]
        check_sections(merge_layers(*layers), self.request.registry)
        return resolve_step(layers, spec, tag, self.request.registry)

    def ensure(self, name: str, tag: str | None, options: dict[str, Any]) -> None:
        """Run a stage unless the run has a finished one with these options whose inputs are
        still the same.
        """
        shared = {
            section: values
            for section, values in self.request.flags.items()
            if section in SHARED_SECTIONS
        }
        step = self.resolve(name, tag, {**shared, name: options} if options else shared)
        with self._hold(step.name) as run:
            step = self._with_columns(step, run)
            if must_run(self.request, step, run.stage(name, tag), run):
                self._write(step, may_skip=False)

    def _recorded(self, name: str, tag: str | None) -> RecipeLayer:
        if not (self.request.run_path / HEADER_NAME).exists():
            return RecipeLayer()
        folder = Run.open(self.request.run_path).stage(name, tag)
        record = folder.last_record()
        if record is None:
            return RecipeLayer()
        values = {join_tag(name, tag): record.options, **record.sections}
        origin = str(folder.path / STAGE_FILE)
        return RecipeLayer(
            values, {(section, key): origin for section, part in values.items() for key in part}
        )

    @contextmanager
    def _hold(self, purpose: str) -> Iterator[Run]:
        """Lock the run and catch signals; within another such block, give the same run again."""
        if self._run is not None:
            yield self._run
            return
        with Run.hold(self.request.run_path, purpose) as run, self.interruption:
            self._run = run
            try:
                yield run
            finally:
                self._run = None

    def _act(self, step: Step) -> StepResult:
        started = time.perf_counter()
        context = self._open(step)
        with self._explained(step, resumes=False), context.reading_whole():
            result = perform(context, step)
        return _report(step, result, started)

    def _open(self, step: Step) -> RunContext:
        if self._run is not None:
            step = self._with_columns(step, self._run)
        return RunContext(self, step, self._run, self.request.run_path, resume=self.request.resume)

    @contextmanager
    def _explained(self, step: Step, *, resumes: bool) -> Iterator[None]:
        """Explain that disk or memory ran out, and name the run where an error names no place."""
        try:
            yield
        except PlantError as error:
            error.where = error.where or str(self.request.run_path)
            raise
        except Exception as error:
            shortage = find_shortage(
                error,
                self.request.run_path,
                "nothing that was done is lost",
                resumes=resumes,
                options=step.values,
            )
            if shortage is not None:
                raise shortage from error
            raise

    def _with_columns(self, step: Step, run: Run) -> Step:
        """The step with the columns of the run's corpus, where its section `data` leaves them open:
        the record then says them, and no later command has to find them again.
        """
        if step.data.path is None:
            return step
        with at_work(step):
            found = FIND_COLUMNS(RunContext(self, step, run, run.path), run)
        sections = dict(step.sections)
        if "data" in sections:
            sections["data"] = {**sections["data"], **found}
        return replace(step, data=step.data.model_copy(update=found), sections=sections)

    def _require_consent(self, step: Step) -> None:
        """Refuse, before anything is written, components that need a consent which the user did
        not give.
        """
        sections = [getattr(step, name) for name in step.spec.sections]
        for _, kind, chosen in (
            choice for options in (step.options, *sections) for choice in find_choices(options)
        ):
            spec, options = self.request.registry.resolve(kind, chosen)
            self.consent.require(spec, chosen, options, self.request.run_path)

    def _write(self, step: Step, *, may_skip: bool) -> StepResult:
        self._require_consent(step)
        with self._explained(step, resumes=True), self._hold(step.name) as run:
            step = self._with_columns(step, run)
            folder = run.stage(step.spec.name, step.tag)
            context = RunContext(self, step, run, folder.path)
            if (
                self.request.grow or context.data.path is not None
            ) and run.header.data_hash is not None:
                from plant_cli.runs.run_corpus import grow_corpus, refuse_other_corpus

                grows = self.request.grow and "data" in step.spec.sections
                if grows and (grown := grow_corpus(context, run)) is not None:
                    self.corpora = {context.corpus_key: grown}
                refuse_other_corpus(context, run)

            start, before = decide_start(self.request, step, folder, run, may_skip=may_skip)
            if (
                before is not None and before.status == "running"
            ):  # this command holds the lock, so nobody is at work there
                said = "its process was killed, or a plugin ended it"
                self.request.reporter.note(
                    f"the last attempt at '{step.name}' ended without a word: {said}"
                )
            if start == "skip" and before is not None:
                self.request.reporter.note(f"{step.name}: unchanged, skipped")
                return _report(step, Result(summary=before.summary), None)
            context.resume = start == "resume"
            started = time.perf_counter()
            return _report(step, attempt(context, step, folder, run), started)


def _report(step: Step, result: Result, started: float | None) -> StepResult:
    """The result of a step; `started` is the clock when it began, None if it was skipped."""
    seconds = 0.0 if started is None else time.perf_counter() - started
    return StepResult(
        name=step.name,
        writes=step.spec.writes,
        result=result,
        unchanged=started is None,
        seconds=seconds,
    )
