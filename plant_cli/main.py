"""The `plant` command: a tree of the registered stages and actions."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated

import typer
from typer.main import get_command

import plant_cli
from plant_cli.cli.failures import refuse_exits, report_failures
from plant_cli.cli.streams import keep_results_apart, reopen_closed, tolerate_lost_reader
from plant_cli.cli.tree import CONTEXT, StageGroup
from plant_cli.registry import Registry, installed
from plant_cli.runs.machine import limit_spinning

SUMMARY = "Extreme multi-label text classification with planted attention, and honest statistics."
HINT = (
    "`plant quickstart` shows everything on a small corpus in minutes; `plant COMMAND -h` "
    "explains one command."
)
# that are made before Python looks for cycles: with its 700 it looks through all modules several
# times
YOUNG_OBJECTS = 200_000


def build(registry: Registry) -> StageGroup:
    """The command tree over a registry."""
    shell = typer.Typer(name="plant", rich_markup_mode=None, pretty_exceptions_enable=False)
    shell.callback()(_root)
    frame = get_command(shell)  # `--version` and the completion flags, as Typer makes them
    return StageGroup(
        registry=registry,
        name="plant",
        help=SUMMARY,
        epilog=HINT,
        params=frame.params,
        callback=frame.callback,
        no_args_is_help=True,
        context_settings=dict(CONTEXT),
        rich_markup_mode=None,
    )


def main() -> None:
    """Entry point of the `plant` script and of `python -m plant_cli`."""
    gc.set_threshold(YOUNG_OBJECTS)
    atexit.register(_end_without_search)
    limit_spinning()  # before a command loads torch
    reopen_closed()
    keep_results_apart()
    sys.stderr = tolerate_lost_reader(sys.stderr)
    refuse_exits()
    with report_failures():
        build(installed())(prog_name="plant")


def _end_without_search() -> None:
    """Let Python not look through all objects once more as the process ends; Triton would call
    those that are left a leak.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"plant {plant_cli.__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    return None
