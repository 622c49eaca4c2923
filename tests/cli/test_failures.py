"""What a person and a shell see of an error."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from plant_cli.api import ArtefactError, DataError, GateFailed, Interrupted, PlantError, RecipeError, ResourceError, UsageError
from plant_cli.cli.failures import report_failures
from plant_cli.registry import Registry

WEED = """from plant_cli.api import hookimpl

@hookimpl
def plant_register_losses():
    return []

def fail():
    raise KeyError('x')
"""


def _leave(error: BaseException) -> int:
    with pytest.raises(SystemExit) as left, report_failures("plant-garden"):
        raise error
    return int(left.value.code or 0)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(UsageError, 2), (RecipeError, 3), (DataError, 4), (ArtefactError, 4), (ResourceError, 6), (GateFailed, 7), (Interrupted, 130)],
)
def test_four_lines_and_the_exit_code(kind: type[PlantError], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert _leave(kind("a is b", where="x.csv:3", expected="c", todo="do d")) == code
    assert capsys.readouterr().err.splitlines() == [
        "error: a is b",
        "  where:      x.csv:3",
        "  expected:   c",
        "  what to do: do d",
    ]


def test_a_bug_leaves_its_trace_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _leave(ZeroDivisionError("one over none\nmore")) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "ZeroDivisionError: one over none\n" in said
    assert "plant-garden" in said
    (trace,) = tmp_path.iterdir()
    assert str(trace) in said
    assert "Traceback" in trace.read_text()


def test_what_arises_in_a_plugin_is_laid_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And where no line of it is in the trace, its checks are named: it may have given what plant stumbled over."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    module = ModuleType("plant_weed")
    exec(compile(WEED, "weed.py", "exec"), vars(module))
    registry = Registry()
    registry.register(module, name="weed")
    with pytest.raises(SystemExit) as left, report_failures(registry=registry):
        module.fail()
    said = capsys.readouterr().err.splitlines()
    assert (left.value.code, said[0]) == (5, "error: the plugin 'weed' failed: KeyError: 'x'")
    assert said[1].startswith("  where:      weed.py:8; ")
    with pytest.raises(SystemExit) as left, report_failures(registry=registry):
        raise KeyError("x")
    said = capsys.readouterr().err.splitlines()
    assert (left.value.code, said[0]) == (1, "error: a bug: KeyError: 'x'")
    assert said[3].endswith("if weed took part, first run `pytest --pyargs plant_cli.testing --plant-plugin weed`")


def test_interruption_exits_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert _leave(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_leaves_early_is_no_failure() -> None:
    code = "from plant_cli.cli.failures import report_failures as r\nwith r():\n    while True: print('x' * 1000)"
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.wait(timeout=20) == 141
    assert writer.stderr is not None
    assert writer.stderr.read() == b""
    writer.stderr.close()


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/root/run"), "the system refuses a file: Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "the system refuses a file: No space left on device"),
    ],
)
def test_what_the_system_refuses_is_no_bug(error: OSError, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _leave(error) == 6
    said = capsys.readouterr().err
    assert said.startswith(f"error: {what}\n")
    assert said.count("\n") == 4


def test_what_is_gone_meanwhile_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert _leave(FileNotFoundError(errno.ENOENT, "No such file or directory", "/run/mig")) == 6
    assert "moved, renamed or deleted meanwhile" in capsys.readouterr().err


def test_a_library_that_gives_up_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    panic = type("PanicException", (BaseException,), {})
    assert _leave(panic("could not allocate\nmore")) == 6
    said = capsys.readouterr().err
    assert said.startswith("error: a library gave up: could not allocate\n")
    assert "enough memory" in said
    assert _leave(panic("range end index 9 out of range for slice of length 3")) == 4
    said = capsys.readouterr().err
    assert "  expected:   files that are whole\n" in said
    assert "memory" not in said


def test_a_trace_that_cannot_be_kept_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    assert _leave(ZeroDivisionError("one over none")) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: a bug: ZeroDivisionError: one over none\n  where:      the trace below")
    assert "Traceback" in said


def test_messages_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _leave(UsageError("there is no '\x1b[2J'", where="x", expected="y", todo="z"))
    assert capsys.readouterr().err.startswith("error: there is no '\\x1b[2J'\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("cannot import name"),
        NameError("name"),
        SyntaxError("expected ':'"),
        SystemError("error return without exception set"),
        RuntimeError("could not create a primitive"),
        RuntimeError("could not execute a primitive"),
    ],
)
def test_what_goes_wrong_under_a_memory_limit_is_laid_to_it(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python's parser calls code wrong that it has no memory to read, oneDNN could not make code, others do not say why."""
    monkeypatch.setattr("plant_cli.cli.failures.find_limit", lambda: 1 << 30)
    assert _leave(error) == 6
    assert "`ulimit -v`" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "said"), [(None, "could not create a primitive"), (1 << 30, "the sizes of tensors differ")])
def test_other_failures_are_not_laid_to_memory(limit: int | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.cli.failures.find_limit", lambda: limit)
    assert _leave(RuntimeError(said)) == 1
