"""The steps of a request: whether each starts afresh, goes on, is passed over or is refused, and their repetition over seeds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from plant_cli.api import (
    ArtefactError,
    Components,
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
from plant_cli.data.records import STAGE_FILE, StageRecord
from plant_cli.runs.attempt import attempt
from plant_cli.runs.changes import find_changes, mark_seed, refuse_changed_sources, split_seed
from plant_cli.runs.folder import HEADER_NAME, VALIDATION, Run, StageFolder
from plant_cli.runs.machine import find_shortage
from plant_cli.runs.recipes import RecipeLayer, load_recipe, merge, nest, parse_command, read_run_recipe, write_recipe
from plant_cli.runs.session import Interruption
from plant_cli.runs.stage_context import RunContext, refuse_other_corpus
from plant_cli.runs.steps import OWN, Consent, Step, check_sections, find_choices, join_tag, resolve_step, resolve_steps

if TYPE_CHECKING:
    from plant_cli.data.store import StoredCorpus

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
    return write_recipe(step.spec.summary, {step.name: step.record()})


class RequestRunner:
    """Runs the steps of one request; they share the lock, the signals and the corpus in memory."""

    run_stage = staticmethod(run_stage)  # as `context.runner`: these begin requests of their own
    run_recipe = staticmethod(run_recipe)

    def __init__(self, request: Request) -> None:
        self.request = request
        self.interruption = Interruption(request.reporter.note)
        self.corpora: dict[str, StoredCorpus] = {}  # read so far, by the hash of their data section
        self._over = parse_command(request.sets, request.flags)
        self._recipe = RecipeLayer() if request.recipe is None else load_recipe(request.recipe).layer
        self.consent = Consent(self._recipe, self._over)
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
        steps = resolve_steps(self._recipe, self._over, self.request.registry)
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
                repeat(merge(self._recipe, self._over), steps, self.request.seeds, self.request.registry),
                RecipeLayer(),
                self.request.registry,
            )
        with self._hold("a recipe") as run:
            refuse_changed_sources(run)
            for step in steps:
                if self.interruption.requested:
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
        early = read_run_recipe(self.request.run_path).only(SHARED_SECTIONS) if spec.needs_run else RecipeLayer()
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
        with Run.hold(self.request.run_path, purpose) as run, self.interruption:
            self._run = run
            try:
                yield run
            finally:
                self._run = None

    def _act(self, step: Step) -> StepResult:
        started = time.perf_counter()
        context = self._open(step)
        with self._explained(resumes=False), context.reading_whole():
            result = step.spec.run(context, step.options)
        return _report(step, result, started)

    def _open(self, step: Step) -> RunContext:
        return RunContext(self, step, self._run, self.request.run_path, resume=self.request.resume)

    @contextmanager
    def _explained(self, *, resumes: bool) -> Iterator[None]:
        """Explain that disk or memory ran out, and name the run where an error names no place."""
        try:
            yield
        except PlantError as error:
            error.where = error.where or str(self.request.run_path)
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
            self.consent.require(spec, chosen, options, self.request.run_path)

    def _write(self, step: Step, *, pass_over: bool) -> StepResult:
        self._require_consent(step)
        with self._explained(resumes=True), self._hold(step.name) as run:
            folder = run.stage(step.spec.name, step.tag)
            context = RunContext(self, step, run, folder.path)
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
