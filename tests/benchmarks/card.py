"""Every measurement that needs a graphics card, in one run of about four minutes: one table, and
one JSON file.

`bash tests/benchmarks/card.sh figures FOLDER` on a machine with a card, also a bare one; `python -m
tests.benchmarks.card --small` runs the same parts at small sizes on a processor. Each part is a
benchmark of its own, in a process of its own: one that fails or takes too long costs the others
nothing. What a part printed lies in FOLDER beside its figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from plant_cli.runs.machine import describe_device


@dataclass(frozen=True, kw_only=True)
class Part:
    """A command that is measured.

    Args:
        module: what `python -m` runs.
        arguments: on a card.
        small: on a processor.
        seconds: after which it is ended.
        writes: whether it takes `--json FILE`.
    """

    module: str
    arguments: str
    small: str = ""
    seconds: int = 60
    writes: bool = True


ATTENTION = "--device cuda --dtype bfloat16"
PARTS: Mapping[str, Part] = {
    "tests": Part(
        module="pytest",
        arguments="-q -p no:cacheprovider -n 6 --maxprocesses 6 tests/plugins/plant_network tests/plugins/plant_losses "
        "tests/plugins/plant_backbones/test_bf16_models.py "
        "tests/plugins/plant_backbones/test_quantization.py",
        small="-q -p no:cacheprovider -n0 tests/plugins/plant_losses/test_list_ranking.py",
        seconds=75,
        writes=False,
    ),
    "attention": Part(
        module="tests.benchmarks.attention",
        arguments=ATTENTION,
        small="--labels 64 --positions 32 --documents 2 --hidden 32 --repeats 1",
    ),
    "ranking": Part(
        module="tests.benchmarks.ranking",
        arguments="--device cuda",
        small="--items 8 --lists 4 --repeats 1",
        seconds=40,
    ),
    "smollm2": Part(
        module="tests.benchmarks.backbones",
        arguments="--family smollm2 --positions 1024 --documents 32 --contenders ours started "
        "scoring reference --repeats 5",
        small="--scale small --family smollm2 --contenders ours started scoring --repeats 1",
        seconds=60,
    ),
    "mistral": Part(
        module="tests.benchmarks.backbones",
        arguments="--family mistral --positions 1024 --repeats 2",
        small="--scale small --family mistral --repeats 1",
        seconds=90,
    ),
}


def command(part: Part, figures: Path, *, small: bool) -> list[str]:
    """The command line of a part, which writes its figures to a file."""
    asked = (part.small if small else part.arguments).split()
    return [
        sys.executable,
        "-m",
        part.module,
        *asked,
        *(["--json", str(figures)] if part.writes else []),
    ]


def measure(
    parts: Sequence[str], folder: Path, *, small: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run parts one after the other: seconds, exit code (−1: ended because it took too long)
    and figures of each.
    """
    for name in parts:
        figures, log, began = folder / f"{name}.json", folder / f"{name}.log", time.monotonic()
        with log.open("w") as out:
            try:
                limit = None if small else PARTS[name].seconds
                asked = command(PARTS[name], figures, small=small)
                code = subprocess.run(
                    asked, stdout=out, stderr=subprocess.STDOUT, timeout=limit, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
        found = json.loads(figures.read_text()) if figures.exists() else {}
        yield name, {"seconds": time.monotonic() - began, "exit_code": code, "figures": found}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line; the exit code is 1 if a part failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.card", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--small", action="store_true", help="small sizes, on a processor")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument(
        "--lines", type=int, default=24, help="lines of a part's output that are shown"
    )
    parser.add_argument("folder", type=Path, help="where figures and logs go")
    options = parser.parse_args(arguments)
    if not options.small and not torch.cuda.is_available():
        raise SystemExit(
            "there is no graphics card that torch can use, so nothing was measured; --small runs "
            "the parts on a processor"
        )
    options.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "device": describe_device()["device"],
        "torch": torch.__version__,
        "parts": {},
    }
    for name, figures in measure(options.parts, options.folder, small=options.small):
        found["parts"][name] = figures
        print(
            f"\n== {name}: {figures['seconds']:.0f} s, exit code {figures['exit_code']}", flush=True
        )
        print(
            "\n".join((options.folder / f"{name}.log").read_text().splitlines()[-options.lines :]),
            flush=True,
        )
    (options.folder / "card.json").write_text(json.dumps(found, indent=2) + "\n")
    if any(part["exit_code"] for part in found["parts"].values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
