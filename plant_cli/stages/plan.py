"""`plant plan`: what a recipe or a run will take before it starts: parameters, memory, disk, operations, hours, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from plant_cli.api import Column, DatasetSpec, Options, RecipeError, Result, StageContext, StageSpec, Table, option
from plant_cli.api.output import Cell

if TYPE_CHECKING:
    from plant_cli.api import Corpus
    from plant_cli.model.hardware import Hardware
    from plant_cli.planning.advice import Change
    from plant_cli.planning.jobs import Job
    from plant_cli.planning.planner import Planned
    from plant_cli.recipe.steps import Step
    from plant_cli.stages.context import RunContext

GB = 1e9
STAGES = ("pretrain-attn", "finetune", "predict")


class PlanOptions(Options):
    """What to plan."""

    recipe: str | None = option(None, "The recipe: a file, or a shipped one's name (default: the run as it is).", argument=True)
    probe: bool = option(False, "Measure the time of 20 steps of each stage, with real weights, instead of reckoning it.")


def run(context: StageContext, options: PlanOptions) -> Result:
    """No weights are read (but with --probe): shapes alone tell parameters, memory and operations. Nothing is written to the run.

    plant plan recipe.yaml
    plant plan --probe
    """
    from plant_cli.model.hardware import choose_hardware
    from plant_cli.planning.planner import Planner
    from plant_cli.stages.context import RunContext

    if not isinstance(context, RunContext):
        raise TypeError(f"`plant plan` needs the runner's own context, not {type(context).__name__}")
    recipe = options.recipe or context.request.recipe
    steps = _steps(context, recipe)
    hardware = choose_hardware(steps[0].machine)
    free = _free_memory(hardware)
    with _corpus(context, steps[0], recipe) as corpus:
        planner = Planner(context, corpus, hardware)
        planned = {step.name: planner.plan(partial(_job, context, step), probe=options.probe) for step in steps}
        changes = {name: planner.advise(found, free) for name, found in planned.items()} if free is not None else {}
    return _report(planned, changes, free, hardware, planner.told)


def _steps(context: RunContext, recipe: str | None) -> list[Step]:
    """The steps of the recipe that train or score; without a recipe those that the run would take now."""
    from plant_cli.recipe.layers import Layer, flag_layer, merge
    from plant_cli.recipe.sources import load_recipe, parse_sets
    from plant_cli.recipe.steps import resolve_step, resolve_steps
    from plant_cli.recipe.syntax import parse_yaml

    request = context.request
    over = merge(parse_sets(request.sets), flag_layer(request.flags))
    over = over.only({section: given for section, given in over.values.items() if section != "plan"})
    if recipe is None:
        written = request.run_path / "recipe.yaml"
        layer = parse_yaml(written.read_text(encoding="utf-8"), str(written)) if written.exists() else Layer()
        merged, registry = merge(layer, over), request.registry
        return [resolve_step(merged, cast(StageSpec, registry.find("stage", name)), None, registry) for name in STAGES]
    steps = [step for step in resolve_steps(load_recipe(recipe).layer, over, request.registry) if step.spec.name in STAGES]
    if not steps:
        raise RecipeError(
            f"the recipe '{recipe}' neither trains nor scores",
            where=recipe,
            expected=f"a section for one of {', '.join(STAGES)}",
            todo="`plant recipe show quickstart` shows an example",
        )
    return steps


@contextmanager
def _corpus(context: RunContext, step: Step, recipe: str | None) -> Iterator[Corpus]:
    """The run's corpus if it has one and no recipe says otherwise, else one that is prepared aside and forgotten."""
    from plant_cli.corpus.prepare import prepare
    from plant_cli.corpus.records import SPLITS_FILE

    if recipe is None and (context.run_path / "corpus" / SPLITS_FILE).exists():
        yield context.corpus()
        return
    spec, options = context.component("dataset", step.data.dataset)
    dataset = cast(DatasetSpec, spec).load(step.data, options)
    with TemporaryDirectory() as folder:
        yield prepare(dataset, step.data, Path(folder), step.machine.seed, context.reporter)


def _job(context: StageContext, step: Step, positives: int) -> Job:
    """What a step asks of the machine; `positives`: the most labels of a document."""
    from plant_cli.planning.jobs import Job
    from plant_cli.stages.finetune import ROLES, FinetuneOptions
    from plant_cli.stages.pretrain_attn import PretrainOptions

    options: Any = step.options
    shared: dict[str, Any] = {"name": step.name, "model": step.model, "machine": step.machine}
    if not isinstance(options, PretrainOptions | FinetuneOptions):
        return Job(**shared, kind="score", batch=options.batch, micro_batch=options.batch)
    shared |= options.model_dump(include={"epochs", "batch", "micro_batch", "cache_limit"})
    if isinstance(options, PretrainOptions):
        sampled = options.labels_per_document
        labels = sampled + positives * options.micro_batch if sampled >= 0 else 0
        return Job(
            **shared, kind="rank", roles=frozenset({"attention"} if options.freeze_backbone else {"attention", "backbone"}), labels=labels
        )
    loss: Any = context.component("loss", options.loss)[1]
    hard = getattr(loss, "hard_negatives", 0)
    labels = positives + hard + getattr(loss, "random_negatives", 0) if hard else 0
    return Job(**shared, kind="label", roles=ROLES, labels=labels, schedule=options.unfreeze, planting=options.plants_tables)


def _free_memory(hardware: Hardware) -> int | None:
    import torch

    from plant_cli.stages.doctor import available_memory

    return torch.cuda.mem_get_info(hardware.device)[0] if hardware.device.type == "cuda" else available_memory()


def _report(
    planned: Mapping[str, Planned], changes: Mapping[str, Sequence[Change]], free: int | None, hardware: Hardware, told: Sequence[str]
) -> Result:
    place = f"{hardware.device} in {str(hardware.dtype).removeprefix('torch.')}"
    room = f"{free / GB:.1f} GB are free" if free is not None else "how much is free cannot be told"
    notes = [f"{room} on {hardware.device}; a process of plant takes about 1 GB of host memory beside this, and the texts"]
    for name, found in planned.items():
        peak = found.estimate.memory.peak
        if free is not None and peak > free:
            found_changes = "; ".join(f"{change.knob} (then {change.peak / GB:.1f} GB)" for change in changes[name])
            notes.append(f"{name} does not fit: " + (found_changes or "no knob helps; a smaller backbone or a larger machine does"))
    return Result(
        tables=[_parameters(planned), _memory(planned, place, notes), _work(planned, told)],
        data={name: _plain(found, changes.get(name, ())) for name, found in planned.items()} | {"free_bytes": free},
        next_step="plant run RECIPE, or plant mig"
        if free is None or all(p.estimate.memory.peak <= free for p in planned.values())
        else None,
    )


def _parameters(planned: Mapping[str, Planned]) -> Table:
    rows: list[list[Cell]] = []
    for name, found in planned.items():
        rows += [[name, part.name, part.parameters, part.trained, f"{part.size / GB:.3f}"] for part in found.parts if part.parameters]
    columns = [Column(name="stage"), Column(name="part"), *(Column(name=n, kind="count") for n in ("parameters", "trainable"))]
    return Table(title="Parameters", columns=[*columns, Column(name="GB")], rows=rows)


def _memory(planned: Mapping[str, Planned], place: str, notes: Sequence[str]) -> Table:
    names = [field.name for field in fields(next(iter(planned.values())).estimate.memory)]
    rows: list[list[Cell]] = [
        [name.replace("_", " "), *(f"{getattr(found.estimate.memory, name) / GB:.3f}" for found in planned.values())] for name in names
    ]
    rows.append(["peak", *(f"{found.estimate.memory.peak / GB:.3f}" for found in planned.values())])
    rows.append(["host memory beside it", *(f"{found.host / GB:.3f}" for found in planned.values())])
    rows.append(["disk: cached hidden states", *(f"{found.estimate.cache / GB:.3f}" for found in planned.values())])
    rows.append(["disk: checkpoints and model", *(f"{found.estimate.disk / GB:.3f}" for found in planned.values())])
    return Table(title=f"Memory on {place}, and disk (GB)", columns=[Column(name="what"), *map(_column, planned)], rows=rows, notes=notes)


def _work(planned: Mapping[str, Planned], told: Sequence[str]) -> Table:
    rows: list[list[Cell]] = []
    for name, found in planned.items():
        estimate = found.estimate
        rows.append(
            [
                name,
                estimate.job.epochs,
                round(estimate.tokens),
                estimate.padding,
                f"{estimate.epoch / 1e12:.3g}",
                f"{estimate.operations / 1e12:.3g}",
                f"{found.seconds / 3600:.3g}",
            ]
        )
    columns = [Column(name="stage"), Column(name="epochs", kind="count"), Column(name="tokens an epoch", kind="count")]
    columns += [Column(name="padding", kind="points"), *map(_column, ("TFLOP an epoch", "TFLOP in all", "hours"))]
    return Table(title="Work", columns=columns, rows=rows, notes=told)


def _column(name: str) -> Column:
    return Column(name=name, kind="exact")


def _plain(found: Planned, changes: Sequence[Change]) -> dict[str, Any]:
    estimate = found.estimate
    return {
        "parameters": {part.name: {"parameters": part.parameters, "trainable": part.trained, "bytes": part.size} for part in found.parts},
        "memory_bytes": {**asdict(estimate.memory), "peak": estimate.memory.peak, "host": found.host},
        "disk_bytes": {"cache": estimate.cache, "checkpoints": estimate.disk},
        "epochs": estimate.job.epochs,
        "tokens_an_epoch": round(estimate.tokens),
        "padding_share": estimate.padding,
        "operations": {"epoch": estimate.epoch, "all": estimate.operations},
        "hours": found.seconds / 3600,
        "changes": [asdict(change) for change in changes],
    }


SPECS = (
    StageSpec(
        name="plan",
        summary="Say what a recipe or the run will take before it starts: parameters, memory, disk, hours, and what to change.",
        options=PlanOptions,
        run=run,
        sections=("data", "model", "machine"),
        writes=False,
        panel="Tools",
        examples=("plant plan quickstart", "plant plan recipe.yaml --probe"),
    ),
)
