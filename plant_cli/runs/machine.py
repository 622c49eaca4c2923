"""The machine: its memory, its waiting threads, its packages, and errors about memory or disk
space that ran out.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import plant_cli
from plant_cli.api import ResourceError, first_line
from plant_cli.data.files import full_disk_code
from plant_cli.runs.processes import process_count

WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
"""What is set: rounds of waiting before a thread sleeps (GNU), milliseconds (LLVM and Intel), the
logarithm of cycles (OpenBLAS; 26 by default)."""
CHOICES = (*WAITING, "OMP_WAIT_POLICY")
"""Any of these shows that the user has decided how threads wait."""


def limit_spinning(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads sleep soon, unless the environment says how they wait. OpenMP reads
    it when torch is loaded, OpenBLAS when numpy is, and never again.
    """
    if not any(environment.get(name) for name in CHOICES):
        environment.update(WAITING)


def describe_waiting(environment: MutableMapping[str, str] = os.environ) -> str:
    """How threads wait in this process, and who decided it."""
    chosen = {name: environment[name] for name in CHOICES if environment.get(name)}
    shown = ", ".join(f"{name}={value}" for name, value in chosen.items())
    if not chosen:
        return "as OpenMP does by default: they keep their cores busy"
    return (
        f"{shown} (set by plant: short, for the sake of other processes)"
        if chosen == WAITING
        else f"{shown} (set by you)"
    )


_STATUS = Path("/proc/self/status")
_ARENA_MAX = -8  # M_ARENA_MAX of glibc
_bounds: list[int] = []


def peak_memory_gb() -> float:
    """Largest resident memory of this process since it started, in 10⁹ bytes.

    Linux hands `ru_maxrss` of a large process on to the ones it starts; `VmHWM` counts this process
    alone.
    """
    if _STATUS.exists():
        fields = dict(
            line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines()
        )
        if "VmHWM" in fields:
            return int(fields["VmHWM"].split()[0]) * 1024 / 1e9
    peak = resource.getrusage(
        resource.RUSAGE_SELF
    ).ru_maxrss  # psutil knows only what is resident now
    return (
        peak * (1 if sys.platform == "darwin" else 1024) / 1e9
    )  # Linux counts kibibytes, macOS bytes


def available_memory() -> int:
    """Bytes of main memory that a new process may take without swapping."""
    import psutil  # the console imports this module for `--help`, too

    return int(psutil.virtual_memory().available)


def resident_memory() -> int:
    """Bytes of main memory that this process holds now."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def bound_heaps(most: int) -> None:
    """Let the threads of this process share so many heaps of glibc, at most; a lower bound that was
    set before stays.

    By default each thread may have its own heap with 64 MiB of addresses, which keeps freed memory.
    """
    _bounds.append(most)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it, other systems do not
    if set_option is not None:
        set_option(_ARENA_MAX, min(_bounds))


PACKAGES: tuple[str, ...] = (
    "plant-cli",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "accelerate",
    "bitsandbytes",
)
PACKAGES += ("polars", "numpy", "scipy", "safetensors")


def describe_environment(plugins: Iterable[str]) -> dict[str, Any]:
    """Versions of what decides the numbers, and of the distributions that brought plugins."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "processes": process_count(),
        "packages": {
            name: known
            for name in dict.fromkeys([*PACKAGES, *plugins])
            if (known := package_version(name)) is not None
        },
        "commit": current_commit(Path.cwd()),
    }


def describe_origin() -> dict[str, Any]:
    """The command, the version and the commit that a result comes from."""
    return {
        "command": shlex.join(["plant", *sys.argv[1:]]),
        "plant": plant_cli.__version__,
        "commit": current_commit(Path.cwd()),
    }


def describe_device() -> dict[str, Any]:
    """What computed in this process: the GPU with its peak memory in 10⁹ bytes if one was used,
    else the processor.
    """
    torch = sys.modules.get("torch")  # a stage that used no tensors must not pay for the import
    if torch is not None and torch.cuda.is_initialized():
        return {
            "device": torch.cuda.get_device_name(),
            "peak_device_memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3),
        }
    return {"device": platform.processor() or platform.machine()}


def package_version(name: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def current_commit(folder: Path) -> str | None:
    """The git commit checked out in a folder, or None where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


BATCH_OPTIONS = {"micro_batch", "batch"}  # of commands with a network
_MEMORY_PHRASES = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate",
    "bad_alloc",
    "failed to map segment",
    "can't start new thread",  # its stack has no room
)


def find_shortage(
    error: BaseException,
    folder: Path,
    kept: str,
    *,
    resumes: bool = True,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ResourceError | None:
    """The error to show if something in the chain of causes means that disk or memory ran out, else
    None.

    `folder` is where the command writes; `kept` says what stays: "the files so far are kept";
    `resumes`: `--resume` can go on with it; `options`: those of the command.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        code = full_disk_code(link)
        if code is not None:
            return _disk_full(link, folder, kept, code, resumes=resumes)
        if _is_memory(link):
            return _out_of_memory(link, folder, kept, options)
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return None


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    ):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | OSError | ImportError) and any(
        phrase in text for phrase in _MEMORY_PHRASES
    )


def _disk_full(
    error: BaseException, folder: Path, kept: str, code: int, *, resumes: bool
) -> ResourceError:
    named = getattr(error, "filename", None)
    target = Path(named) if isinstance(named, str) else folder
    place = next(
        parent for parent in [target.absolute(), *target.absolute().parents] if parent.exists()
    )
    free = shutil.disk_usage(place).free / 1e9
    if code == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        shown = "none" if limit == resource.RLIM_INFINITY else f"{limit / 1e6:.3g} MB"
        return ResourceError(
            "a file would be larger than the system allows",
            where=f"{target}; the limit of this shell is {shown}",
            expected="no limit on the size of files, or one above what `plant plan` says",
            todo=f"`ulimit -f unlimited`, or another file system; {kept}"
            + (", and --resume goes on" if resumes else ""),
        )
    quota = code == errno.EDQUOT
    return ResourceError(
        "the disk is full",
        where=f"{target}; {free:.2f} GB are free{' (or your quota there)' if quota else ''}",
        expected="room for the files of this stage"
        if resumes
        else "room for what the command writes",
        todo=f"free some space and go on with --resume: {kept}; or use another disk with --run DIR"
        if resumes
        else f"free some space, or write to another disk (another -O): {kept}",
    )


def _out_of_memory(
    error: BaseException, folder: Path, kept: str, options: Mapping[str, Any]
) -> ResourceError:
    loading = isinstance(error, ImportError) or "shared object" in str(error)  # of a library
    batches = BATCH_OPTIONS & {*options} and options.get("network") is not False
    if loading or not (batches or "cuda" in str(error).lower()):
        return ResourceError(
            f"main memory ran out: {first_line(error)}",
            where=f"while making {folder}",
            expected="as much memory as the corpus and the command need",
            todo=("lower --memory, " if "memory" in options and not loading else "")
            + "close other programs, raise the limit of this shell (`ulimit -v`), or use a part "
            f"of the corpus (data.train_share); {kept}",
        )
    device = "GPU" if "cuda" in str(error).lower() else "main"
    return ResourceError(
        f"{device} memory ran out: {first_line(error)}",
        where=f"while making {folder}",
        expected="a batch, a document length and a label block that fit",
        todo="lower --micro-batch (--batch where there is none), --set "
        "model.backbone.max_tokens=… or the label block "
        "(--set model.decoder.elements=…), or use --precision bf16, --set "
        "model.backbone.gradient_checkpointing=true or "
        f"--set model.backbone.quantization=nf4; `plant plan` says what fits; {kept}",
    )
