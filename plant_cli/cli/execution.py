"""One command, from the values of its flags to its result on the screen."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from plant_cli.api import Request, ResourceError, StageSpec, UsageError
from plant_cli.api.context import DEFAULT_RUN
from plant_cli.cli.failures import report_failures
from plant_cli.cli.flags import GENERAL
from plant_cli.cli.launching import run_together
from plant_cli.cli.output import show_result
from plant_cli.cli.progress import ConsoleReporter
from plant_cli.cli.streams import silence
from plant_cli.registry import Registry
from plant_cli.runs.runner import print_config


@contextmanager
def refuse_bytes(given: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """`UsageError` for values that are not valid text in this terminal, and for such names of
    files in the block.
    """
    for name, value in (pair for options in given.values() for pair in options.items()):
        wrong = next(
            filter(_holds_bytes, map(str, value if isinstance(value, list | tuple) else [value])),
            None,
        )
        if wrong is not None:
            raise _refused(wrong, f"the command line, {name.replace('_', '-')}")
    try:
        yield
    except UnicodeEncodeError as error:
        line = next(filter(_holds_bytes, error.object.splitlines()), None)
        if line is None:
            raise
        raise _refused(line, "a path: of this folder, or of a file of the corpus") from error


def _holds_bytes(text: str) -> bool:
    return any(
        "\udc80" <= letter <= "\udcff" for letter in text
    )  # how Python keeps bytes that it cannot decode


def _refused(text: str, where: str) -> UsageError:
    name = sys.getfilesystemencoding().upper()
    shown = os.fsencode(text).decode(errors="backslashreplace").strip()
    return UsageError(
        f"not a text in {name}: {shown[:200]}",
        where=where,
        expected=f"text and names of files in {name}, the encoding of this terminal",
        todo=f"rename the file, or give the text in {name} (`iconv -f latin1 -t utf-8` turns one "
        "encoding into another)",
    )


def execute(spec: StageSpec, registry: Registry, given: dict[str, dict[str, Any]]) -> None:
    """Run a stage or action with the values of its flags, by section, and show its result; exit
    on an error.
    """
    general = given.pop(GENERAL, {})
    owner = registry.owner(StageSpec, spec.name)
    with (
        report_failures(owner.distribution if owner else "plant-cli", registry),
        refuse_bytes({**given, GENERAL: general}),
    ):
        request = Request(
            registry=registry,
            run_path=general.get("run", DEFAULT_RUN),
            recipe=general.get("recipe"),
            sets=general.get("set", ()),
            flags=given,
            reporter=ConsoleReporter(
                quiet=general.get("quiet", False), verbose=general.get("verbose", False)
            ),
            force=general.get("force", False),
            resume=general.get("resume", False),
            grow=general.get("continue", False),
            speak=partial(print, end="", file=sys.stdout, flush=True)
            if general.get("format") == "jsonl"
            else None,
        )
        tag = general.get("tag")
        if general.get("print_config"):
            sys.stdout.write(print_config(request, spec.name, tag))
            return
        result = run_together(spec, request, tag)
        if result is None:
            return
        if "run" in general and "PLANT_RUN" not in os.environ:
            result = replace(result, next_step=_in_run(result.next_step, general["run"]))
        try:
            show_result(result, general.get("format", "table"), quiet=general.get("quiet", False))
        except BrokenPipeError:
            if not (spec.writes or spec.parallel):
                raise
            silence(sys.stdout)  # the work is done and recorded
        except OSError as error:
            silence(sys.stdout)
            if not spec.writes:
                raise
            raise ResourceError(
                "the stage is done and recorded, but its result could not be shown: "
                f"{error.strerror}",
                where="stdout",
                expected="a terminal, a pipe, or a file with space left",
                todo="do not repeat the stage: all of its files are in the folder of `plant "
                f"{spec.name}` in {request.run_path}",
            ) from error
        if result.failure is not None:
            raise result.failure


def _in_run(next_step: str | None, run: Path) -> str | None:
    """The next step, with the folder of the run."""
    if next_step is None or not next_step.startswith("plant ") or "--run" in next_step:
        return next_step
    folder = shlex.quote(str(run))
    return f"{next_step}   (with --run {folder}, or once: export PLANT_RUN={folder})"
