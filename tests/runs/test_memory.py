from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from plant_cli.runs import machine as memory
from plant_cli.runs.machine import available_memory, peak_memory_gb, resident_memory


def test_the_peak_is_at_least_what_is_resident_now() -> None:
    resident = psutil.Process().memory_info().rss / 1e9
    assert 0.9 * resident <= peak_memory_gb() < 100


def test_the_peak_does_not_fall() -> None:
    before = peak_memory_gb()
    block = bytearray(50_000_000)
    during = peak_memory_gb()
    del block
    assert 0.99 * before <= during <= 1.01 * peak_memory_gb()  # the kernel sums its counters to within some pages a thread


def test_what_is_available_is_within_what_there_is() -> None:
    assert 0 < available_memory() <= psutil.virtual_memory().total


def test_what_is_resident_now_is_that_of_this_process() -> None:
    assert resident_memory() == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel shows no status of a process")
def test_the_peak_of_the_process_that_started_this_one_is_not_counted() -> None:
    block = bytearray(b"x") * 400_000_000
    code = "from plant_cli.runs.machine import peak_memory_gb; print(peak_memory_gb())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(child.stdout) < 0.25 < len(block) / 1e9 <= peak_memory_gb()


def test_without_a_status_file_the_peak_is_that_of_getrusage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    resident = psutil.Process().memory_info().rss / 1e9
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    assert 0.9 * resident <= peak_memory_gb() < 100


HEAPS = """import ctypes, threading
from plant_cli.runs.machine import bound_heaps
if {bound}: bound_heaps({bound}); bound_heaps(64)
size = lambda: int(open("/proc/self/statm").read().split()[0]) * 4096
def take(): ctypes.CDLL(None).malloc(1000); wait.wait()
wait, before = threading.Event(), size()
for _ in range(8): threading.Thread(target=take).start()
print((size() - before) >> 20); wait.set()"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc gives a thread its own heap")
def test_threads_share_the_heaps_and_no_later_bound_is_higher() -> None:
    """Eight threads take their stacks of 8 MiB, and addresses for one heap beside the first instead of for eight."""
    one, two, free = (
        int(subprocess.run([sys.executable, "-c", HEAPS.format(bound=bound)], capture_output=True, check=True).stdout)
        for bound in (1, 2, 0)
    )
    assert one < two < one + 3 * 64 < free
