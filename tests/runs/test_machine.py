from __future__ import annotations

import ctypes
import errno
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from plant_cli.api import ResourceError
from plant_cli.runs import machine
from plant_cli.runs.machine import (
    CHOICES,
    WAITING,
    available_memory,
    current_commit,
    describe_device,
    describe_environment,
    describe_waiting,
    find_shortage,
    limit_spinning,
    package_version,
    peak_memory_gb,
    resident_memory,
)


def test_memory_is_that_of_this_process_and_its_peak_does_not_fall(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resident = psutil.Process().memory_info().rss
    assert resident_memory() == pytest.approx(resident, rel=0.2)
    assert 0 < available_memory() <= psutil.virtual_memory().total
    before = peak_memory_gb()
    block = bytearray(50_000_000)
    during = peak_memory_gb()
    del block
    assert 0.9 * resident / 1e9 <= before < 100
    assert (
        0.99 * before <= during <= 1.01 * peak_memory_gb()
    )  # the kernel sums its counters to within some pages a thread
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "absent")  # then getrusage tells
    assert 0.9 * resident / 1e9 <= peak_memory_gb() < 100


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the kernel shows no status of a process"
)
def test_the_peak_of_the_process_that_started_this_one_is_not_counted() -> None:
    block = bytearray(b"x") * 400_000_000
    code = "from plant_cli.runs.machine import peak_memory_gb; print(peak_memory_gb())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(child.stdout) < 0.25 < len(block) / 1e9 <= peak_memory_gb()


HEAPS = """import ctypes, threading
from plant_cli.runs.machine import bound_heaps
if {bound}: bound_heaps({bound}); bound_heaps(64)
size = lambda: int(open("/proc/self/statm").read().split()[0]) * 4096
def take(): ctypes.CDLL(None).malloc(1000); wait.wait()
wait, before = threading.Event(), size()
for _ in range(8): threading.Thread(target=take).start()
print((size() - before) >> 20); wait.set()"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="only glibc gives a thread its own heap",
)
def test_threads_share_the_heaps_and_no_later_bound_is_higher() -> None:
    """Eight threads take their stacks of 8 MiB, and addresses for one heap beside the first
    instead of for eight.
    """
    one, two, free = (
        int(
            subprocess.run(
                [sys.executable, "-c", HEAPS.format(bound=bound)], capture_output=True, check=True
            ).stdout
        )
        for bound in (1, 2, 0)
    )
    assert one < two < one + 3 * 64 < free


def test_nothing_given_means_short() -> None:
    environment: dict[str, str] = {"HOME": "/"}
    assert describe_waiting(environment).startswith("as OpenMP does")
    limit_spinning(environment)
    assert environment == {"HOME": "/", **WAITING}
    assert describe_waiting(environment).endswith(
        "(set by plant: short, for the sake of other processes)"
    )


@pytest.mark.parametrize("name", CHOICES)
def test_what_the_user_sets_stays(name: str) -> None:
    environment = {name: "7"}
    limit_spinning(environment)
    assert environment == {name: "7"}
    assert describe_waiting(environment) == f"{name}=7 (set by you)"


@pytest.mark.parametrize(
    "start", ["from plant_cli.main import main", "from plant_cli.__main__ import main"]
)
def test_both_entry_points_set_it_before_torch_is_there(start: str) -> None:
    script = f"""
import os, sys
{start}
sys.argv = ["plant", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["GOMP_SPINCOUNT"], "torch" in sys.modules)
"""
    clean = {name: value for name, value in os.environ.items() if name not in CHOICES}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=clean
    )
    assert done.stdout.split()[-2:] == [WAITING["GOMP_SPINCOUNT"], "False"]


def test_tests_wait_likewise() -> None:
    assert any(os.environ.get(name) for name in CHOICES)


class OutOfMemoryError(RuntimeError):
    """Like torch's."""


def explain(error: BaseException, folder: Path, **kept: Any) -> ResourceError:
    found = find_shortage(
        error, folder, "the files so far are kept", **{"options": {"micro_batch": 4}, **kept}
    )
    assert found is not None
    return found


def test_a_full_disk_says_how_much_is_free_and_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(
        "shutil.disk_usage", lambda place: asked.append(place) or SimpleNamespace(free=2_000_000)
    )
    (tmp_path / "small").mkdir()
    file = str(tmp_path / "small" / "new" / "model.safetensors")
    full = OSError(errno.ENOSPC, "No space left on device", file)
    found = explain(full, tmp_path / "absent" / "finetune")
    assert (found.what, found.where, found.exit_code) == (
        "the disk is full",
        f"{file}; 0.00 GB are free",
        6,
    )
    assert "go on with --resume: the files so far are kept" in found.todo
    assert asked == [tmp_path / "small"]
    action = explain(full, tmp_path / "run", resumes=False).todo
    assert "-O" in action
    assert "--resume" not in action
    assert "quota" in explain(OSError(errno.EDQUOT, "Disk quota exceeded"), tmp_path).where


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (RuntimeError("safetensors could not write"), "the disk is full"),  # with its cause
        (
            Exception("parquet: underlying IO error: No space left on device (os error 28)"),
            "the disk is full",
        ),  # what polars hands on
        (OSError(errno.EFBIG, "File too large"), "a file would be larger than the system allows"),
        (
            RuntimeError("Error while serializing: I/O error: File too large (os error 27)"),
            "a file would be larger than the system allows",
        ),
    ],
)
def test_the_cause_is_found_behind_the_words_of_a_library(
    error: Exception, what: str, tmp_path: Path
) -> None:
    error.__cause__ = (
        OSError(errno.ENOSPC, "No space left on device")
        if "could not write" in str(error)
        else None
    )
    found = explain(error, tmp_path)
    assert found.what == what
    assert ("ulimit -f unlimited" in found.todo) == ("larger" in what)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you "
            "tried to allocate 8 bytes"
        ),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
    ],
)
def test_memory_that_ran_out_names_the_knobs(error: BaseException, tmp_path: Path) -> None:
    found = explain(error, tmp_path)
    assert found.what.startswith("GPU memory" if "CUDA" in str(error) else "main memory")
    for knob in (
        "--micro-batch",
        "max_tokens",
        "label block",
        "bf16",
        "gradient_checkpointing",
        "nf4",
        "plant plan",
    ):
        assert knob in found.todo


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (MemoryError(), {}),
        (MemoryError(), {"memory": "4GB"}),
        (MemoryError(), {"micro_batch": 4, "network": False}),
        (OSError("libgomp.so.1: failed to map segment from shared object"), {"micro_batch": 4}),
        (ImportError("libtorch.so: failed to map segment from shared object"), {"memory": "4GB"}),
    ],
)
def test_where_there_is_no_batch_none_is_to_be_lowered(
    error: BaseException, options: dict[str, Any], tmp_path: Path
) -> None:
    todo = explain(error, tmp_path, options=options).todo
    assert "ulimit -v" in todo
    assert "batch" not in todo
    assert ("lower --memory" in todo) == ("memory" in options and isinstance(error, MemoryError))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("out of memory of this city"),
        OSError(errno.ENOENT, "no such file"),
        RuntimeError("boom"),
    ],
)
def test_other_errors_are_no_shortage(error: Exception, tmp_path: Path) -> None:
    assert find_shortage(error, tmp_path, "kept") is None


def test_it_names_versions_without_importing_anything() -> None:
    found = describe_environment(["pluggy", "no-such-distribution"])
    assert found["python"] == platform.python_version()
    assert found["packages"]["pluggy"] == package_version("pluggy")
    assert "no-such-distribution" not in found["packages"]
    assert found["processors"] >= 1


def test_the_commit_is_the_one_checked_out(tmp_path: Path) -> None:
    assert current_commit(tmp_path) is current_commit(tmp_path / "absent") is None
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert len(current_commit(tmp_path) or "") == 40


def test_the_device_is_the_gpu_only_if_one_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = SimpleNamespace(
        is_initialized=lambda: True,
        get_device_name=lambda: "H200",
        max_memory_allocated=lambda: 3 * 10**9,
    )
    for cuda, expected in (
        (used, {"device": "H200", "peak_device_memory_gb": 3.0}),
        (SimpleNamespace(is_initialized=lambda: False), None),
    ):
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        found = describe_device()
        assert found == (expected or {"device": found["device"]})
        assert found["device"]
