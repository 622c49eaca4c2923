"""`plant plan`: what a recipe or a run will take before it starts: parameters, memory, disk,
operations and hours.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from plant_cli.api import (
    Corpus,
    LossSpec,
    RecipeError,
    Result,
    ScorerSpec,
    ShortlistSpec,
    SignalSpec,
    StageContext,
    StageSpec,
)
from plant_cli.data.corpus_files import SPLITS_FILE
from plant_cli.data.files import read_size
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.relevance.engine import Selection, bind_signal
from plant_cli.runs.ablation import expand_changes
from plant_cli.runs.folder import HEADER_NAME
from plant_cli.runs.processes import choose_jobs
from plant_cli.runs.recipes import load_recipe, parse_command, read_run_recipe
from plant_cli.runs.steps import Step, resolve_step, resolve_steps
from plant_cli.training.training_options import ROLES, FinetuneOptions, TrainingOptions
from plant_network import PlanOptions, PretrainOptions
from plant_network.design import find_design
from plant_network.hardware import choose_hardware, free_memory
from plant_network.planning import DOCUMENTS_SAMPLED, Estimate, Job, Planner, report_plans
from plant_network.sizes import plan_sizes
from plant_network.stage2 import choose_shortlist

STAGES = ("mig", "pretrain-attn", "finetune", "predict")


def run(context: StageContext, options: PlanOptions) -> Result:
    """Plan with made-up weights: none are read, and nothing is written to the run."""
    if options.documents is not None:
        return plan_sizes(options, options.documents)
    if (
        options.recipe is not None and context.request.recipe != options.recipe
    ):  # a recipe that the user named, like any other
        return context.runner.run_stage(replace(context.request, recipe=options.recipe), "plan")
    recipe = context.request.recipe
    steps = _steps(context, recipe)
    hardware = choose_hardware(steps[0].machine)
    with _corpus(context, steps[0], recipe) as corpus:
        planner = Planner(context.component, corpus, hardware, free_memory(hardware.device))
        relevance = any(step.name == "mig" for step in steps) or (
            recipe is None and context.find_input("mig") is not None
        )
        plans = {
            step.name: _plan(context, step, corpus, planner, relevance=relevance)
            for step in _drop_idle(steps)
        }
    notes = [*planner.notes]
    if any(not found.parts for found in plans.values()):
        notes.append(
            f"words were counted and scorers fitted on at most {DOCUMENTS_SAMPLED:,} documents, "
            "and the figures scaled up"
        )
    if any(found.seconds is not None and found.parts for found in plans.values()):
        notes.append(
            "activations and hours are those of a step with made-up weights, without validation"
        )
    place = f"{hardware.device} in {str(hardware.dtype).removeprefix('torch.')}"
    networked = any(getattr(step.options, "network", False) for step in steps)
    begun = (context.run_path / HEADER_NAME).exists()
    pending = [
        name
        for name in plans
        if (networked or name == "finetune")
        and not (begun and context.find_input(name) is not None)
    ]
    next_step = (
        f"plant {next(iter(pending), 'eval')}"
        if recipe is None
        else f"plant run {shlex.quote(recipe)}"
    )
    return report_plans(plans, planner.free, place, notes, next_step)


def _steps(context: StageContext, recipe: str | None) -> list[Step]:
    """The steps of the recipe that can be planned; without a recipe the next steps of the run."""
    request = context.request
    over = parse_command(request.sets, request.flags).without("plan")
    if recipe is None:
        layers, registry = [read_run_recipe(request.run_path), over], request.registry
        return [
            resolve_step(layers, registry.find(StageSpec, name), None, registry) for name in STAGES
        ]
    expanded = expand_changes(load_recipe(recipe), request.registry)
    steps = [
        step for step in resolve_steps(expanded, over, request.registry) if step.spec.name in STAGES
    ]
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
    """The corpus of the run; with a recipe, or in a new run, the corpus is prepared in a
    temporary folder.
    """
    if recipe is None and (context.run_path / "corpus" / SPLITS_FILE).exists():
        yield context.corpus()
        return
    data = step.data.model_copy(
        update={"rejects": context.data.rejects}
    )  # a recipe that is only planned writes no file
    dataset = load_dataset(context, data)
    with TemporaryDirectory() as folder:
        yield prepare(dataset, data, Path(folder), context.reporter)


def _drop_idle(steps: list[Step]) -> list[Step]:
    """Leave out predictions of models without a network, which take hardly any time."""
    alone = [
        step.tag
        for step in steps
        if step.spec.name == "finetune" and not getattr(step.options, "network", True)
    ]
    return [step for step in steps if not (step.spec.name == "predict" and step.tag in alone)]


def _plan(
    context: StageContext, step: Step, corpus: Corpus, planner: Planner, *, relevance: bool
) -> Estimate:
    options: Any = step.options
    if step.spec.name == "mig":
        spec, signal_options = context.component(SignalSpec, options.signal)
        memory, jobs = read_size(options.memory), choose_jobs(step.machine, options.jobs)
        selection = Selection(k=options.k, sign=options.sign, memory=memory, jobs=jobs)
        signal = bind_signal(spec, signal_options)
        return planner.plan_words(
            signal, selection, min_df=options.min_df, occurrences=spec.needs_occurrences
        )
    if not getattr(options, "network", True):
        return planner.plan_scorers(
            [context.component(ScorerSpec, one) for one in options.chosen_scorers], context.reporter
        )
    return planner.plan_network(_job(context, step, corpus, planner.device, relevance=relevance))


def _job(context: StageContext, step: Step, corpus: Corpus, device: str, *, relevance: bool) -> Job:
    """What a step that trains or scores needs on a type of device; `relevance`: whether the run
    has relevance by then.
    """
    options: Any = step.options
    fills = isinstance(options, TrainingOptions) and options.fills_memory(device, processes=1)
    sizes = corpus.sizes
    batch = getattr(options, "batch", options.micro_batch)
    find = (
        context.find_input if context.request.recipe is None else lambda stage: None
    )  # a recipe starts from nothing that the run has
    job = Job(
        model=step.model,
        start=find_design(step.model, context.component).start_from(find).start,
        machine=step.machine,
        kind="score",
        documents=0,
        batch=batch,
        micro_batch=batch
        if fills
        else options.documents
        if isinstance(options, TrainingOptions)
        else options.micro_batch,
        fills=fills,
    )
    if not isinstance(options, PretrainOptions | FinetuneOptions):
        scored = sizes.get(options.split, 0)
        limit = options.cache_limit
        return replace(
            job,
            documents=scored,
            split=options.split,
            read=scored,
            cache_limit=limit,
            every_score=options.auc,
        )
    read = sizes["train"] + sizes.get("validation", 0)
    gold = corpus.split("train").gold
    job = replace(job, documents=sizes["train"], read=read, cache_limit=options.cache_limit)
    positives = int(np.diff(gold.indptr).max())
    if isinstance(options, PretrainOptions):
        epochs = partial(
            options.choose_epochs,
            documents=gold.shape[0],
            assignments=gold.nnz,
            labels=gold.shape[1],
        )
        titles = step.model.label_queries == "titles"
        regressed, drawn = (
            epochs(regressed=options.regresses(able=able, titles=titles)) for able in (True, False)
        )
        job = replace(job, epochs=regressed, drawn_epochs=drawn)
        sampled = options.labels_per_document
        labels = sampled + positives * job.largest if sampled >= 0 else 0
        return replace(
            job,
            kind="rank",
            roles=frozenset({"attention", *(() if options.freeze_backbone else ("backbone",))}),
            labels=labels,
        )
    loss: Any = context.component(LossSpec, options.loss)[1]
    hard = getattr(loss, "hard_negatives", 0)
    drawn = getattr(loss, "random_negatives", 0)
    job = replace(
        job,
        epochs=options.epochs,
        kind="label",
        roles=ROLES,
        schedule=options.schedule,
        regresses=options.head == "ridge",
    )
    shortlist = choose_shortlist(options, hard, len(corpus.labels), relevance=relevance)
    proposed = 0
    if shortlist is not None:
        spec, of_shortlist = context.component(ShortlistSpec, shortlist)
        proposed = (
            len(corpus.labels) if spec.most is None else spec.most(of_shortlist, len(corpus.labels))
        )
    if 0 < proposed <= hard:
        each = positives + proposed + -(-drawn * proposed // hard)
        return replace(job, labels=each, candidates=each)
    return replace(job, labels=positives + hard + drawn if hard else 0, candidates=proposed)
