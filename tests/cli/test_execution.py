"""From a command line to stdout, a run folder and an exit code, whatever bytes come in and
whoever reads what goes out.
"""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.api import Column, GateFailed, Options, Result, StageSpec, Table, UsageError, option
from plant_cli.cli.execution import refuse_bytes
from plant_cli.cli.streams import tolerate_lost_reader
from plant_cli.data.files import read_json, write_json
from plant_cli.main import build
from plant_cli.registry import Registry


class SowOptions(Options):
    seeds: int = option(3, "How many.", ge=1)


def _sow(context: Any, options: SowOptions) -> Result:
    if options.seeds == 13:
        raise GateFailed(
            "thirteen seeds", where="--seeds", expected="another number", todo="sow 12"
        )
    if options.seeds == 99:
        raise ZeroDivisionError("no garden is that large")
    with context.reporter.progress("sowing", options.seeds, "seeds") as task:
        task.advance(options.seeds)
    (context.folder / "bed.txt").write_text(str(options.seeds))
    table = Table(
        title="Bed", columns=[Column(name="seeds", kind="count")], rows=[(options.seeds,)]
    )
    return Result(tables=[table], next_step="plant water", summary={"seeds": options.seeds})


def _look(context: Any, options: Any) -> Result:
    return Result(data={"writes": False})


SPECS = (
    StageSpec(name="sow", summary="Sow.", options=SowOptions, run=_sow),
    StageSpec(name="look", summary="Look.", run=_look, writes=False, needs_run=False),
)


@pytest.fixture
def plant(garden: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where the trace of a bug goes

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as left:
            build(garden).main(list(arguments), prog_name="plant")
        return int(left.value.code or 0)

    return run


def test_result_on_stdout_progress_and_next_step_on_stderr(
    plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plant("sow", "--seeds", "5") == 0
    shown = capsys.readouterr()
    assert shown.out == "Bed\nseeds\n    5\n"
    assert "sowing: done" in shown.err
    assert "next: plant water\n" in shown.err
    assert (tmp_path / "plant-run" / "sow" / "bed.txt").read_text() == "5"


def test_set_recipe_tag_and_run(
    plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.yaml").write_text("sow:\n  seeds: 7\n")
    assert plant("sow", "--recipe", "r.yaml", "--run", "other", "-q") == 0
    assert (
        plant(
            "sow",
            "--set",
            "sow.seeds=8",
            "--tag",
            "late",
            "--run",
            "other",
            "-q",
            "--format",
            "jsonl",
        )
        == 0
    )
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == '{"seeds": 8}'
    assert shown.err == ""
    assert [
        (tmp_path / "other" / name / "bed.txt").read_text() for name in ("sow", "sow-late")
    ] == ["7", "8"]


def test_the_next_step_is_in_the_run_that_was_named(
    plant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("sow", "--run", "other")
    assert (
        "next: plant water   (with --run other, or once: export PLANT_RUN=other)\n"
        in capsys.readouterr().err
    )
    plant("sow", "--run", "my first ü")
    assert (
        "(with --run 'my first ü', or once: export PLANT_RUN='my first ü')\n"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("PLANT_RUN", "third")
    plant("sow")
    assert "next: plant water\n" in capsys.readouterr().err


def test_a_damaged_or_finished_stage_is_replaced_with_force(
    plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("sow", "-q")
    (tmp_path / "plant-run" / "sow" / "stage.json").write_text('{"status": "do')
    assert plant("sow", "-q") == 4
    assert "--force" in capsys.readouterr().err
    assert plant("sow", "-q", "--force", "--seeds", "4") == 0
    assert plant("sow", "-q", "--seeds", "5") == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "plant-run" / "sow" / "bed.txt").read_text() == "4"


@pytest.mark.parametrize(
    ("seeds", "code", "said"),
    [("13", 7, "thirteen seeds"), ("99", 1, "a bug: ZeroDivisionError"), ("0", 3, "seeds")],
)
def test_failures_exit_with_their_code_and_no_trace(
    plant: Any, capsys: pytest.CaptureFixture[str], seeds: str, code: int, said: str
) -> None:
    assert plant("sow", "--seeds", seeds, "-q") == code
    error = capsys.readouterr().err
    assert said in error
    assert "what to do:" in error
    assert "Traceback" not in error


def test_print_config_runs_nothing(
    plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plant("sow", "--seeds", "6", "--print-config") == 0
    assert "sow:\n  seeds: 6\n" in capsys.readouterr().out
    assert not (tmp_path / "plant-run" / "sow").exists()


def test_an_action_needs_no_run(
    plant: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plant("look", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"writes": False}
    assert list(tmp_path.iterdir()) == []


NAME = os.fsdecode(b"b\xff.csv")


@pytest.mark.parametrize("value", [NAME, Path("folder") / NAME, ["fine", NAME]])
def test_what_was_given_is_refused_before_any_work(value: Any) -> None:
    with pytest.raises(UsageError) as caught, refuse_bytes({"data": {"label_file": value}}):
        pytest.fail("the work began")
    assert "b\\xff.csv" in caught.value.what
    assert caught.value.where == "the command line, label-file"
    assert "UTF-8" in caught.value.expected


def test_the_name_of_a_file_that_is_met_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught, refuse_bytes({"data": {"path": "ü", "k": 3}}):
        write_json(tmp_path / "list.json", ["one", NAME])
    assert caught.value.what == r'not a text in UTF-8: "b\xff.csv"'


def test_a_letter_that_an_encoding_lacks_is_another_error() -> None:
    with pytest.raises(UnicodeEncodeError), refuse_bytes({}):
        "ü".encode("ascii")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("mig", b"b\xff.csv"), "path"),
        (("mig", "c.csv", "--run", b"\xff"), "run"),
        (("suggest", "--text", b"\xffabc"), "text"),
    ],
)
def test_a_command_line_in_another_encoding_is_explained(
    tmp_path: Path, arguments: tuple[str | bytes, ...], where: str
) -> None:
    command = [sys.executable, "-m", "plant_cli", *arguments]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONUTF8": "1"},
        check=False,
    )
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert error.startswith("error: not a text in UTF-8: ")
    assert f"  where:      the command line, {where}\n" in error
    assert error.count("\n") == 4
    assert list(tmp_path.iterdir()) == []


def test_a_stream_outlives_its_reader() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as pipe:
        stream = tolerate_lost_reader(pipe)
        print("read", file=stream)
        assert os.read(reader, 100) == b"read\n"
        os.close(reader)
        for _ in range(3):
            print("unread", file=stream, flush=True)
        os.write(writer, b"what a library writes by itself")


def test_other_failures_are_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as file:
        stream: Any = tolerate_lost_reader(file)
        with pytest.raises(OSError, match="No space left") as caught:
            stream.buffer.raw.write(b"lost")
    assert caught.value.errno == errno.ENOSPC


def test_a_stream_in_memory_stays_as_it_is() -> None:
    stream = io.StringIO()
    assert tolerate_lost_reader(stream) is stream


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "c.parquet"
    rows = [
        (split, f"{word} and more", [word])
        for split in ("train", "validation", "test")
        for word in ("fever", "cough", "pain")
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    return path


def start(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "plant_cli", *arguments], **streams)


def test_a_stage_ends_well_though_nobody_reads_its_progress_or_its_result(corpus: Path) -> None:
    """As in `plant mig c.parquet 2>&1 | head -1`."""
    stage = start(
        "mig",
        str(corpus),
        "--run",
        str(corpus.parent / "run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert stage.stdout is not None
    stage.stdout.close()
    assert stage.wait(timeout=60) == 0
    assert read_json(corpus.parent / "run" / "mig" / "stage.json", "the record")["status"] == "done"


def test_an_action_whose_result_nobody_reads_ends_quietly(corpus: Path) -> None:
    """As in `plant data stats c.parquet --quiet | head -0`: no complaint; without `--quiet`
    stderr tells of progress.
    """
    action = start(
        "data", "stats", str(corpus), "--quiet", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert action.stdout is not None
    action.stdout.close()
    assert action.stderr is not None
    assert (action.wait(timeout=60), action.stderr.read()) == (141, b"")
    action.stderr.close()
