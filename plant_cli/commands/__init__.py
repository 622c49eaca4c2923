"""The core's own stages and actions: how each is called, which options it takes, and the
function that runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plant_cli.api import StageSpec, hookimpl
from plant_cli.commands import command_options as options
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.runs.recipe_options import RunOptions
from plant_cli.training.training_options import FinetuneOptions

tool = partial(StageSpec, writes=False, needs_run=False)
look = partial(StageSpec, group="Look", looks=True)
by_hand = partial(StageSpec, group="Train by hand")
whole_recipe = partial(StageSpec, sections=("data", "model", "machine"), writes=False, locks=True)
of_a_model = partial(StageSpec, sections=("machine",), writes=False)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The stages and actions of the core."""
    return SPECS


SPECS = (
    StageSpec(
        name="clean",
        summary="Remove from a run what can be made again: caches, checkpoints of finished "
        "stages, failed attempts.",
        options=options.CleanOptions,
        run="plant_cli.commands.clean:clean_run",
        help="Trained models, predictions, figures and what `--resume` needs stay.",
        writes=False,
        locks=True,
        examples=("plant clean --dry-run", "plant clean --run old-run"),
    ),
    tool(
        name="doctor",
        summary="Say what will work on this machine: devices, precision, packages, plugins, disk "
        "and memory.",
        run="plant_cli.commands.doctor:examine_machine",
        examples=("plant doctor", "plant doctor --format json"),
    ),
    look(
        name="eval",
        summary="Every metric with intervals, overall and for rare labels; our predictions or "
        "another tool's.",
        options=options.EvalOptions,
        run="plant_cli.commands.eval:run",
        check="plant_cli.commands.requirements:require_corpus",
        sections=("data", "machine"),
        feeds=("significance", "report"),
        seeded=True,
        system="measures",
        judges=True,
        figures=("metrics.json", "intervals.json"),
        order=5,
        examples=(
            "plant eval --bootstrap 1000",
            "plant eval -m P@5 -m 'R@10[1-5]'",
            "plant eval --tag omikuji --predictions omikuji.parquet data.parquet",
        ),
    ),
    by_hand(
        name="finetune",
        summary="Train the network to assign labels (stage 2), from planted attention or, for "
        "comparison, from uniform attention.",
        options=FinetuneOptions,
        source="PLANT, stage 2",
        run="plant_cli.commands.finetune:run",
        check="plant_cli.commands.requirements:require_planted",
        help="The best epoch on validation is kept, and the decision threshold is tuned there; "
        "--no-network fits scorers alone.",
        sections=("data", "model", "machine"),
        feeds=(
            "thresholds",
            "predict",
            "eval",
            "significance",
            "diff",
            "report",
            "export",
            "suggest",
        ),
        parallel=True,
        reads={"mig": "relevance", "pretrain-attn": "planted"},
        seeded=True,
        system="trains",
        order=3,
        examples=(
            "plant finetune",
            "plant finetune --no-network --scorers words,titles data.parquet",
            "plant finetune --init random --tag baseline",
        ),
    ),
    by_hand(
        name="mig",
        summary="Find the words that indicate each label (exact mutual information gain, "
        "training documents only).",
        options=MigOptions,
        source="PLANT, equation 1",
        run="plant_cli.commands.mig:run",
        help="Count, score and keep the best words of every label; write `mig.parquet`, "
        "`words.parquet` and `labels.parquet`.",
        sections=("data", "machine"),
        feeds=("pretrain-attn", "finetune"),
        order=1,
        examples=(
            "plant mig --k 1000 data.parquet",
            "plant mig corpus.csv --text-column abstract --labels-column subjects",
            "plant mig data.parquet --shard 2/4 --run shards/2",
        ),
    ),
    by_hand(
        name="mig show",
        summary="Show the words that indicate a label, with values and counts.",
        options=options.MigShowOptions,
        run="plant_cli.commands.mig_words:show_words",
        help="The kept words of a label with value, relevance and the counts they come from, "
        "edits applied.",
        writes=False,
        examples=("plant mig show E11.9 --limit 50",),
    ),
    by_hand(
        name="mig edit",
        summary="Deny or allow words of a label before training.",
        options=options.EditOptions,
        run="plant_cli.commands.mig_words:edit",
        help="The same command twice changes nothing more.",
        writes=False,
        locks=True,
        examples=("plant mig edit E11.9 --deny patient --allow insulin=0.8",),
    ),
    tool(
        name="plugins",
        summary="List the installed plugins and their components; broken ones with their error.",
        run="plant_cli.commands.plugins:list_plugins",
        examples=("plant plugins", "plant plugins --format json"),
    ),
    tool(
        name="plugins new",
        summary="Write a package with one working component.",
        options=options.PluginNewOptions,
        run="plant_cli.commands.plugins_new:new_plugin",
        takes=("force",),
        examples=(
            "plant plugins new scorer my-scorer",
            "plant plugins new signal dice -O plugins/dice",
        ),
    ),
    tool(
        name="plugins show",
        summary="Explain a component: its options, its source and who brings it.",
        options=options.PluginShowOptions,
        run="plant_cli.commands.plugins:show_component",
        examples=("plant plugins show minilm",),
    ),
    by_hand(
        name="predict",
        summary="Score a split with the trained network; label names and scores, best first.",
        options=options.PredictOptions,
        run="plant_cli.commands.predict:run",
        check="plant_cli.commands.requirements:require_trained",
        sections=("data", "machine"),
        feeds=("eval", "significance", "diff", "report"),
        parallel=True,
        seeded=True,
        system="scores",
        order=4,
        examples=(
            "plant predict",
            "plant predict --auc --auc-disk 5GB",
            "plant predict finetune finetune-baseline --average --tag ensemble",
        ),
    ),
    of_a_model(
        name="quickstart",
        group="Begin",
        summary="See everything in minutes: a made-up corpus, a network against scorers alone "
        "and against uniform attention.",
        options=options.QuickstartOptions,
        run="plant_cli.commands.quickstart:run",
        help="Make a corpus, run mig, pretrain-attn, finetune, eval and significance on it, and "
        "show what the network changes.",
        takes=("force", "resume"),
        locks=True,
        order=9,
        examples=("plant quickstart",),
    ),
    tool(
        name="recipe list",
        summary="List the shipped recipes.",
        run="plant_cli.commands.recipe:list_recipes",
        examples=("plant recipe list",),
    ),
    tool(
        name="recipe show",
        summary="Show every value of a recipe and where it comes from.",
        options=options.NameOptions,
        run="plant_cli.commands.recipe:show_recipe",
        examples=("plant recipe show quickstart",),
    ),
    tool(
        name="recipe check",
        summary="Validate a recipe without running it.",
        options=options.NameOptions,
        run="plant_cli.commands.recipe:check_recipe",
        help="It looks at every key, type, component and option of a component.",
        examples=("plant recipe check recipe.yaml",),
    ),
    tool(
        name="recipe copy",
        summary="Copy a shipped recipe to a file to change.",
        options=options.CopyOptions,
        run="plant_cli.commands.recipe:copy",
        examples=("plant recipe copy quickstart recipe.yaml",),
    ),
    whole_recipe(
        name="run",
        group="Train by hand",
        summary="Run all stages of a recipe; skip what has not changed.",
        options=RunOptions,
        run="plant_cli.commands.run:run",
        help="The steps run in order; a finished one is skipped if its options and inputs have "
        "not changed.",
        parallel=True,
        takes=("force", "resume", "continue"),
        order=8,
        examples=(
            "plant run quickstart",
            "plant run recipe.yaml --run my-run --set finetune.epochs=3",
            "plant run recipe.yaml --seeds 5",
        ),
    ),
    look(
        name="significance",
        summary="Is the difference between systems real? Paired bootstrap, approximate "
        "randomisation, Wilcoxon, Holm.",
        options=options.SignificanceOptions,
        run="plant_cli.commands.significance:run",
        help="Test each metric, correct over metrics and systems, and write significance.json; "
        "then check what was required.",
        sections=("machine",),
        feeds=("report",),
        compares=True,
        figures=("significance.json",),
        order=6,
        examples=(
            "plant significance finetune finetune-baseline",
            "plant significance finetune other-tool.parquet --metric P@5",
            "plant significance finetune finetune-baseline --seeds 5 --tag seeds5",
        ),
    ),
    of_a_model(
        name="suggest",
        group="Begin",
        summary="Labels for new texts, by the trained model.",
        options=options.SuggestOptions,
        run="plant_cli.commands.suggest:run",
        check="plant_cli.commands.requirements:require_model",
        help="Nothing is written to the run: suggestions go to the screen or to a file. A "
        "command that was stopped and is repeated goes on "
        "where it was; --force begins anew.",
        opens_model=True,
        takes=("tag", "force", "resume"),
        examples=(
            "plant suggest new.csv -O suggestions.csv",
            "plant suggest --text 'acute bronchitis with cough' --why",
            "plant suggest - --format jsonl",
        ),
    ),
    look(
        name="thresholds",
        looks=False,  # decisions follow from it
        summary="Which labels to assign, review or reject (so that a target is reached on "
        "validation).",
        options=options.ThresholdOptions,
        run="plant_cli.commands.thresholds:run",
        help="Choose both cuts of each label on validation, write thresholds.json and "
        "decisions.json, and show what they lead to.",
        sections=("data", "machine"),
        feeds=("eval", "suggest"),
        seeded=True,
        judges=True,
        figures=("thresholds.json", "decisions.json"),
        order=7,
        examples=(
            "plant thresholds --target precision=0.9",
            "plant thresholds --target precision=0.9 --target recall=0.95 --measure test",
        ),
    ),
    whole_recipe(
        name="train",
        group="Begin",
        summary="A model of your own data by one command: columns found, scorers in a minute, a "
        "network while time is left.",
        options=options.TrainOptions,
        run="plant_cli.commands.train:run",
        help="The steps are those of `plant run recommended`, in the same run. The same command "
        "goes on after a stop.",
        takes=("force", "continue"),
        order=1,
        examples=(
            "plant train catalogue.csv",
            "plant train catalogue.csv --vocabulary subjects.csv --hours 1",
            "plant train catalogue.csv --continue",
        ),
    ),
)
