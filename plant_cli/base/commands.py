"""Command lines that messages tell the user to type."""

from __future__ import annotations

import shlex
from pathlib import Path

from plant_cli.api.request import DEFAULT_RUN


def command_for(stage: str, tag: str | None, run_path: Path) -> str:
    """The command line that runs a stage in a run."""
    run = "" if run_path == DEFAULT_RUN else f" --run {shlex.quote(str(run_path))}"
    return f"plant {stage}{run}" + (f" --tag {tag}" if tag else "")
