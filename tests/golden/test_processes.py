"""Several processes in one stage: the network, the scores and the records of one process, also
after one of them died.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.numpy import load_file

Launch = Callable[..., list[tuple[int, str, str]]]
BACKBONE = [
    "--set",
    "model.backbone.name=tiny",
    "--set",
    "model.backbone.hidden=16",
    "--set",
    "model.backbone.layers=1",
]
# Softmax takes off what all positions share: these have no gradient but rounding, which Adam makes
# as large as any.
WITHOUT_EFFECT = {"pretrain-attn": {"to_key.bias", "norm.bias"}, "finetune": {"to_key.bias"}}
STEPS = ["--batch", "16", "--micro-batch", "3", "--precision", "fp32"]  # six micro-batches a step


def run(launch: Launch, count: int, *arguments: str) -> str:
    """What the first process said on stderr; all must end well."""
    ended = launch(count, *arguments)
    assert [code for code, _, _ in ended] == count * [0], "\n".join(error for _, _, error in ended)
    assert not any(out for _, out, _ in ended[1:])
    return ended[0][2]


def start_by(launcher: Sequence[str], folder: Path, *arguments: str) -> str:
    """What is said on stderr by a command that a launcher starts."""
    done = subprocess.run(
        [sys.executable, "-m", *launcher, "--", "plant_cli", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def corpus(launch: Launch) -> None:
    run(
        launch,
        1,
        "data",
        "make",
        "synthetic-clinic",
        "-O",
        "clinic.parquet",
        "--documents",
        "100",
        "--labels",
        "12",
    )
    for folder in ("one", "two"):
        run(launch, 1, "mig", "clinic.parquet", "--run", folder)


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_training_and_scores_of_two_processes_are_those_of_one(
    launch: Launch, tmp_path: Path
) -> None:
    for count, folder in ((1, "one"), (2, "two")):
        where = ["--run", folder]
        run(
            launch,
            count,
            "pretrain-attn",
            *where,
            *BACKBONE,
            *STEPS,
            "--epochs",
            "2",
            "--no-freeze-backbone",
        )
        run(
            launch,
            count,
            "finetune",
            *where,
            *STEPS,
            "--epochs",
            "2",
            "--head",
            "random",
            "--init",
            "random",
            "--unfreeze",
            "all",
            "--scorers",
            "words,linear",
        )
        run(launch, count, "finetune", *where, *STEPS, "--epochs", "1", "--tag", "planted")
    one, two = tmp_path / "one", tmp_path / "two"
    for stage in ("pretrain-attn", "finetune", "finetune-planted"):
        rows = [
            [json.loads(line) for line in (folder / stage / "history.jsonl").open()]
            for folder in (one, two)
        ]
        for a, b in zip(*rows, strict=True):
            assert a == pytest.approx(b, abs=1e-3, nan_ok=True)
    for stage in ("pretrain-attn", "finetune"):
        expected, found = (load_file(folder / stage / "model.safetensors") for folder in (one, two))
        for name in expected.keys() - WITHOUT_EFFECT[stage]:
            assert found[name] == pytest.approx(expected[name], abs=1e-4), f"{stage}: {name}"
    record = json.loads((two / "finetune" / "stage.json").read_text())
    assert (record["status"], record["environment"]["processes"]) == ("done", 2)
    for count, tag in ((1, []), (2, ["--force"])):
        run(launch, count, "predict", "--run", "two", *tag)
        (two / "predict" / "predictions.parquet").rename(tmp_path / f"by-{count}.parquet")
    assert pl.read_parquet(tmp_path / "by-1.parquet").equals(
        pl.read_parquet(tmp_path / "by-2.parquet")
    )


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("shortlist", ["none", "{name: words, size: 1, frequent: 1}"])
def test_sparse_updates_of_two_processes_are_those_of_one(
    launch: Launch, tmp_path: Path, shortlist: str
) -> None:
    loss = [
        "--set",
        "finetune.loss={name: focal-hnm, hard_negatives: 2, random_negatives: 1}",
        "--set",
        f"finetune.shortlist={shortlist}",
    ]
    for count, folder in ((1, "one"), (2, "two")):
        options = [
            *BACKBONE,
            "--batch",
            "6",
            "--micro-batch",
            "3",
            "--precision",
            "fp32",
            "--epochs",
            "2",
            "--unfreeze",
            "all",
            *loss,
        ]
        run(
            launch,
            count,
            "finetune",
            "--run",
            folder,
            "--head",
            "random",
            "--init",
            "random",
            "--scorers",
            "none",
            "--sparse-updates",
            *options,
        )
    expected, found = (
        load_file(tmp_path / folder / "finetune" / "model.safetensors") for folder in ("one", "two")
    )
    for name in expected.keys() - WITHOUT_EFFECT["finetune"]:
        assert found[name] == pytest.approx(expected[name], abs=1e-4), name


LAUNCH = """
distributed_type: {way}
num_machines: 1
num_processes: 2
machine_rank: 0
main_process_port: {port}
mixed_precision: bf16
use_cpu: false
fsdp_config: {{fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}}
deepspeed_config: {{zero_stage: 2, gradient_accumulation_steps: 4, gradient_clipping: 7.0}}
"""
"""What of it the command says itself (numbers of accumulation, clipping, number format) is
without effect.
"""


@contextmanager
def keeping_states(stage: Path) -> Iterator[None]:
    """Keep the optimiser's state of each whole checkpoint of a stage as `.states/step-N` beside
    it: a finished stage has none.
    """
    over, kept = Event(), stage.parent / ".states"

    def watch() -> None:
        while not over.wait(0.01):
            for mark in stage.glob("checkpoints/step-*/DONE"):
                kept.mkdir(exist_ok=True)
                with suppress(
                    FileExistsError, FileNotFoundError
                ):  # kept already, or removed meanwhile
                    os.link(mark.with_name("optimizer.pt"), kept / mark.parent.name)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("way", "told", "decoder"),
    [
        ("FSDP", "backbone and label tables are sharded over 2 processes", "label-attention"),
        (
            "FSDP",
            "backbone and label tables are sharded over 2 processes",
            "{name: joint-laat, lstm: 8, inner: 8, prefix: 1, dropout: 0}",
        ),
        ("DEEPSPEED", "DeepSpeed steps the optimiser (processes: 2)", "label-attention"),
    ],
)
def test_what_does_not_fit_is_shared_between_processes(
    launch: Launch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    told: str,
    decoder: str,
) -> None:
    monkeypatch.setenv(
        "CUDA_VISIBLE_DEVICES", ""
    )  # two processes on processors, wherever this runs
    command = [
        "finetune",
        *BACKBONE,
        "--batch",
        "9",
        "--micro-batch",
        "3",
        "--precision",
        "fp32",
        "--epochs",
        "2",
    ]
    command += [
        "--head",
        "random",
        "--init",
        "random",
        "--unfreeze",
        "gradual",
        "--scorers",
        "none",
    ]  # three micro-batches a step: one process has one less
    command += ["--set", f"model.decoder={decoder}"]
    if way == "DEEPSPEED":
        pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    with keeping_states(tmp_path / "one" / "finetune"):
        run(launch, 1, *command, "--run", "one")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        description = LAUNCH.format(way=way, port=free.getsockname()[1]).splitlines(keepends=True)
    (tmp_path / "two.yaml").write_text(
        "".join(line for line in description if "_config" not in line or way.lower() in line)
    )
    with keeping_states(tmp_path / "two" / "finetune"):
        launcher = ["accelerate.commands.launch", "--config_file", "two.yaml", "-m"]
        said = start_by(launcher, tmp_path, *command, "--run", "two")
    assert told in said
    rows = [
        [json.loads(line) for line in (tmp_path / folder / "finetune" / "history.jsonl").open()]
        for folder in ("one", "two")
    ]
    for a, b in zip(*rows, strict=True):
        assert a == pytest.approx(b, abs=1e-3, nan_ok=True)
    expected, found = (
        load_file(tmp_path / folder / "finetune" / "model.safetensors") for folder in ("one", "two")
    )
    for name in expected.keys() - WITHOUT_EFFECT["finetune"]:
        assert found[name] == pytest.approx(expected[name], abs=1e-4), name
    steps = {path.name for path in (tmp_path / "one").glob(".states/*")} & {
        path.name for path in (tmp_path / "two").glob(".states/*")
    }
    states = [
        torch.load(tmp_path / folder / ".states" / max(steps), weights_only=True)["state"]
        for folder in ("one", "two")
    ]
    assert [s.keys() for s in states[:1]] == [s.keys() for s in states[1:]]
    for number, kept in states[0].items():
        assert states[1][number]["exp_avg"].shape == kept["exp_avg"].shape
        torch.testing.assert_close(
            states[1][number]["exp_avg"], kept["exp_avg"], atol=1e-3, rtol=1e-2
        )


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("pretrain-attn", []),
        ("finetune", ["--head", "random", "--init", "random", "--scorers", "none"]),
    ],
)
def test_when_one_process_dies_the_other_says_so_and_any_number_goes_on(
    launch: Launch,
    start_processes: Callable[..., Any],
    tmp_path: Path,
    stage: str,
    options: list[str],
) -> None:
    command = [
        stage,
        "--run",
        "two",
        *BACKBONE,
        *STEPS,
        "--epochs",
        "3",
        "--checkpoint-minutes",
        "1e-4",
        *options,
    ]
    first, second = start_processes(2, *command)
    checkpoints = tmp_path / "two" / stage / "checkpoints"
    deadline = time.monotonic() + 180
    while not list(checkpoints.glob("step-*/DONE")) and time.monotonic() < deadline:
        time.sleep(0.05)
    second.kill()
    _, said = first.communicate(timeout=180)
    assert first.returncode == 6
    assert "process 1 of 2 no longer reaches the others" in said
    assert "--resume" in said
    record = json.loads((tmp_path / "two" / stage / "stage.json").read_text())
    assert record["status"] == "failed"
    told = run(launch, 1, *command, "--resume")
    assert "resumed in epoch" in told
    run(launch, 1, stage, "--run", "one", *command[3:])
    expected, found = (
        load_file(tmp_path / folder / stage / "model.safetensors") for folder in ("one", "two")
    )
    for name in expected.keys() - WITHOUT_EFFECT[stage]:
        assert found[name] == pytest.approx(expected[name], abs=1e-3), name


RECIPE = """
summary: "Two processes, one experiment."
data: {path: clinic.parquet}
model: {backbone: {name: tiny, hidden: 16, layers: 1}}
machine: {precision: fp32}
mig: {k: 50}
pretrain-attn: {epochs: 1}
finetune: {epochs: 1}
predict: {}
eval: {bootstrap: 50}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_a_whole_recipe_is_shared_and_passed_over_by_all(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    run(launch, 2, "run", "recipe.yaml", "--run", "together")
    for stage in ("mig", "pretrain-attn", "finetune", "predict", "eval"):
        record = json.loads((tmp_path / "together" / stage / "stage.json").read_text())
        assert (record["status"], record["environment"]["processes"]) == ("done", 2)
    said = run(launch, 2, "run", "recipe.yaml", "--run", "together")
    assert said.count("unchanged, skipped") == 5


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_torchrun_starts_two_processes(tmp_path: Path) -> None:
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = ["pretrain-attn", "--run", "one", *BACKBONE, *STEPS, "--epochs", "1"]
    start_by(launcher, tmp_path, *command)
    record = json.loads((tmp_path / "one" / "pretrain-attn" / "stage.json").read_text())
    assert record["environment"]["processes"] == 2


@pytest.mark.slow
def test_what_is_not_shared_is_done_by_the_first_alone(launch: Launch) -> None:
    said = run(launch, 2, "doctor")
    assert "works in one process" in said
