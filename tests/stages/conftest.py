"""A run whose training and prediction are played, so that the stages after them can be tested on known predictions."""

from types import ModuleType

import plant_datasets.plugin
import plant_metrics.plugin
import polars as pl
import pytest

from plant_cli.api import Options, Result, SilentReporter, StageSpec, hookimpl
from plant_cli.base.files import read_json, write_json
from plant_cli.registry import Registry, installed
from plant_cli.running.runner import run_stage
from plant_cli.runs.seeds import split_seed
from plant_cli.stages import eval as evaluation_stage
from plant_cli.stages import recipe as recipe_stages
from plant_cli.stages import run as run_stages
from plant_cli.stages import significance as significance_stage

DOCUMENTS = 24
LABELS = {f"label {i}": 2 * i + 1 for i in range(6)}  # label and its training documents


class PlayedOptions(Options):
    split: str = "test"
    skill: float = 1.0


def _gold(number):
    return [f"label {number % 6}", f"label {(number + 1 + number // 6) % 6}"]


def _finetune(context, options):
    write_json(context.folder / "thresholds.json", {"value": 0.5, "objective": "micro-F1", "label_hash": context.corpus().labels.hash})
    return Result()


def _predict(context, options):
    """The system with the tag `baseline` names a wrong label first in every second document, that of seed n in the first n."""
    ids = context.corpus().split(options.split).doc_ids
    labels = []
    system, seed = split_seed(context.tag)
    for number in range(len(ids)):
        right = _gold(number)
        wrong = [name for name in LABELS if name not in right][:1]
        labels.append(wrong + right[:1] if (system and number % 2) or number < (seed or 0) else right + wrong)
    scores = [[0.9, 0.8, 0.1][: len(names)] for names in labels]
    pl.DataFrame({"doc_id": ids, "labels": labels, "scores": scores}).write_parquet(context.folder / "predictions.parquet")
    return Result()


@pytest.fixture
def recipe(tmp_path):
    """A small experiment of the stages of a `Laboratory`."""
    path = tmp_path / "r.yaml"
    path.write_text("summary: A small experiment.\nmachine: {seed: 2}\nalpha: {k: 4}\nbeta:\nbeta-twice: {epochs: 2}\n")
    return path


@pytest.fixture
def statuses():
    """`statuses(result)`: what `plant run` says of each step, by name."""
    return lambda result: {row[0]: row[1] for row in result.tables[-1].rows}


@pytest.fixture
def played(tmp_path):
    """Run a stage by name in a fresh run: `played("eval", tag=…, option=value)`."""
    module = ModuleType("played_stages")

    @hookimpl
    def plant_register_stages():
        return [
            StageSpec(name="finetune", summary="played", options=PlayedOptions, run=_finetune, sections=("data",)),
            StageSpec(name="predict", summary="played", options=PlayedOptions, run=_predict, sections=("data",)),
            *evaluation_stage.SPECS,
            *significance_stage.SPECS,
        ]

    module.plant_register_stages = plant_register_stages
    registry = Registry()
    for plugin in (plant_datasets.plugin, plant_metrics.plugin, module):
        registry.register(plugin, name=plugin.__name__)
    path = _write_corpus(tmp_path / "data.parquet")
    reporter = SilentReporter()

    def run(name, tag=None, run="run", force=False, seed=0, **options):
        flags = {name: options, "data": {"path": str(path)}, "machine": {"seed": seed}}
        return run_stage(registry=registry, run_path=tmp_path / run, name=name, tag=tag, flags=flags, reporter=reporter, force=force)

    for tag in (None, "baseline"):
        run("finetune", tag)
    return run


def _write_corpus(path):
    rows = [("train", f"train {name} {i}", [name]) for name, count in LABELS.items() for i in range(count)]
    rows += [("validation", "validation", ["label 0"])]
    rows += [("test", f"test {i}", _gold(i)) for i in range(DOCUMENTS)]
    frame = pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").with_row_index("doc_id")
    frame.with_columns(pl.col("doc_id").cast(pl.String)).write_parquet(path)
    return path


class AlphaOptions(Options):
    k: int = 3


class BetaOptions(Options):
    epochs: int = 1


class GammaOptions(Options):
    wanted: int | None = None


class Laboratory:
    """Small stages that write a file each, in one run folder; `on["alpha"] = f` plays f(context) in the middle of a stage."""

    def __init__(self, folder):
        self.path = folder / "run"
        self.data = _write_corpus(folder / "data.parquet")
        self.on = {}
        self.calls = []
        self.reporter = SilentReporter()
        self.registry = Registry()
        module = ModuleType("laboratory")

        @hookimpl
        def plant_register_stages():
            return [
                StageSpec(name="alpha", summary="A.", options=AlphaOptions, run=self.alpha, sections=("data", "machine")),
                StageSpec(name="beta", summary="B.", options=BetaOptions, run=self.beta, sections=("machine",), seeded=True),
                StageSpec(name="gamma", summary="G.", options=GammaOptions, run=self.gamma),
                StageSpec(name="look", summary="L.", run=self.play("look"), writes=False, sections=("data",)),
                StageSpec(name="outside", summary="O.", run=self.play("outside"), writes=False, needs_run=False),
                *run_stages.SPECS,
                *recipe_stages.SPECS,
            ]

        module.plant_register_stages = plant_register_stages
        for plugin in (plant_datasets.plugin, module):
            self.registry.register(plugin, name=plugin.__name__)

    def play(self, name):
        def run(context, options):
            self.calls.append(name)
            return self.on[name](context) if name in self.on else Result()

        return run

    def alpha(self, context, options):
        (context.folder / "alpha.txt").write_text(str(options.k))
        self.play("alpha")(context, options)
        return Result(summary={"k": options.k, "loss": float("nan")})

    def beta(self, context, options):
        text = (context.input("alpha") / "alpha.txt").read_text()
        (context.folder / "beta.txt").write_text(text * options.epochs)
        self.play("beta")(context, options)
        return Result(summary={"epochs": options.epochs})

    def gamma(self, context, options):
        folder = context.ensure("alpha", options=None if options.wanted is None else {"k": options.wanted})
        (context.folder / "gamma.txt").write_text((folder / "alpha.txt").read_text())
        return Result()

    def run(self, name, *, options=None, flags=None, **request):
        given = {**(flags or {}), **({name: options} if options else {})}
        return run_stage(registry=self.registry, run_path=self.path, name=name, flags=given, reporter=self.reporter, **request)

    def record(self, name):
        return read_json(self.path / name / "stage.json", "the record")

    def text(self, name):
        return (self.path / name / f"{name.split('-')[0]}.txt").read_text()


CLINIC = (
    "data.dataset={name: synthetic-clinic, documents: 120, labels: 12, seed: 3}",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder={name: label-attention, heads: 2, pool: 8}",
    "machine.precision=fp32",
    "machine.device=cpu",
    "pretrain-attn.epochs=1",
    "finetune.epochs=1",
)


@pytest.fixture
def clinic(tmp_path):
    """Run a stage for real on a small network and a small made-up clinic: `clinic("mig", "mig.k=5", tag=…)`; `.path` is the run."""

    def run(name, *sets, reporter=None, **request):
        reporter = reporter or SilentReporter()
        return run_stage(registry=installed(), run_path=run.path, name=name, sets=[*CLINIC, *sets], reporter=reporter, **request)

    run.path, run.sets = tmp_path / "run", CLINIC
    return run


@pytest.fixture
def laboratory(tmp_path):
    """See `Laboratory`."""
    return Laboratory(tmp_path)
