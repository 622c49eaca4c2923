"""`--launch`: the launcher that is started, and its arguments."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from plant_cli.api import UsageError
from plant_cli.cli.launching import _naming_run, launch, launcher, without_launch

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
    found = launcher(FILE, {"num_processes": 8, "num_machines": 1, "distributed_type": "FSDP"})
    assert found == ["-m", "accelerate.commands.launch", "--config_file", "two.yaml"]


def test_processors_are_torchs() -> None:
    found = launcher(FILE, {"num_processes": 2, "num_machines": 1, "use_cpu": True})
    assert found == [
        "-m",
        "torch.distributed.run",
        "--nnodes",
        "1",
        "--nproc-per-node",
        "2",
        "--standalone",
    ]
    meeting = {"machine_rank": 1, "main_process_ip": "10.0.0.1", "main_process_port": 29500}
    found = launcher(FILE, {"num_processes": 8, "num_machines": 2, "use_cpu": True, **meeting})
    assert (
        " ".join(found[2:])
        == "--nnodes 2 --nproc-per-node 4 --node-rank 1 --master-addr 10.0.0.1 --master-port 29500"
    )


def test_errors_of_another_process_name_the_run_and_not_its_copy() -> None:
    copy, run = Path("/tmp/plant-process-1/run"), Path("plant-run")
    with pytest.raises(UsageError) as caught, _naming_run(copy, run):
        raise UsageError(
            f"no run in '{copy}'",
            where=f"{copy}/corpus",
            expected="a run",
            todo=f"plant mig --run {copy}",
        )
    assert "plant-process" not in str(caught.value)
    assert caught.value.where == "plant-run/corpus"


@pytest.mark.parametrize("given", [["--launch", "two.yaml"], ["--launch=two.yaml"]])
def test_the_command_is_started_again_without_the_option(
    tmp_path: Path, started: list[str], given: list[str]
) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("num_processes: 2\nuse_cpu: true\n")
    with pytest.raises(Replaced):
        launch(file, ["finetune", *given, "--epochs", "2"])
    assert started[started.index("plant_cli") - 2 :] == [
        "-m",
        "--",
        "plant_cli",
        "finetune",
        "--epochs",
        "2",
    ]
    assert without_launch(["mig", "data.parquet"]) == ["mig", "data.parquet"]


def test_nothing_is_started_without_a_description(tmp_path: Path, started: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        launch(tmp_path / "none.yaml", ["finetune", "--launch", "none.yaml"])
    assert not started
