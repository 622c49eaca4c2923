"""The files of a finished run, each with the functions that read it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from plant_cli.api import Request, SilentReporter
from plant_cli.data.corpus_files import read_labels
from plant_cli.data.files import hash_file
from plant_cli.data.records import STAGE_FILE
from plant_cli.registry import installed
from plant_cli.relevance.relevance_table import load_relevance
from plant_cli.runs.changes import trace_stale
from plant_cli.runs.damage import examine_run
from plant_cli.runs.folder import Run
from plant_cli.runs.recipes import read_run_recipe
from plant_cli.runs.runner import print_config, run_recipe
from tests.builders import run_at
from tests.faults.fuzzing.inputs import Files

RECIPE = """
data: {dataset: {name: synthetic-clinic, documents: 40, labels: 6}}
model: {backbone: {name: tiny, hidden: 8, heads: 2, layers: 1, buckets: 64}, decoder: {name: label-attention, heads: 2, pool: 4}}
machine: {precision: fp32, device: cpu, threads: 1}
mig: {k: 5}
finetune: {init: random, epochs: 1, scorers: [words, titles], head: random}
predict: {auc: true}
eval: {bootstrap: 20}
"""


@cache
def _finished_run() -> Path:
    """A run of every kind of record, made once in a process; it goes with the process."""
    _holder.append(tempfile.TemporaryDirectory(prefix="plant-fuzzing-"))
    place = Path(_holder[0].name)
    (place / "recipe.yaml").write_text(RECIPE)
    run_recipe(
        Request(
            registry=installed(),
            run_path=place / "run",
            recipe=str(place / "recipe.yaml"),
            reporter=SilentReporter(),
        )
    )
    labels = _label_index(place / "run")
    flags = {"mig edit": {"label": labels[0], "deny": ("the",)}}
    run_at(place / "run", "mig edit", flags=flags)
    return place / "run"


_holder: list[tempfile.TemporaryDirectory[str]] = []


@cache
def run_files() -> Files:
    """The files of a finished run, by name."""
    run = _finished_run()
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def read_run(files: Files, folder: Path) -> None:
    """Read a run in which one file is another; the recorded hash fits it unless the case says
    otherwise.
    """
    name = next(iter(files))
    spoilt = folder / name
    content = spoilt.read_bytes()
    run = folder / "passed-on"
    shutil.copytree(_finished_run(), run)
    (run / name).write_bytes(content)
    if not files["fits"]:
        _let_fit(run, name)
    RECORDS[name](run)
    _open(run)


def _let_fit(run: Path, name: str) -> None:
    """Record the hash of a changed file, so that it is read all the same."""
    stage, _, inner = name.partition("/")
    path, key = (
        (run / stage / STAGE_FILE, "outputs")
        if stage != "corpus"
        else (run / "corpus" / "splits.json", "outputs")
    )
    if not inner or path == run / name:
        return
    record = json.loads(path.read_text("utf-8"))
    if inner in record[key]:
        record[key][inner] = hash_file(run / name)
        record["facts"] = {}
        path.write_text(json.dumps(record))


@cache
def _label_index(run: Path) -> list[str]:
    return list(read_labels(run / "corpus")["label"])


@cache
def _label_hash() -> str:
    return str(json.loads(run_files()["run.json"])["label_hash"])


def _open(run: Path) -> None:
    """As every command begins: header, records, recipe, stages; and as `verify` goes on."""
    opened = Run.open(run)
    read_run_recipe(run)
    for folder in opened.stages():
        folder.record()
        trace_stale(folder.name, opened)
    list(examine_run(opened))
    opened.stage("finetune").require("x")


def _act(name: str, **flags: object) -> Callable[[Path], None]:
    """Run an action that only reads."""

    def act(run: Path) -> None:
        run_at(run, name, flags={name: dict(flags)} if flags else {})

    return act


def _resolve(run: Path) -> None:
    """As a later command does with what the run's recipe says."""
    print_config(Request(registry=installed(), run_path=run, reporter=SilentReporter()), "finetune")


_suggest = _act("suggest", text="acute cough and fever")
"""As `plant suggest`: corpus, model, scorers, thresholds."""
_recompute = _act("verify", recompute=True)


def _show(run: Path) -> None:
    _act("mig show", label=_label_index(_finished_run())[0])(run)


def _relevance(run: Path) -> None:
    load_relevance(run / "mig", _label_hash())
    _show(run)


def _judge(run: Path) -> None:
    """As `plant eval`, of saved predictions and thresholds."""
    run_at(run, "eval", "eval.bootstrap=20", force=True)


def _edit(run: Path) -> None:
    _act("mig edit", list=True)(run)
    _show(run)


RECORDS: Mapping[str, Callable[[Path], None]] = {
    "run.json": _suggest,
    "recipe.yaml": _resolve,
    "corpus/splits.json": _suggest,
    "corpus/labels.parquet": _suggest,
    "corpus/evidence.parquet": _suggest,
    "mig/stage.json": _show,
    "mig/mig.parquet": _relevance,
    "mig/words.parquet": _relevance,
    "mig/labels.parquet": _relevance,
    "mig/edits.yaml": _edit,
    "finetune/stage.json": _suggest,
    "finetune/model.json": _suggest,
    "finetune/model.safetensors": _suggest,
    "finetune/thresholds.json": _suggest,
    "finetune/scorers.json": _suggest,
    "finetune/scorers/words.safetensors": _suggest,
    "finetune/scorers/titles.safetensors": _suggest,
    "predict/stage.json": _judge,
    "predict/predictions.parquet": _judge,
    "predict/scores.json": _judge,
    "predict/scores.bin": _judge,
    "eval/metrics.json": _recompute,
    "eval/intervals.json": _recompute,
}
