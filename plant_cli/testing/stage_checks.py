"""Checks of stages: a name that fits a command, sections that exist, examples that run it, and
no terminal library.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter
from typing import Any

from plant_cli.api import StageSpec
from plant_cli.api.functions import Named
from plant_cli.api.options import SHARED_SECTIONS, declared
from plant_cli.testing.checklist import check

TERMINAL = ("typer", "rich")


@check(StageSpec)
def name_fits_a_command(spec: StageSpec) -> None:
    """One word; an action may have two. A stage with a folder has one, for its folder's name."""
    words = spec.name.split(" ")
    assert len(words) <= (1 if spec.writes else 2), f"'{spec.name}' has {len(words)} words"


@check(StageSpec)
def sections_exist(spec: StageSpec) -> None:
    """The shared sections are those of a recipe, each named once."""
    assert len(set(spec.sections)) == len(spec.sections), f"'{spec.name}' names a section twice"
    assert set(spec.sections) <= set(SHARED_SECTIONS), f"'{spec.name}' names unknown sections"


@check(StageSpec)
def short_flags_are_unambiguous(spec: StageSpec) -> None:
    """No two options share a one-letter flag. Of two equal long flags the stage's own wins over
    that of a shared section.
    """
    models = [spec.options, *(SHARED_SECTIONS[name] for name in spec.sections)]
    shorts = Counter(
        short
        for model in models
        for info in model.model_fields.values()
        if (short := declared(info).get("short"))
    )
    twice = [flag for flag, times in shorts.items() if times > 1]
    assert not twice, f"flags of '{spec.name}' given to two options: {', '.join(twice)}"


@check(StageSpec)
def examples_run_it(spec: StageSpec) -> None:
    """An example is a whole command line of this stage."""
    wrong = [example for example in spec.examples if not example.startswith(f"plant {spec.name}")]
    assert not wrong, f"examples of '{spec.name}' that run something else: {wrong}"


@check(StageSpec)
def run_takes_context_and_options(spec: StageSpec) -> None:
    """`run(context, options)` can be called from Python."""
    function = _function(spec)
    run = function.load() if isinstance(function, Named) else function
    inspect.signature(run).bind("context", "options")


@check(StageSpec)
def needs_no_terminal(spec: StageSpec) -> None:
    """The module that holds `run` is imported without Typer or rich."""
    function = _function(spec)
    module = function.module if isinstance(function, Named) else function.__module__
    code = f"import sys; import {module}; print(*[m for m in {TERMINAL!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{module} cannot be imported by itself: {done.stderr.strip().splitlines()[-1]}"
    )
    assert not done.stdout.split(), f"{module} imports {done.stdout.strip()}"


def _function(spec: StageSpec) -> Any:
    """The function `run` as the plugin gave it."""
    return vars(spec)["run"]
