"""From a command line to stdout, a run folder and an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from plant_cli.api import Column, GateFailed, Options, Result, StageSpec, Table, hookimpl, option
from plant_cli.main import build
from plant_cli.registry import Registry


class SowOptions(Options):
    seeds: int = option(3, "How many.", ge=1)


def _sow(context: Any, options: SowOptions) -> Result:
    if options.seeds == 13:
        raise GateFailed("thirteen seeds", where="--seeds", expected="another number", todo="sow 12")
    if options.seeds == 99:
        raise ZeroDivisionError("no garden is that large")
    with context.reporter.progress("sowing", options.seeds, "seeds") as task:
        task.advance(options.seeds)
    (context.folder / "bed.txt").write_text(str(options.seeds))
    table = Table(title="Bed", columns=[Column(name="seeds", kind="count")], rows=[(options.seeds,)])
    return Result(tables=[table], next_step="plant water", summary={"seeds": options.seeds})


def _look(context: Any, options: Any) -> Result:
    return Result(data={"writes": False})


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def plant_register_stages() -> list[StageSpec]:
        return [
            StageSpec(name="sow", summary="Sow.", options=SowOptions, run=_sow),
            StageSpec(name="look", summary="Look.", run=_look, writes=False, needs_run=False),
        ]

    module = ModuleType("garden")
    module.plant_register_stages = hookimpl(plant_register_stages)  # type: ignore[attr-defined]
    registry = Registry()
    registry.register(module, name="garden")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where the trace of a bug goes

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as left:
            build(registry).main(list(arguments), prog_name="plant")
        return int(left.value.code or 0)

    return run


def test_result_on_stdout_progress_and_next_step_on_stderr(plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plant("sow", "--seeds", "5") == 0
    shown = capsys.readouterr()
    assert shown.out == "Bed\nseeds\n    5\n"
    assert "sowing: done" in shown.err
    assert "next: plant water\n" in shown.err
    assert (tmp_path / "plant-run" / "sow" / "bed.txt").read_text() == "5"


def test_set_recipe_tag_and_run(plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.yaml").write_text("sow:\n  seeds: 7\n")
    assert plant("sow", "--recipe", "r.yaml", "--run", "other", "-q") == 0
    assert plant("sow", "--set", "sow.seeds=8", "--tag", "late", "--run", "other", "-q", "--format", "jsonl") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == '{"seeds": 8}'
    assert shown.err == ""
    assert [(tmp_path / "other" / name / "bed.txt").read_text() for name in ("sow", "sow-late")] == ["7", "8"]


def test_the_next_step_is_in_the_run_that_was_named(
    plant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("sow", "--run", "other")
    assert "next: plant water   (with --run other, or once: export PLANT_RUN=other)\n" in capsys.readouterr().err
    plant("sow", "--run", "my first ü")
    assert "(with --run 'my first ü', or once: export PLANT_RUN='my first ü')\n" in capsys.readouterr().err
    monkeypatch.setenv("PLANT_RUN", "third")
    plant("sow")
    assert "next: plant water\n" in capsys.readouterr().err


def test_a_damaged_record_is_replaced_with_force(plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant("sow", "-q")
    (tmp_path / "plant-run" / "sow" / "stage.json").write_text('{"status": "do')
    assert plant("sow", "-q") == 4
    assert "--force" in capsys.readouterr().err
    assert plant("sow", "-q", "--force", "--seeds", "4") == 0
    assert (tmp_path / "plant-run" / "sow" / "bed.txt").read_text() == "4"


def test_a_finished_stage_is_not_overwritten_without_force(plant: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert plant("sow", "-q") == 0
    assert plant("sow", "-q", "--seeds", "4") == 2
    assert "--force" in capsys.readouterr().err
    assert plant("sow", "-q", "--seeds", "4", "--force") == 0


@pytest.mark.parametrize(("seeds", "code", "said"), [("13", 7, "thirteen seeds"), ("99", 1, "a bug: ZeroDivisionError"), ("0", 3, "seeds")])
def test_failures_exit_with_their_code_and_no_trace(
    plant: Any, capsys: pytest.CaptureFixture[str], seeds: str, code: int, said: str
) -> None:
    assert plant("sow", "--seeds", seeds, "-q") == code
    error = capsys.readouterr().err
    assert said in error
    assert "what to do:" in error
    assert "Traceback" not in error


def test_print_config_runs_nothing(plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plant("sow", "--seeds", "6", "--print-config") == 0
    assert "sow:\n  seeds: 6\n" in capsys.readouterr().out
    assert not (tmp_path / "plant-run" / "sow").exists()


def test_an_action_needs_no_run(plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plant("look", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"writes": False}
    assert list(tmp_path.iterdir()) == []
