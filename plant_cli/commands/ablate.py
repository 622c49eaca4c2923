"""`plant ablate RECIPE`: what each part of a setup adds, in one table of the setup and its named changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plant_cli.api import Result, StageContext, UsageError
from plant_cli.commands.command_options import AblateOptions
from plant_cli.commands.run import make_request, report_recipe
from plant_cli.data.files import read_json
from plant_cli.evaluation.comparison import SIGNIFICANCE, make_overview
from plant_cli.runs.ablation import NAMED_CHANGES
from plant_cli.runs.recipes import load_recipe

_BETWEEN = re.compile(r",(?=\s*[\w-]+\.[\w.-]+=)")  # two values; a list has commas, too


def run(context: StageContext, options: AblateOptions) -> Result:
    """Run the recipe with all its changes, skip what is done, and show all systems in one table."""
    changes = [one for text in options.change for one in _read_change(text)]
    if not changes and NAMED_CHANGES not in load_recipe(options.recipe).values:
        raise UsageError(
            f"the recipe '{options.recipe}' names no changes",
            where=f"plant ablate {options.recipe}",
            expected=f"a section '{NAMED_CHANGES}' in it, or --change",
            todo="name one: --change 'uniform attention: finetune.init=random'",
        )
    done = report_recipe(context.runner, make_request(context.request, options, changes))
    folder = next(name for name in reversed(done.data) if name.startswith("significance"))
    compared = read_json(context.run_path / folder / SIGNIFICANCE, "the comparison")
    given = (compared[key] for key in ("comparisons", "names", "notes"))
    table = make_overview(*given, paper=False, spreads=compared.get("spreads", ()))
    return Result(
        tables=[table, done.tables[-1]],
        data={"comparison": compared, "steps": done.data},
        summary=done.summary,
    )


def _read_change(text: str) -> Iterator[str]:
    """The `--set` texts of a change that is written as `name: section.key=value, section.key=value`."""
    name, _, values = text.partition(":")
    if not values.strip() or "." in name or "=" in name:
        raise UsageError(
            f"'{text}' is no change",
            where="--change",
            expected="a name without a point or `=`, a colon, and values: 'one head: model.decoder.heads=1'",
            todo="write it like that",
        )
    yield from (
        f"{NAMED_CHANGES}.{name.strip()}.{value.strip()}" for value in _BETWEEN.split(values)
    )
