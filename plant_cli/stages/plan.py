"""`plant plan`: what a recipe or a run will take before it starts: parameters, memory, disk, operations, hours, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from plant_cli.api import DatasetSpec, LossSpec, Options, RecipeError, Result, SignalSpec, StageContext, StageSpec, option
from plant_cli.base.sizes import read_size

if TYPE_CHECKING:
    from plant_cli.api import Corpus
    from plant_cli.model.hardware import Hardware
    from plant_cli.planning.jobs import Job
    from plant_cli.planning.sharing import Sharing
    from plant_cli.planning.words import WordsJob
    from plant_cli.recipe.steps import Step
    from plant_cli.stages.mig import MigOptions

STAGES = ("mig", "pretrain-attn", "finetune", "predict")


class PlanOptions(Options):
    """What to plan."""

    recipe: str | None = option(None, "The recipe: a file, or a shipped one's name (default: the run as it is).", argument=True)
    probe: bool = option(
        False, "Measure the time of 20 steps of each stage with real weights, and of some labels of mig, instead of reckoning it."
    )
    launch: str | None = option(None, "Plan for the processes that this file of `accelerate config` describes; none is started.", path=True)


def run(context: StageContext, options: PlanOptions) -> Result:
    """No weights are read (but with --probe): shapes alone tell parameters, memory and operations. Nothing is written to the run.

    plant plan recipe.yaml
    plant plan --probe
    """
    from plant_cli.corpus.counts import Counter
    from plant_cli.model.hardware import choose_hardware
    from plant_cli.planning.planner import Planner
    from plant_cli.planning.sharing import ALONE, read_sharing
    from plant_cli.planning.tables import Plans, report

    if options.recipe is not None and context.request.recipe != options.recipe:  # a recipe that the user named, like any other
        return context.runner.run_stage(replace(context.request, recipe=options.recipe), "plan")
    recipe = context.request.recipe
    sharing = ALONE if options.launch is None else read_sharing(Path(options.launch))
    steps = _steps(context, recipe)
    hardware = choose_hardware(steps[0].machine)
    free = _free_memory(hardware, sharing)
    with _corpus(context, steps[0], recipe) as corpus:
        counter = Counter(corpus=corpus, min_df=1, occurrences=False, memory=0, reporter=context.reporter, check=lambda: None)
        count = partial(counter.read_words, min_df=1)
        planner = Planner(context, corpus, hardware, sharing)
        words = {s.name: planner.plan_words(_words_job(context, s, sharing), count, probe=options.probe) for s in steps if _counts(s)}
        planned = {s.name: planner.plan(partial(_job, context, s), probe=options.probe) for s in steps if not _counts(s)}
        changes = {name: planner.advise(found, free) for name, found in planned.items()} if free is not None else {}
    return report(Plans(words=words, stages=planned, changes=changes, free=free, hardware=hardware, sharing=sharing, told=planner.told))


def _steps(context: StageContext, recipe: str | None) -> list[Step]:
    """The steps of the recipe that can be planned; without a recipe those that the run would take now."""
    from plant_cli.recipe.layers import flag_layer, merge
    from plant_cli.recipe.sources import load_recipe, parse_sets, read_run_recipe
    from plant_cli.recipe.steps import resolve_step, resolve_steps

    request = context.request
    over = merge(parse_sets(request.sets), flag_layer(request.flags))
    over = over.only({section: given for section, given in over.values.items() if section != "plan"})
    if recipe is None:
        merged, registry = merge(read_run_recipe(request.run_path), over), request.registry
        return [resolve_step(merged, registry.find(StageSpec, name), None, registry) for name in STAGES]
    steps = [step for step in resolve_steps(load_recipe(recipe).layer, over, request.registry) if step.spec.name in STAGES]
    if not steps:
        raise RecipeError(
            f"the recipe '{recipe}' holds nothing to plan",
            where=recipe,
            expected=f"a section for one of {', '.join(STAGES)}",
            todo="`plant recipe show quickstart` shows an example",
        )
    return steps


@contextmanager
def _corpus(context: StageContext, step: Step, recipe: str | None) -> Iterator[Corpus]:
    """The run's corpus if it has one and no recipe says otherwise, else one that is prepared aside and forgotten."""
    from plant_cli.artefacts.corpus import SPLITS_FILE
    from plant_cli.corpus.prepare import prepare

    if recipe is None and (context.run_path / "corpus" / SPLITS_FILE).exists():
        yield context.corpus()
        return
    spec, options = context.component(DatasetSpec, step.data.dataset)
    dataset = spec.load(step.data, options)
    with TemporaryDirectory() as folder:
        yield prepare(dataset, step.data, Path(folder), step.machine.seed, context.reporter)


def _counts(step: Step) -> bool:
    return step.spec.name == "mig"


def _words_job(context: StageContext, step: Step, sharing: Sharing) -> WordsJob:
    """What a stage `mig` asks of the machine."""
    from plant_cli.corpus.counts import choose_jobs
    from plant_cli.planning.words import WordsJob
    from plant_cli.relevance.engine import Selection
    from plant_cli.stages.mig import bind_signal

    options: MigOptions = cast("MigOptions", step.options)
    signal, signal_options = context.component(SignalSpec, options.signal)
    jobs = choose_jobs(step.machine, options.jobs, sharing.processes)
    return WordsJob(
        name=step.name,
        signal=bind_signal(signal, signal_options),
        occurrences=signal.needs_occurrences,
        selection=Selection(k=options.k, sign=options.sign, memory=read_size(options.memory), jobs=jobs),
        min_df=options.min_df,
        passes=2 if options.norm == "global-max" else 1,
    )


def _job(context: StageContext, step: Step, positives: int) -> Job:
    """What a step asks of the machine; `positives`: the most labels of a document."""
    from plant_cli.planning.jobs import Job
    from plant_cli.training.options import ROLES, FinetuneOptions, PretrainOptions

    options: Any = step.options
    shared: dict[str, Any] = {"name": step.name, "model": step.model, "machine": step.machine}
    if not isinstance(options, PretrainOptions | FinetuneOptions):
        kept = {"split": options.split, "top_k": options.top_k, "every_score": options.auc}
        return Job(**shared, **kept, kind="score", batch=options.batch, micro_batch=options.batch)
    shared |= options.model_dump(include={"epochs", "batch", "micro_batch", "cache_limit"})
    if isinstance(options, PretrainOptions):
        sampled = options.labels_per_document
        labels = sampled + positives * options.micro_batch if sampled >= 0 else 0
        return Job(
            **shared, kind="rank", roles=frozenset({"attention"} if options.freeze_backbone else {"attention", "backbone"}), labels=labels
        )
    loss: Any = context.component(LossSpec, options.loss)[1]
    hard = getattr(loss, "hard_negatives", 0)
    labels = positives + hard + getattr(loss, "random_negatives", 0) if hard else 0
    return Job(**shared, kind="label", roles=ROLES, labels=labels, schedule=options.unfreeze, planting=options.plants_tables)


def _free_memory(hardware: Hardware, sharing: Sharing) -> int | None:
    """Bytes that are free for each process; None where that cannot be told."""
    import torch

    from plant_cli.base.memory import available_memory

    if hardware.device.type == "cuda":
        return torch.cuda.mem_get_info(hardware.device)[0]
    free = available_memory()
    return None if free is None else free // sharing.neighbours


SPECS = (
    StageSpec(
        name="plan",
        summary="Say what a recipe or the run will take before it starts: memory, disk, hours, and what to change.",
        options=PlanOptions,
        run=run,
        sections=("data", "model", "machine"),
        writes=False,
        panel="Tools",
        examples=("plant plan quickstart", "plant plan recipe.yaml --probe", "plant plan recipe.yaml --launch accelerate.yaml"),
    ),
)
