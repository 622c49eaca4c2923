"""One attempt at a stage, recorded when it begins, ends or fails; finished work is never lost."""

from __future__ import annotations

import re
import shlex
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from mmap import MAP_PRIVATE, mmap
from pathlib import Path
from typing import Any, Literal, Never

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    Components,
    DataError,
    GateFailed,
    Interrupted,
    PlantError,
    RecipeError,
    Request,
    Result,
    StageSpec,
    StepResult,
    UsageError,
)
from plant_cli.api.context import command_for
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.data.files import remove, replacing
from plant_cli.data.records import STAGE_FILE, StageRecord, plain_values
from plant_cli.runs.changes import find_changes, hash_sources, mark_seed, refuse_changed_sources, split_seed, stage_key
from plant_cli.runs.folder import HEADER_NAME, VALIDATION, Run, StageFolder, current_time
from plant_cli.runs.machine import describe_device, describe_environment, find_shortage, peak_memory_gb
from plant_cli.runs.recipes import DoneStep, RecipeLayer, load_recipe, merge, nest, parse_command, read_run_recipe, write_recipe
from plant_cli.runs.session import Interruption
from plant_cli.runs.stage_context import CorpusCache, RunContext, refuse_other_corpus
from plant_cli.runs.steps import OWN, Consent, Step, check_sections, find_choices, join_tag, resolve_step, resolve_steps

REFUSALS = (UsageError, RecipeError, DataError, ArtefactError, ComponentError)
RESERVE = 64 * 2**20  # bytes given back when a stage fails, so that there is memory left to record it where it ran out


def attempt(context: RunContext, step: Step, folder: StageFolder, run: Run) -> Result:
    """Run a stage in its folder, or continue it if the context says so, and add it to the run's own recipe.

    Raises:
        Interrupted: the user stopped it.
        ResourceError: disk space or memory ran out.
        Exception: whatever the stage raised; recorded in stage.json.
    """
    reserve = mmap(-1, RESERVE, flags=MAP_PRIVATE)  # address space alone: its pages are never touched
    record = _begin(context, step, folder, run)
    started = time.perf_counter()
    try:
        result = step.spec.run(context, step.options)
        _require_there(run)
        summary, outputs = plain_values(result.summary), folder.hash_outputs()
        done = record.model_copy(update={**_ending(record, context, started), "status": "done", "summary": summary, "outputs": outputs})
        taken = folder.finish(done.model_copy(update={"key": stage_key(done, run.header.data_hash)}))
        if taken:
            context.reporter.note(f"kept of the earlier '{folder.name}': {', '.join(taken)}, which were put there by hand")
    except BaseException as error:
        reserve.close()
        if isinstance(error, MemoryError | RuntimeError | OSError):
            traceback.clear_frames(error.__traceback__)  # what the stage still held
        _fail(error, record.model_copy(update=_ending(record, context, started)), context, folder)
    try:
        _write_run_recipe(run)
    except (PlantError, OSError, MemoryError) as error:  # the stage is done, whatever is wrong with others
        text = f"{error.what} ({error.where}): {error.todo}" if isinstance(error, PlantError) else str(error) or "memory ran out"
        context.reporter.warn(f"'{folder.name}' is done, but {run.recipe_path.name} of the run does not have it: {text}")
    return result


def _begin(context: RunContext, step: Step, folder: StageFolder, run: Run) -> StageRecord:
    before = folder.record() if context.resume else None
    record = StageRecord(
        status="running",
        stage=step.spec.name,
        tag=step.tag,
        options=dict(step.values),
        sections={name: dict(section) for name, section in step.sections.items()},
        inputs={} if before is None else before.inputs,
        files=hash_sources(step.options, run.path),
        environment=describe_environment(plugin.distribution for plugin in context.request.registry.plugins),
        seed=step.machine.seed,
        started=current_time(),
    )
    if context.resume:
        folder.resume(record)
    else:
        folder.begin(record)
    # A killed process leaves the record as it is then: what it has read must stand in it, or --resume could not tell that it has changed.
    context.on_input = lambda: folder.write(record.model_copy(update={"inputs": {**record.inputs, **context.inputs}}))
    return record


def _ending(record: StageRecord, context: RunContext, started: float) -> dict[str, Any]:
    return {
        "environment": {**record.environment, **describe_device()},
        "inputs": {**record.inputs, **context.inputs},
        "warnings": context.recorder.warnings,
        "finished": current_time(),
        "seconds": round(time.perf_counter() - started, 3),
        "peak_memory_gb": round(peak_memory_gb(), 3),
    }


def _fail(error: BaseException, record: StageRecord, context: RunContext, folder: StageFolder) -> Never:
    """Record how the attempt ended, then raise the error to show."""
    stopped = isinstance(error, Interrupted | KeyboardInterrupt)
    text = error.what if isinstance(error, PlantError) else str(error) or type(error).__name__
    ending = record.model_copy(update={"status": "interrupted" if stopped else "failed", "error": text})
    with suppress(OSError):  # a full disk must not hide its own message
        if not folder.path.is_dir():  # the run was removed or renamed: nothing of it comes back
            pass
        elif isinstance(error, GateFailed):  # the results are complete, and say by how much it was missed
            folder.finish(ending.model_copy(update={"outputs": folder.hash_outputs()}))
        else:
            folder.write(ending)
    with suppress(OSError):
        if not stopped and folder.put_back():
            _name_new_place(error, folder)
            context.reporter.warn(f"the earlier '{folder.name}' is back in its place; the failed attempt is kept in '{folder.failed_path}'")
        elif isinstance(error, REFUSALS) and not context.resume and not folder.holds_work():
            remove(folder.path)  # nothing was begun: a record of it would only stand among results
    if isinstance(error, PlantError):
        raise error
    if stopped:
        command = command_for(record.stage, record.tag, context.run_path)
        raise Interrupted(
            f"'{folder.name}' was stopped", where=str(folder.path), expected="a finished stage", todo=f"`{command} --resume` continues it"
        ) from error
    shortage = find_shortage(error, folder.path, "the files so far are kept")
    if shortage is not None:
        raise shortage from error
    raise error


def _require_there(run: Run) -> None:
    """Refuse to finish in a run that was removed or renamed meanwhile: what is written would be a run of its own, with one file."""
    if not (run.path / HEADER_NAME).exists():
        raise ArtefactError(
            f"the run '{run.path}' is no longer there",
            where=str(run.path.absolute()),
            expected="a run folder that stays in its place while a stage works in it",
            todo="if it was renamed, repeat the command there with --resume; if it was removed, start again",
        )


def _name_new_place(error: BaseException, folder: StageFolder) -> None:
    if isinstance(error, PlantError):
        error.where = re.sub(rf"{re.escape(str(folder.path))}(?![\w.-])", lambda _: str(folder.failed_path), error.where)


def _write_run_recipe(run: Run) -> None:
    steps = [
        DoneStep(section=folder.name, stage=record.stage, options=record.options, sections=record.sections)
        for folder, record in _by_dependence(run)
    ]
    with replacing(run.recipe_path) as temporary:
        temporary.write_text(write_recipe("What was run in this folder.", steps), encoding="utf-8")


def _by_dependence(run: Run) -> list[tuple[StageFolder, StageRecord]]:
    """Finished stages in the order they started, each after those that it read."""
    records = {folder.name: (folder, record) for folder in run.stages() if (record := folder.record()) and record.status == "done"}
    ordered: dict[str, tuple[StageFolder, StageRecord]] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in records and name not in ordered and name not in above:
            for source in records[name][1].inputs:
                visit(source, (*above, name))
            ordered[name] = records[name]

    for name in records:
        visit(name, ())
    return list(ordered.values())


OF_A_SYSTEM = ("predict",)  # stages whose tag is that of a trained system: another one keeps nothing
OF_INPUTS = ("its input ", "the contents of ", "it judged ")  # how changes begin that are not of options
SHOWN = 3  # files in a message


def lost_record(folder: StageFolder, command: str) -> ArtefactError:
    """A stage's folder with files and no record."""
    return ArtefactError(
        f"the stage '{folder.name}' has lost its record, so that nobody knows what its files were made with",
        where=str(folder.path / STAGE_FILE),
        expected="the file as `plant` wrote it",
        todo=f"restore it, or make the stage again: {command} --force",
    )


def refusal(folder: StageFolder, record: StageRecord, changes: Sequence[str], run: Run, *, resume: bool, one_of_many: bool) -> UsageError:
    """Why a stage does not start: what is in its folder, and which flag replaces or continues it.

    Args:
        folder: of the stage.
        record: what is there.
        changes: what is asked for now and was not then, in words.
        run: the run.
        resume: whether the user asked to continue.
        one_of_many: whether it is a step of a recipe, to which a flag for one stage does not belong.
    """
    where = f"{folder.path}: {'; '.join(changes[:5])}" if changes else _describe_files(folder, record)
    if record.status == "done":
        maker = _find_maker(record, folder.name, run)
        return UsageError(
            f"the stage '{folder.name}' is finished"
            + (f", since '{maker}' needed it" if maker else "")
            + (", with other options or inputs than those asked for now" if changes else ""),
            where=where,
            expected="a stage that has not run" if not changes else "the same options and inputs, to pass over it",
            todo=_offer(record, changes, run, one_of_many=one_of_many),
        )
    if resume:
        return UsageError(
            f"the stage '{folder.name}' cannot be continued with other options or inputs than it was begun with",
            where=where,
            expected="the same options and inputs",
            todo="leave the changed options out, or start afresh with --force instead of --resume",
        )
    state = f"failed: {record.error}" if record.status == "failed" else "was interrupted"
    return UsageError(
        f"the stage '{folder.name}' {state}",
        where=where,
        expected="--resume or --force",
        todo="repeat the command with --resume to continue it, or with --force to start afresh",
    )


def _describe_files(folder: StageFolder, record: StageRecord) -> str:
    """The folder, and what a finished stage left in it."""
    names = list(record.outputs)
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{folder.path}, which holds {shown}" if record.status == "done" and names else str(folder.path)


def _find_maker(record: StageRecord, name: str, run: Run) -> str | None:
    """The stage that had this one made, if it was not asked for by itself: it read this one, and had begun before."""
    found = [
        folder.name for folder in run.stages() if (other := folder.record()) and name in other.inputs and other.started <= record.started
    ]
    return found[-1] if found else None


def _offer(record: StageRecord, changes: Sequence[str], run: Run, *, one_of_many: bool) -> str:
    """The flags that help; a tag first where other options are asked for, since both results may be wanted."""
    if one_of_many:
        return "repeat the command with --force to replace it"
    if record.stage in OF_A_SYSTEM:
        if any(change.startswith("split was ") for change in changes):
            kept = run.stage("finetune", record.tag).path / VALIDATION
            return (
                "predictions of one split are kept, and --force replaces them; beside them validation can be judged: "
                f"plant eval --split validation --predictions {shlex.quote(str(kept))} --tag validation"
            )
        return "use what is there, or repeat the command with --force to replace it"
    if any(not change.startswith(OF_INPUTS) for change in changes):
        return "repeat the command with --tag NAME to keep both, or with --force to replace it"
    return "repeat the command with --force to replace it, or with --tag NAME to keep both"


TRAINING, COMPARISON = "finetune", "significance"


def repeat(recipe: RecipeLayer, steps: Sequence[Step], count: int, components: Components) -> RecipeLayer:
    """The recipe for `count` seeds: `finetune` for the first, `finetune-seed2` and so on for the others, with their own `machine.seed`.

    Comparisons go to the end as `significance-seedsN`; a recipe without any is given one over all its systems.

    Args:
        recipe: the sections with everything that was given over them.
        steps: the steps that it resolves to.
        count: how many seeds, 2 or more.
        components: the registry.

    Raises:
        RecipeError: nothing in the recipe depends on the seed, or its stages have different ones.
    """
    repeated = [step for step in steps if step.spec.seeded and split_seed(step.tag)[1] is None]
    first = _first_seed(repeated)
    origin = f"--seeds {count}"
    copies = [
        merge(_write(step, copy := join_tag(step.spec.name, mark_seed(step.tag, seed))), nest((copy, "machine", "seed"), seed, origin))
        for seed in range(first + 1, first + count)
        for step in repeated
    ]
    over = f"seeds{count}"
    compared = [step for step in steps if step.spec.name == COMPARISON and "seeds" not in step.layer.values.get(OWN, {})]
    ends = [merge(_write(step, copy := f"{step.name}-{over}"), nest((copy, "seeds"), count, origin)) for step in compared]
    if not any(step.spec.name == COMPARISON for step in steps) and COMPARISON in {spec.name for spec in components.specs(StageSpec)}:
        ends = [_compare_all(repeated, join_tag(COMPARISON, over), count, origin)]
    kept = [_write(step, step.name) for step in steps if step not in compared]
    names = {step.name for step in steps}
    return merge(recipe.only(dict.fromkeys(SHARED_SECTIONS)), *kept, *(copy for copy in copies if not copy.values.keys() & names), *ends)


def _first_seed(repeated: Sequence[Step]) -> int:
    seeds = {step.name: step.machine.seed for step in repeated}
    if not seeds:
        raise RecipeError(
            "nothing in the recipe depends on the seed",
            where="--seeds",
            expected="stages that train, such as `finetune`",
            todo="leave --seeds out",
        )
    if len(set(seeds.values())) > 1:
        raise RecipeError(
            "the stages of the recipe have different seeds",
            where=", ".join(f"{name}: {seed}" for name, seed in seeds.items()),
            expected="one seed for all, from which --seeds counts on",
            todo="give the seed in the shared section `machine` alone",
        )
    return next(iter(seeds.values()))


def _write(step: Step, section: str) -> RecipeLayer:
    """A section with all that was given for a step, so that it inherits nothing else."""
    shared = (step.layer.moved((name,), section, name) for name in SHARED_SECTIONS if name not in step.spec.options.model_fields)
    return merge(nest((section,), {}, step.layer.nearest((OWN,))), step.layer.moved((OWN,), section), *shared)


def _compare_all(repeated: Sequence[Step], section: str, count: int, origin: str) -> RecipeLayer:
    systems = [step.name for step in repeated if step.spec.name == TRAINING]
    if not systems:
        return RecipeLayer()
    return merge(nest((section, "systems"), systems, origin), nest((section, "seeds"), count, origin))


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
        self._recipe = load_recipe(request.recipe).layer if request.recipe is not None else RecipeLayer()
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
                repeat(merge(self._recipe, over), steps, self.request.seeds, self.request.registry), RecipeLayer(), self.request.registry
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
        early = self._earlier_sections() if spec.needs_run else RecipeLayer()
        late: tuple[RecipeLayer, ...] = (parse_command(self.request.sets, given),)
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

    def _earlier_sections(self) -> RecipeLayer:
        return read_run_recipe(self.request.run_path).only(SHARED_SECTIONS)

    def _recorded(self, name: str, tag: str | None) -> RecipeLayer:
        if not (self.request.run_path / HEADER_NAME).exists():
            return RecipeLayer()
        folder = Run.open(self.request.run_path).stage(name, tag)
        record = folder.record()
        if record is None:
            return RecipeLayer()
        values = {join_tag(name, tag): record.options, **record.sections}
        origin = str(folder.path / "stage.json")
        return RecipeLayer(values, {(section, key): origin for section, given in values.items() for key in given})

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
