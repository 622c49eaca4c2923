"""Experiments, and whether they hold: `plant ablate`, what each part of a setup adds; `plant
sweep`, which values are best on validation; `plant diff`, what changes from one system to another;
`plant verify`, whether files and figures of a run are what was written.

`trials` runs trainings with values to try, for `ablate` and `sweep`; `label_changes` compares two
systems document by document; `recomputing` makes figures again from predictions.

It needs the extras `sweep` (optuna) for ranges of values and `report` (matplotlib) for drawings,
which `plant_report.drawing` makes. Of the core it uses recipes and run folders (`runs`), and
predictions and comparisons (`evaluation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plant_cli.api import Options, SplitName, StageSpec, hookimpl, option
from plant_cli.api.options import everyday
from plant_cli.runs.recipe_options import RunOptions

look = partial(StageSpec, group="Look", looks=True)
whole_recipe = partial(StageSpec, sections=("data", "model", "machine"), writes=False, locks=True)


class AblateOptions(RunOptions):
    """Options of `plant ablate`."""

    change: list[str] = everyday(
        [],
        "A further change, with its name: 'one head: model.decoder.heads=1, finetune.epochs=5' "
        "(repeatable).",
    )


class SweepOptions(Options):
    """Options of `plant sweep`."""

    recipe: str = option(help="The recipe, a file or the name of a shipped one.", argument=True)
    over: list[str] = everyday(
        ...,
        "What to try: finetune.rate_head=1e-4,1e-3 (each) or =1e-5..1e-2 (between); repeatable.",
        min_length=1,
    )
    trials: int | None = everyday(
        None,
        "Trainings at most: values follow from what earlier ones reached. Default: all "
        "combinations.",
        ge=1,
    )
    metric: str = everyday("MAP", "The figure of validation that should be high.", short="-m")
    hours: float | None = everyday(None, "Begin no trial after this time.", gt=0)
    jobs: int = everyday(
        1,
        "Trials at work at once: each in a process, with its share of the cores; one card serves "
        "several.",
        ge=1,
    )
    figures: str | None = everyday(
        None, "Folder for drawings: the figure over each number that was tried, as SVG and PNG."
    )


class DiffOptions(Options):
    """Options of `diff`."""

    systems: list[str] = option(
        ...,
        "Systems A and B to compare: a folder in the run (finetune-baseline), a tag, the folder "
        "of another run, or predictions. "
        "Harm is what B does worse than A.",
        argument=True,
        path=True,
        min_length=2,
        max_length=2,
    )
    split: SplitName = everyday("test", "The split to compare on.")
    k: int | None = option(
        None, "Compare the k highest-scored labels, not those that reach the threshold.", ge=1
    )
    threshold: float | None = option(None, "Threshold of predictions files (default 0.5).")
    label_order: str | None = option(
        None, "For files that number their labels: a file with a label a line, from 0.", path=True
    )
    limit: int = everyday(10, "Documents and labels shown at either end; the files hold all.", ge=1)


class VerifyOptions(Options):
    """Options of `verify`."""

    folder: str | None = everyday(
        None, "The run folder (default: that of --run).", argument=True, path=True
    )
    recompute: bool = everyday(
        True, "Compute all figures again from the predictions; compare them with the recorded ones."
    )


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Studies, differences and verification."""
    return _SPECS


_SPECS = (
    whole_recipe(
        name="ablate",
        group="Train by hand",
        summary="What each part of a setup adds: train it without one part after the other, "
        "and "
        "compare all in one table.",
        options=AblateOptions,
        run="plant_study.ablate:run",
        help="A change is a name and values of the recipe. Stages that it does not concern are "
        "shared; what is done is skipped.",
        parallel=True,
        takes=("force", "resume"),
        order=9,
        examples=(
            "plant ablate paper/ablations --path data.parquet --seeds 3",
            "plant ablate trained --change 'uniform attention: finetune.init=random' --path "
            "data.parquet",
        ),
    ),
    whole_recipe(
        name="sweep",
        group="Train by hand",
        summary="Try values of a recipe and find the best ones on validation.",
        options=SweepOptions,
        run="plant_study.sweep:run",
        help="What trials share is computed once, what is done is skipped, test is never read; "
        "best.yaml in the run has the best values.",
        takes=("force", "resume"),
        order=10,
        examples=(
            "plant sweep trained --over finetune.rate_head=1e-4,3e-4,1e-3 --path data.parquet",
            "plant sweep trained --over finetune.rate_head=1e-5..1e-2 --over "
            "model.decoder.heads=1,4,8 --trials 20 --hours 2",
        ),
    ),
    look(
        name="diff",
        summary="What changed from one system to another: documents and labels, the greatest "
        "harm first.",
        options=DiffOptions,
        run="plant_study.diff:run",
        help="Write documents.parquet, labels.tsv and diff.json, and show where harm and gain "
        "are greatest.",
        sections=("machine",),
        figures=("diff.json",),
        examples=(
            "plant diff finetune-baseline finetune",
            "plant diff old-run finetune --k 5 --limit 20",
        ),
    ),
    StageSpec(
        name="verify",
        summary="Compare the files of a run with their recorded hashes; compute its figures "
        "again from the predictions.",
        options=VerifyOptions,
        run="plant_study.verify:verify",
        help="Hash every recorded file of a run, and compute its evaluations again; the exit "
        "code is 4 unless all is as it was written.",
        writes=False,
        examples=(
            "plant verify",
            "plant verify copied-run --no-recompute",
            "plant verify --format json",
        ),
    ),
)
