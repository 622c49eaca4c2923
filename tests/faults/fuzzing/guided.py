"""Fuzz with a look at which of our lines a case reaches: `python -m tests.faults.fuzzing.guided`,
with the options of the fuzzing.

atheris mutates what hypothesis draws a case from, and keeps what reaches a new line. It needs Linux
on x86-64; it watches pure Python only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING

import atheris

if TYPE_CHECKING:
    from tests.faults.fuzzing.rounds import Leave

WATCHED = (
    "data",
    "runs",
    "relevance",
    "scoring",
    "evaluation",
    "registry",
)  # rooms that read what a stranger wrote

LENGTH, SEEDS = (
    4096,
    10,
)  # bytes that a case is drawn from, and how many random ones a round begins with


def import_watched() -> None:
    """Import these rooms and all plugins so that their lines can be counted; what is imported
    before is not.
    """
    with atheris.instrument_imports(include=["plant_cli", "plant_formats"]):
        for room in WATCHED:
            module = import_module(f"plant_cli.{room}")
            for found in walk_packages(getattr(module, "__path__", ()), f"plant_cli.{room}."):
                import_module(found.name)
        import_module("plant_cli.registry").installed()


def drive(test: Callable[[], None], seed: int, cases: int, corpus: Path, leave: Leave) -> None:
    """Let libFuzzer choose so many cases; what reached something new stays in `corpus`. Does
    not return.
    """
    left = cases
    for number in range(
        SEEDS
    ):  # what is too short to draw a case from is thrown away before it reaches a line
        (corpus / f"seed-{seed}-{number}").write_bytes(
            random.Random(f"{seed}-{number}").randbytes(LENGTH)
        )
    attempt = test.hypothesis.fuzz_one_input  # type: ignore[attr-defined]

    def try_one(content: bytes) -> None:
        nonlocal left
        if left == 0:
            leave(None)
        left -= 1
        try:
            attempt(content)
        except BaseException as error:
            leave(error)

    options: dict[str, object] = {
        "artifact_prefix": f"{corpus}/"
    }  # inputs that fail are not left where the command was started
    options |= {
        "seed": seed + 1,
        "max_len": LENGTH,
        "len_control": 0,
        "timeout": 1200,
        "rss_limit_mb": 0,
        "verbosity": 0,
    }
    atheris.Setup(
        [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)],
        try_one,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    import_watched()
    from tests.faults.fuzzing.__main__ import main

    sys.exit(main(__doc__, drive))
