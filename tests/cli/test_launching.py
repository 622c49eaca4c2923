"""`--launch`: which launcher is started, and what each process beside the first works in."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError, UsageError
from plant_cli.cli.launching import _naming_run, copy_for_process, launch, launcher, without_launch
from plant_cli.data.files import read_json, write_json
from plant_cli.runs.folder import Run

FILE = Path("two.yaml")


class Replaced(Exception):
    """The process became another."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    command: list[str] = []

    def execv(program: str, arguments: list[str]) -> None:
        assert program == arguments[0] == sys.executable
        command.extend(arguments[1:])
        raise Replaced

    monkeypatch.setattr(os, "execv", execv)
    return command


def test_cards_are_accelerates_affair() -> None:
    assert launcher(FILE, {"num_processes": 8, "num_machines": 1, "distributed_type": "FSDP"}) == [
        "-m",
        "accelerate.commands.launch",
        "--config_file",
        "two.yaml",
    ]


def test_processors_are_torchs() -> None:
    found = launcher(FILE, {"num_processes": 2, "num_machines": 1, "use_cpu": True})
    assert found == ["-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2", "--standalone"]
    meeting = {"machine_rank": 1, "main_process_ip": "10.0.0.1", "main_process_port": 29500}
    found = launcher(FILE, {"num_processes": 8, "num_machines": 2, "use_cpu": True, **meeting})
    assert found[2:] == [
        *("--nnodes", "2", "--nproc-per-node", "4", "--node-rank", "1"),
        *("--master-addr", "10.0.0.1", "--master-port", "29500"),
    ]


def test_errors_of_another_process_name_the_run_and_not_its_copy() -> None:
    copy, run = Path("/tmp/plant-process-1/run"), Path("plant-run")
    with pytest.raises(UsageError) as caught, _naming_run(copy, run):
        raise UsageError(f"no run in '{copy}'", where=f"{copy}/corpus", expected="a run", todo=f"plant mig --run {copy}")
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "no run in 'plant-run'",
        "plant-run/corpus",
        "plant mig --run plant-run",
    )


@pytest.mark.parametrize("given", [["--launch", "two.yaml"], ["--launch=two.yaml"]])
def test_the_command_is_started_again_without_the_option(tmp_path: Path, started: list[str], given: list[str]) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("num_processes: 2\nuse_cpu: true\n")
    with pytest.raises(Replaced):
        launch(file, ["finetune", *given, "--epochs", "2"])
    assert started[started.index("plant_cli") - 2 :] == ["-m", "--", "plant_cli", "finetune", "--epochs", "2"]
    assert without_launch(["mig", "data.parquet"]) == ["mig", "data.parquet"]


def test_nothing_is_started_without_a_description(tmp_path: Path, started: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        launch(tmp_path / "none.yaml", ["finetune", "--launch", "none.yaml"])
    assert not started


def make_run(path: Path, *, bound: bool) -> None:
    run = Run.create(path)
    (path / "corpus").mkdir()
    (path / "corpus" / "splits.json").write_text("{}")
    (path / "mig").mkdir()
    (path / "recipe.yaml").write_text("data: {path: x}")
    if bound:
        run.bind(data_hash="d", label_hash="l", sources={})


def test_a_copy_has_the_corpus_and_what_is_read_and_vanishes_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    for stage in ("mig", "finetune", "finetune-b"):
        (run / stage / "checkpoints").mkdir(parents=True, exist_ok=True)
        write_json(run / stage / "stage.json", {"status": "interrupted" if stage == "finetune" else "done"})
    with copy_for_process(run) as copy:
        names = {"corpus", "run.json", "recipe.yaml", "mig", "finetune", "finetune-b", "cache"}
        assert {entry.name for entry in copy.iterdir()} == names
        assert Run.open(copy).header.data_hash == "d"
        assert {stage for stage in ("mig", "finetune", "finetune-b") if (copy / stage).is_symlink()} == {"mig", "finetune-b"}
        (copy / "finetune" / "stage.json").write_text("the copy's")
        (copy / "finetune" / "model").touch()
        assert (copy / "cache").resolve() == run / "cache"
        assert (copy / "finetune" / "checkpoints").resolve() == run / "finetune" / "checkpoints"
    assert not copy.exists()
    assert read_json(run / "finetune" / "stage.json", "the record") == {"status": "interrupted"}
    assert [entry.name for entry in (run / "finetune").iterdir() if entry.name == "model"] == []
    assert (run / "mig" / "checkpoints").is_dir()


def test_before_the_first_stage_there_is_but_the_cache_to_come(tmp_path: Path) -> None:
    run = tmp_path / "none yet"
    with copy_for_process(run) as copy:
        assert Run.open(copy).header.data_hash is None
        assert {entry.name for entry in copy.iterdir()} == {"run.json", "cache"}
        assert not run.exists()
        (run / "cache").mkdir(parents=True)
        (copy / "cache" / "states").touch()
    assert (run / "cache" / "states").exists()


def test_a_stage_that_is_replaced_while_it_is_looked_at_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    write_json(run / "mig" / "stage.json", {"status": "done"})

    def replaced(path: Path, what: str) -> Any:
        path.unlink()
        return read_json(path, what)

    monkeypatch.setattr("plant_cli.cli.launching.read_json", replaced)
    with copy_for_process(run) as copy:
        assert not (copy / "mig").exists()


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    (run / "mig" / "stage.json").write_text("{")
    with pytest.raises(ArtefactError, match="damaged"), copy_for_process(run):
        pass


def test_a_file_that_cannot_be_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    copyfile = shutil.copyfile

    def refuse(source: Path, target: Path) -> Path:
        if source.name == "splits.json":
            raise PermissionError(13, "Permission denied", str(source))
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(PermissionError) as refused, copy_for_process(run):
        pass
    assert refused.value.filename == str(run / "corpus" / "splits.json")
