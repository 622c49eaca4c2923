"""Contenders of a benchmark, each in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from tests.benchmarks.machine import MACHINE, rates

Figures = dict[str, float]
Contender = Callable[[argparse.Namespace], Callable[[], object]]
"""Prepares the inputs and gives the step that is measured."""


def measure(step: Callable[[], object], repeats: int, device: str = "cpu") -> Figures:
    """Least wall-clock and processor time of a step after one to warm up, and the memory (GB)
    that it added to what was there.
    """
    settle: Callable[[], object] = torch.cuda.synchronize if device == "cuda" else lambda: None
    before = _peak_gb(device)
    step()
    settle()
    times = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        step()
        settle()
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    after = _peak_gb(device)  # a second training step has the optimiser's state beside it
    return {
        "seconds": min(t[0] for t in times),
        "cpu_seconds": min(t[1] for t in times),
        "peak_gb": after - before,
    }


def _peak_gb(device: str) -> float:
    """Most memory of the process so far, on the device."""
    return (
        torch.cuda.max_memory_allocated() / 1e9
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    )


def run(
    module: str,
    parser: argparse.ArgumentParser,
    contenders: Mapping[str, Contender],
    arguments: Sequence[str] | None = None,
    work: Callable[[argparse.Namespace], Figures] | None = None,
    small: Mapping[str, int] | None = None,
    on_card: Callable[[argparse.Namespace], Mapping[str, object]] | None = None,
) -> None:
    """Run a benchmark's command line: one contender (`--part`), or all in turn, a table on stdout
    and `--json FILE`.

    Args:
        module: name of the module to start for each contender.
        parser: holds the benchmark's own options.
        contenders: by name; `ours`, `reference`, `peer` and `bound` have their keys in the JSON
            file, others are written beside them.
        arguments: command line (default: the process's).
        work: `operations` and `bytes` that a step cannot do without; the contenders can then run on
            a graphics card (`--device cuda`), and ours is told as a share of the rates at which the
            device multiplies and copies, measured in the same run.
        small: sizes of a step that each contender takes beforehand: what it loads of libraries is
            not counted as its memory.
        on_card: what is measured on a graphics card instead of the contenders; it prints, and gives
            what the JSON file holds.
    """
    if work:
        contenders = {**contenders, **MACHINE}
        parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--part", choices=list(contenders), help="run this contender here and print its figures"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    device = options.device if work else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            f"{module} --device cuda: there is no graphics card that torch can use, so nothing "
            "was measured"
        )
    if options.part:
        if device == "cuda":  # on a processor it would only cost: a check in each operation
            torch.set_default_device(device)
        if small:
            contenders[options.part](argparse.Namespace(**{**vars(options), **small}))()
        print(json.dumps(measure(contenders[options.part](options), options.repeats, device)))
        return
    if device == "cuda" and on_card:
        on_it = {**on_card(options), "machine": _machine(device)}
        if options.json:
            options.json.write_text(json.dumps(on_it, indent=2) + "\n")
        return
    figures = {name: _in_process(module, [*given, "--part", name]) for name in contenders}
    print(f"{'':12}{'seconds':>10}{'cpu s':>10}{'GB added':>10}{'times ours':>12}")
    for name, found in figures.items():
        ratio = found["seconds"] / figures["ours"]["seconds"]
        print(
            f"{name:12}{found['seconds']:10.4f}{found['cpu_seconds']:10.4f}{found['peak_gb']:10.3f}{ratio:12.2f}"
        )
    shares = rates(figures, work(options), device) if work else {}
    for name, value in shares.items():
        print(f"{name:28}{value:12.4g}")
    if options.json:
        sizes = {
            name: value for name, value in vars(options).items() if name not in ("part", "json")
        }
        options.json.write_text(
            json.dumps({**_report(figures, device), **shares, "sizes": sizes}, indent=2) + "\n"
        )


def _in_process(module: str, arguments: list[str]) -> Figures:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{done.stderr}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def _report(figures: Mapping[str, Figures], device: str) -> dict[str, object]:
    prefixes = {name: "" if name == "ours" else f"{name}_" for name in figures}
    flat = {
        prefixes[name] + key: value
        for name, found in figures.items()
        for key, value in found.items()
    }
    return {**flat, "machine": _machine(device)}


def _machine(device: str) -> str:
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    )
    return f"{torch.cuda.get_device_name()}, {machine}" if device == "cuda" else machine
