"""Runs to test commands in: with played training and prediction, whose figures are known, and
trained once for all tests.
"""

import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import plant_formats
import plant_metrics
import plant_study
import polars as pl
import pytest
from builders import run_at
from clinic import LONGER
from laboratory import CLINIC, LABELS, gold_labels, write_corpus

from plant_cli.api import Options, Request, Result, SilentReporter, StageSpec, hookimpl
from plant_cli.commands import SPECS
from plant_cli.registry import Registry
from plant_cli.runs.repetition import split_seed
from plant_cli.runs.runner import run_stage
from plant_cli.scoring.decisions import write_thresholds
from plant_cli.scoring.predictions import writing_scores


class PlayedOptions(Options):
    split: str = "test"
    auc: bool = False


def _finetune(context, options):
    write_thresholds(context.folder, 0.5, "micro-F1", context.corpus().labels.hash)
    return Result()


def _predict(context, options):
    """The system with the tag `baseline` names a wrong label first in every second document,
    that of seed n in the first n.
    """
    ids = context.corpus().split(options.split).doc_ids
    labels = []
    system, seed = split_seed(context.tag)
    for number in range(len(ids)):
        right = gold_labels(number)
        wrong = [name for name in LABELS if name not in right][:1]
        labels.append(
            wrong + right[:1] if (system and number % 2) or number < (seed or 0) else right + wrong
        )
    scores = [[0.9, 0.8, 0.1][: len(names)] for names in labels]
    if options.auc:
        index = context.corpus().labels
        with writing_scores(context.folder, ids, len(index), index.hash) as kept:
            for row, named in enumerate(labels):
                ranks = {name: rank for rank, name in enumerate(named)}
                logits = [float(-ranks.get(name, len(index))) for name in index.ids]
                kept.write(np.array([row]), np.array([logits], dtype=np.float32))
    pl.DataFrame({"doc_id": ids, "labels": labels, "scores": scores}).write_parquet(
        context.folder / "predictions.parquet"
    )
    return Result()


@pytest.fixture
def played(tmp_path):
    """Run a stage by name in a fresh run: `played("eval", tag=…, option=value)`."""
    module = ModuleType("played_stages")

    @hookimpl
    def plant_register_stages():
        return [
            StageSpec(
                name="finetune",
                summary="played",
                options=PlayedOptions,
                run=_finetune,
                sections=("data",),
                system="trains",
            ),
            StageSpec(
                name="predict",
                summary="played",
                options=PlayedOptions,
                run=_predict,
                sections=("data",),
                system="scores",
            ),
            *(spec for spec in SPECS if spec.name in ("eval", "significance")),
        ]

    module.plant_register_stages = plant_register_stages
    registry = Registry()
    for plugin in (plant_formats, plant_metrics, plant_study, module):
        registry.register(plugin, name=plugin.__name__)
    path = write_corpus(tmp_path / "data.parquet")
    reporter = SilentReporter()

    def run(name, tag=None, run="run", force=False, seed=0, **options):
        flags = {name: options, "data": {"path": str(path)}, "machine": {"seed": seed}}
        return run_stage(
            Request(
                registry=registry,
                run_path=tmp_path / run,
                flags=flags,
                reporter=reporter,
                force=force,
            ),
            name,
            tag,
        )

    for tag in (None, "baseline"):
        run("finetune", tag)
    return run


OTHER = (
    "finetune.init=random",
    "finetune.head=random",
    "finetune.scorers=none",
    "model.decoder={name: caml, filters: 8}",
    "machine.seed=5",
)
TRAINED = {
    "new": (),
    "counted": (("mig",),),
    "planted": (("mig",), ("pretrain-attn",), ("finetune",)),
    "random": (
        ("mig",),
        ("finetune", "finetune.init=random", "finetune.head=random", "finetune.scorers=none"),
    ),
    "pair": (
        ("mig",),
        ("finetune", "finetune.init=random", "finetune.head=random", "finetune.scorers=none"),
        ("finetune", *OTHER, "tag=other"),
    ),
    "longer": (("mig",), ("pretrain-attn", *LONGER)),
    "scorers": (("finetune", "finetune.network=false"),),
}
"""Stages of runs of the clinic, with their options and tags."""


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    """The folder of a run of `TRAINED`; it is trained when it is first asked for."""
    made = {}

    def train(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind) / "run"
            for stage, *sets in TRAINED[kind]:
                tag = next(
                    (text.removeprefix("tag=") for text in sets if text.startswith("tag=")), None
                )
                run_at(
                    made[kind],
                    stage,
                    *CLINIC,
                    *(text for text in sets if not text.startswith("tag=")),
                    tag=tag,
                )
        return made[kind]

    return train


@pytest.fixture
def prepared(clinic, trained_once):
    """The clinic with a copy of a run of `TRAINED`: `prepared("planted")("predict")`."""

    def copy(kind):
        if TRAINED[kind]:
            shutil.copytree(trained_once(kind), clinic.path)
        return clinic

    return copy


@pytest.fixture
def act(tmp_path):
    """Run an action that needs no run: `act("data stats", data={"path": …}, force=True)`;
    options by name, `-` is `_`.
    """

    def run(name, /, *, data=None, reporter=None, force=False, **options):
        options = {
            key: str(value) if isinstance(value, Path) else value for key, value in options.items()
        }
        data = {
            key: str(value) if isinstance(value, Path) else value
            for key, value in (data or {}).items()
        }
        return run_at(
            tmp_path / "nowhere",
            name,
            flags={name: options, "data": data},
            force=force,
            reporter=reporter or SilentReporter(),
        )

    return run
