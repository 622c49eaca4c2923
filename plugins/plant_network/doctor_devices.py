"""What torch finds on this machine: devices, their precisions, and whether language models in 4
bits can run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from plant_cli.runs.machine import describe_waiting, package_version
from plant_cli.runs.machine_checks import GIB, CheckResult, judge
from plant_network.throughput import matrix_rate


def examine() -> Iterator[CheckResult]:
    """Every check."""
    yield from examine_devices()
    yield from examine_quantised()


def examine_devices() -> Iterator[CheckResult]:
    """The devices that torch can use, and whether bf16 is faster there."""
    devices = [torch.device("cpu")]
    yield judge("device", "cpu", f"{torch.get_num_threads()} threads of {os.cpu_count()} cores")
    yield judge("device", "waiting threads", describe_waiting())
    for index in range(torch.cuda.device_count()):
        devices.append(torch.device("cuda", index))
        free, total = torch.cuda.mem_get_info(index)
        yield judge(
            "device",
            f"cuda:{index}",
            f"{torch.cuda.get_device_name(index)}, {free / GIB:.0f} of {total / GIB:.0f} GiB free",
        )
    if torch.backends.mps.is_available():
        devices.append(torch.device("mps"))
        yield judge("device", "mps", "available")
    if len(devices) == 1:
        yield judge(
            "device",
            "gpu",
            "none",
            wrong=True,
            todo="fine for encoders up to the size of MiniLM; larger ones need a GPU",
        )
    yield from map(compare_precisions, devices)


def compare_precisions(device: torch.device) -> CheckResult:
    """Compare the matrix rates in bf16 and in fp32."""
    full, half = matrix_rate(device, torch.float32), matrix_rate(device, torch.bfloat16)
    found = f"bf16 {half / full:.1f}x the speed of fp32 ({full / 1e9:,.0f} GFLOP/s in fp32)"
    todo = "" if half > full else "--precision fp32 is faster here"
    return CheckResult(topic="precision", name=str(device), state="ok", found=found, todo=todo)


def examine_quantised() -> Iterator[CheckResult]:
    """Whether large language models can be held in 4 bits."""
    cuda, quantises = torch.cuda.is_available(), package_version("bitsandbytes") is not None
    found = (
        "bitsandbytes is missing"
        if not quantises
        else "cuda and bitsandbytes"
        if cuda
        else "bitsandbytes, but no cuda device"
    )
    slow = (
        ""
        if cuda
        else "small ones run on the processor; billions of parameters need an NVIDIA GPU, or use "
        "an encoder such as minilm"
    )
    todo = slow if quantises else "pip install bitsandbytes"
    yield judge("feature", "4-bit language models", found, wrong=bool(todo), todo=todo)
