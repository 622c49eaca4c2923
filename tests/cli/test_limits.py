"""Under a memory limit a command ends as it would by itself; only where a library ends it there is a message."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = """
import os, resource, signal, sys, time
from plant_cli.cli.failures import find_limit, run_watched
resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34))
def work():
    print("begun", flush=True)
    {work}
run_watched(work, find_limit())
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of address space")


def start(work: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", START.format(work=work)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("work", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("sys.exit(1)", 1), ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL), ("os._exit(5)", 5)],
)
def test_it_ends_as_its_work_does(work: str, code: int) -> None:
    process = start(work)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (code, "begun\n", "")


@pytest.mark.parametrize(
    "taken",
    ["numpy.ones((1024, 1024), dtype='f') @ numpy.ones((1024, 1024), dtype='f')", "blas.ssyrk(1.0, numpy.ones((512, 512), dtype='f'))"],
)
def test_products_do_not_wait_for_memory_for_ever(taken: str) -> None:
    """OpenBLAS asks again and again for the buffers of its threads: they are taken before the memory is."""
    work = (
        "import numpy; from scipy.linalg import blas; resource.setrlimit(resource.RLIMIT_AS, (used() + (120 << 20),) * 2); "
        f"blocked = []\n    [fill(blocked) for _ in range(1000)]\n    del blocked[-10:]\n    {taken}; print('done')"
    )
    helpers = (
        "def used():\n    return int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "def fill(blocked):\n    import mmap\n    try:\n        blocked.append(mmap.mmap(-1, 2 << 20))\n    except OSError:\n        pass\n"
    )
    code = START.format(work=work).replace("def work", f"{helpers}def work")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "begun\ndone\n"), done.stderr


@pytest.mark.parametrize("work", ["os.abort()", "os._exit(1)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_a_library_that_ends_the_process_is_told(work: str) -> None:
    process = start(work)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (6, "begun\n")
    lines = error.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["error", "where", "expected", "what to do"]
    assert "this process may take 16,384 MiB" in lines[1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 7), (signal.SIGTERM, 7), (signal.SIGKILL, -signal.SIGKILL)])
def test_signals_reach_the_work(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Each but SIGKILL is handed on; with SIGKILL the work dies with the one that watches it."""
    handlers = "[signal.signal(one, lambda *_: sys.exit(7)) for one in (signal.SIGINT, signal.SIGTERM)]"
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


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc gives each thread a heap of its own")
def test_threads_share_one_heap() -> None:
    """Each takes its stack of 8 MiB, and no 64 MiB of addresses beside it."""
    process = start(THREADS)
    out, error = process.communicate(timeout=60)
    assert int(out.split()[1]) < 8 * 32, (out, error)


@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [300, 500, 800, 1100])
def test_a_command_under_a_limit_that_is_too_small_says_so(tmp_path: Path, mebibytes: int) -> None:
    """Whether Python, a library or nobody notices."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = f"ulimit -v {mebibytes * 1024}; exec {sys.executable} -m plant_cli finetune --init random --dataset synthetic-clinic"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 6, done.stderr
    parts = [line.split(":")[0].strip() for line in done.stderr.splitlines()[-4:]]
    assert parts == ["error", "where", "expected", "what to do"]
