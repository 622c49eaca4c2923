"""The options of commands that run a whole recipe."""

from __future__ import annotations

from plant_cli.api import Options, option
from plant_cli.api.options import everyday


class RunOptions(Options):
    """Which recipe, and with how many seeds."""

    recipe: str = option(help="The recipe, a file or the name of a shipped one.", argument=True)
    seeds: int = everyday(
        1,
        "Train with this many seeds, from the recipe's on; stages that do not depend on the seed "
        "run once.",
        ge=1,
    )
    jobs: int = everyday(
        1,
        "Stages at work at once: each in a process, with its share of the cores; one card serves "
        "several.",
        ge=1,
    )
    smoke: bool = everyday(
        False,
        "Only try it out: 16 documents of each split, and two steps of each training; figures "
        "mean nothing.",
    )
