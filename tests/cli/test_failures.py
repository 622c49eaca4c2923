"""What a person and a shell see of an error, also where memory is limited."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from plant_cli.api import (
    ArtefactError,
    DataError,
    GateFailed,
    Interrupted,
    PlantError,
    RecipeError,
    ResourceError,
    UsageError,
)
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
    [
        (UsageError, 2),
        (RecipeError, 3),
        (DataError, 4),
        (ArtefactError, 4),
        (ResourceError, 6),
        (GateFailed, 7),
        (Interrupted, 130),
    ],
)
def test_four_lines_and_the_exit_code(
    kind: type[PlantError], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _leave(kind("a is b", where="x.csv:3", expected="c", todo="do d")) == code
    assert capsys.readouterr().err.splitlines() == [
        "error: a is b",
        "  where:      x.csv:3",
        "  expected:   c",
        "  what to do: do d",
    ]


def test_a_bug_leaves_its_trace_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _leave(ZeroDivisionError("one over none\nmore")) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "ZeroDivisionError: one over none\n" in said
    assert "plant-garden" in said
    (trace,) = tmp_path.iterdir()
    assert str(trace) in said
    assert "Traceback" in trace.read_text()


def test_what_arises_in_a_plugin_is_laid_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where no line of it is in the trace, its checks are named: it may have given what
    plant stumbled over.
    """
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
    assert said[3].endswith(
        "if weed took part, first run `pytest --pyargs plant_cli.testing --plant-plugin weed`"
    )


def test_interruption_exits_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert _leave(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_leaves_early_is_no_failure() -> None:
    code = (
        "from plant_cli.cli.failures import report_failures as r\nwith r():\n    while True: "
        "print('x' * 1000)"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.wait(timeout=20) == 141
    assert writer.stderr is not None
    assert writer.stderr.read() == b""
    writer.stderr.close()


PANIC = type("PanicException", (BaseException,), {})  # how libraries written in Rust fail
NO_BUGS = [
    (
        PermissionError(errno.EACCES, "Permission denied", "/root/run"),
        6,
        "error: the system refuses a file: Permission denied\n",
    ),
    (
        OSError(errno.ENOSPC, "No space left on device"),
        6,
        "error: the system refuses a file: No space left on device\n",
    ),
    (
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/run/mig"),
        6,
        "moved, renamed or deleted meanwhile",
    ),
    (PANIC("could not allocate\nmore"), 6, "error: a library gave up: could not allocate\n"),
    (
        PANIC("range end index 9 out of range for slice of length 3"),
        4,
        "  expected:   undamaged files\n",
    ),
    (
        UsageError("there is no '\x1b[2J'", where="x", expected="y", todo="z"),
        2,
        "error: there is no '\\x1b[2J'\n",
    ),
]


@pytest.mark.parametrize(
    ("error", "code", "said"), NO_BUGS, ids=[str(error)[:30] for error, *_ in NO_BUGS]
)
def test_what_is_no_bug_is_explained_in_four_lines(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _leave(error) == code
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 4
    assert ("memory" in message) == ("allocate" in said)


def test_a_part_without_text_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        _leave(Interrupted("stopped in epoch 2", where="run", expected="", todo="--resume goes on"))
        == 130
    )
    assert (
        capsys.readouterr().err
        == "error: stopped in epoch 2\n  where:      run\n  what to do: --resume goes on\n"
    )


def test_a_trace_that_cannot_be_kept_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    assert _leave(ZeroDivisionError("one over none")) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "error: a bug: ZeroDivisionError: one over none\n  where:      the trace below"
    )
    assert "Traceback" in said


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
    """Python's parser calls code wrong that it has no memory to read, oneDNN could not make
    code, others do not say why.
    """
    monkeypatch.setattr("plant_cli.cli.failures.find_limit", lambda: 1 << 30)
    assert _leave(error) == 6
    assert "`ulimit -v`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "said"),
    [(None, "could not create a primitive"), (1 << 30, "the sizes of tensors differ")],
)
def test_other_failures_are_not_laid_to_memory(
    limit: int | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.cli.failures.find_limit", lambda: limit)
    assert _leave(RuntimeError(said)) == 1


START = """
import os, resource, signal, sys, time
from plant_cli.cli.failures import find_limit, run_watched
resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34))
def work():
    print("begun", flush=True)
    {work}
run_watched(work, find_limit())
"""
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux keeps to a limit of address space"
)


def start(work: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START.format(work=work)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@LINUX
@pytest.mark.parametrize(
    ("work", "code"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("sys.exit(1)", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(5)", 5),
    ],
)
def test_it_ends_as_its_work_does(work: str, code: int) -> None:
    process = start(work)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (code, "begun\n", "")


@LINUX
@pytest.mark.parametrize(
    "taken",
    [
        "numpy.ones((1024, 1024), dtype='f') @ numpy.ones((1024, 1024), dtype='f')",
        "blas.ssyrk(1.0, numpy.ones((512, 512), dtype='f'))",
    ],
)
def test_products_do_not_wait_for_memory_for_ever(taken: str) -> None:
    """OpenBLAS asks again and again for the buffers of its threads: they are taken before the
    memory is.
    """
    work = (
        "import numpy; from scipy.linalg import blas; resource.setrlimit(resource.RLIMIT_AS, "
        "(used() + (120 << 20),) * 2); "
        "blocked = []\n    [fill(blocked) for _ in range(1000)]\n    del blocked[-10:]\n    "
        f"{taken}; print('done')"
    )
    helpers = (
        "def used():\n    return int(open('/proc/self/statm').read().split()[0]) * "
        "resource.getpagesize()\n"
        "def fill(blocked):\n    import mmap\n    try:\n        blocked.append(mmap.mmap(-1, 2 "
        "<< 20))\n    except OSError:\n        pass\n"
    )
    code = START.format(work=work).replace("def work", f"{helpers}def work")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "begun\ndone\n"), done.stderr


@LINUX
@pytest.mark.parametrize(
    "work", ["os.abort()", "os._exit(1)", "os.kill(os.getpid(), signal.SIGSEGV)"]
)
def test_a_library_that_ends_the_process_is_told(work: str) -> None:
    process = start(work)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (6, "begun\n")
    lines = error.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        "error",
        "where",
        "expected",
        "what to do",
    ]
    assert "this process may take 16,384 MiB" in lines[1]


@LINUX
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 7), (signal.SIGTERM, 7), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_signals_reach_the_work(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Each but SIGKILL is handed on; with SIGKILL the work dies with the one that watches it."""
    handlers = (
        "[signal.signal(one, lambda *_: sys.exit(7)) for one in (signal.SIGINT, signal.SIGTERM)]"
    )
    process = start(f"{handlers}; print(os.getpid(), flush=True); time.sleep(60)")
    assert process.stdout is not None
    worker = [process.stdout.readline() for _ in range(2)][1]
    process.send_signal(number)
    assert process.wait(timeout=30) == code
    deadline = time.monotonic() + 30
    while Path(f"/proc/{int(worker)}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{int(worker)}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    assert time.monotonic() < deadline
    process.communicate()


THREADS = """import ctypes, threading
    size = lambda: int(open("/proc/self/statm").read().split()[0]) * 4096
    def take(): ctypes.CDLL(None).malloc(1000); wait.wait()
    wait, before = threading.Event(), size()
    for _ in range(8): threading.Thread(target=take).start()
    print((size() - before) >> 20, flush=True); wait.set()
"""


@LINUX
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="only glibc gives each thread a heap of its own",
)
def test_threads_share_one_heap() -> None:
    """Each takes its stack of 8 MiB, and no 64 MiB of addresses beside it."""
    process = start(THREADS)
    out, error = process.communicate(timeout=60)
    assert int(out.split()[1]) < 8 * 32, (out, error)


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [300, 500, 800, 1100])
def test_a_command_under_a_limit_that_is_too_small_says_so(tmp_path: Path, mebibytes: int) -> None:
    """Whether Python, a library or nobody notices."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = (
        f"ulimit -v {mebibytes * 1024}; exec {sys.executable} -m plant_cli finetune --init "
        "random --dataset synthetic-clinic"
    )
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 6, done.stderr
    parts = [line.split(":")[0].strip() for line in done.stderr.splitlines()[-4:]]
    assert parts[0].endswith("error"), (
        parts
    )  # a library may have been stopped in the midst of a line
    assert parts[1:] == ["where", "expected", "what to do"]
