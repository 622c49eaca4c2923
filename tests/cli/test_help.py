"""Help in two levels: the short one fits on a screen and begins with examples, and no option is
lost between the two.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest

from plant_cli.api import NoOptions, Options, Result, StageSpec, option
from plant_cli.cli.flags import first_clause, stage_flags
from plant_cli.cli.help import BY_RUN, everyday_flags, sort_by_work, takes_run_corpus
from plant_cli.main import build
from plant_cli.registry import Registry, installed

CORE = {spec.name: spec for spec in installed().specs(StageSpec)}
LINES, COLUMNS = 40, 80


class DigOptions(Options):
    hole: str = option(help="Which hole.", argument=True)
    depth: int = option(3, "How deep, in metres: from the grass down.", level="everyday", ge=1)
    tool: Literal["spade", "fork"] = option("spade", "What to dig with.")
    wet: bool = option(True, "Water the soil first.", level="everyday")
    extra: dict[str, int] = option({}, "Anything else.")


class FillOptions(Options):
    depth: float | None = option(None, "How deep the hole is. Default: it is measured.")


def _run(context: Any, options: Any) -> Result:
    return Result()


SPECS = (
    StageSpec(
        name="dig",
        summary="Dig a hole: a deep one.",
        options=DigOptions,
        run=_run,
        help="Turn the soil.",
        sections=("data",),
        feeds=("fill",),
        group="Look",
    ),
    StageSpec(
        name="fill",
        summary="Fill a hole.",
        options=FillOptions,
        run=_run,
        sections=("data",),
        group="Look",
        source="A book",
    ),
    StageSpec(name="dig show", summary="Show a hole.", run=_run, writes=False, group="Look"),
    StageSpec(
        name="ask",
        summary="Is it deep? Say so.",
        options=NoOptions,
        run=_run,
        writes=False,
        needs_run=False,
    ),
    StageSpec(
        name="soil make",
        summary="Make soil.",
        run=_run,
        writes=False,
        needs_run=False,
        group="Earth",
    ),
    StageSpec(
        name="soil sift",
        summary="Sift soil.",
        run=_run,
        writes=False,
        needs_run=False,
        group="Earth",
    ),
)


@pytest.fixture
def shown(
    garden: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """What a command line of the invented garden writes to stdout: `shown("dig", "-h")`; of the
    core's with `registry=installed()`.
    """

    def show(*arguments: str, registry: Registry = garden, columns: int = COLUMNS) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        build(registry).main(list(arguments), prog_name="plant", standalone_mode=False)
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("name", CORE)
def test_the_short_help_fits_on_a_screen_and_no_option_is_lost(shown: Any, name: str) -> None:
    short, full = (
        shown(*name.split(), flag, registry=installed()) for flag in ("-h", "--help-all")
    )
    assert (
        sum(1 + (len(line) - 1) // COLUMNS for line in short.splitlines() if line)
        + short.count("\n\n")
        < LINES
    )
    headings = re.findall(r"^(\w.*):$", short, re.MULTILINE)
    assert headings[0] == "Examples"
    assert 1 <= len(re.findall(rf"^  plant {name}", short, re.MULTILINE)) <= 3
    assert " …" not in short, "the first clause of an everyday option is too long for a line"
    flags = stage_flags(CORE[name], installed())
    everyday = everyday_flags(CORE[name], installed())
    rest = int(found[1]) if (found := re.search(r"^(\d+) more: plant", short, re.MULTILINE)) else 0
    assert len(everyday) + rest == len(flags)
    assert all(f"  {flag.shown} " in short for flag in everyday)
    assert all(f"  {flag.shown}" in full for flag in flags)


def test_the_short_help_gives_each_everyday_option_a_line(shown: Any) -> None:
    assert shown("dig", "-h") == shown("dig", "--help") == shown("help", "dig")
    assert shown("dig", "-h").splitlines() == [
        "Usage: plant dig [OPTIONS] [HOLE]",
        "",
        "Dig a hole: a deep one.",
        "",
        "Examples:",
        "  plant dig HOLE",
        "",
        "Options:",
        "  HOLE                    Which hole",
        "  --depth N               How deep, in metres [3]",
        "  --[no-]wet              Water the soil first [yes]",
        "  --path PATH             The corpus, a file or a folder",
        "  --text-column COLUMN    Column of the text [text]",
        "  --labels-column COLUMN  Column of the list of labels [labels]",
        "  --id-column COLUMN      Column of the document id",
        "  --vocabulary PATH       Titles and other names of the labels",
        "  --run DIR               The run folder [plant-run]",
        "  --tag TAG               Name of a variant",
        "  --set KEY=VALUE         Set a recipe value, such as finetune.epochs=3",
        "  -f, --force             Replace what is there already",
        "  --resume                Continue what was interrupted or failed",
        "",
        "Actions:",
        "  dig show  Show a hole",
        "",
        "35 more: plant dig --help-all; any of them by --set, or in a recipe",
    ]


def test_a_stage_that_others_feed_takes_the_corpus_of_the_run(shown: Any) -> None:
    text = shown("fill", "-h")
    assert f"\n{BY_RUN}\n" in text
    assert "--text-column" not in text
    assert "--text-column COLUMN" in shown("fill", "--help-all")
    later = {name for name in CORE if takes_run_corpus(CORE[name], installed())}
    assert later >= {"pretrain-attn", "finetune", "predict", "eval", "thresholds"}
    assert "mig" not in later


def test_all_options_are_listed_by_section_with_all_that_is_said_of_them(shown: Any) -> None:
    text = shown("dig", "--help-all", columns=110)
    assert re.findall(r"^(\w.*):$", text, re.MULTILINE) == [
        "Examples",
        "Arguments",
        "Options",
        "Corpus",
        "Run and output",
        "Actions",
    ]
    assert "  --depth N          How deep, in metres: from the grass down. [default: 3]\n" in text
    assert "Turn the soil." in text
    assert "--extra" not in text  # a mapping is reached with --set
    assert "Source: A book." in shown("fill", "--help-all")


@pytest.mark.parametrize(("width", "longest"), [(60, 60), (80, 80), (200, 110)])
def test_lines_fit_the_terminal(shown: Any, width: int, longest: int) -> None:
    for flag in ("-h", "--help-all"):
        lines = shown("finetune", flag, registry=installed(), columns=width).splitlines()
        assert (
            max(len(line) for line in lines if not line.startswith("  plant ")) <= longest
        )  # an example is one line to copy


def test_commands_are_listed_by_task_with_a_line_each(shown: Any) -> None:
    lines = [
        line for line in shown("-h").splitlines() if line.startswith("  ") or line.endswith(":")
    ]
    assert lines[2:11] == [
        "Look:",
        "  dig   Dig a hole",
        "  fill  Fill a hole",
        "Tools:",
        "  ask   Is it deep?",
        "  help  Explain a command, or one option: plant help finetune.epochs",
        "Earth:",
        "  soil  make, sift",
        "Options:",
    ]
    assert "  make  Make soil\n" in shown("soil", "-h")
    assert shown("help") == shown("-h")


def test_the_core_is_listed_by_task_in_the_order_of_work(shown: Any) -> None:
    assert " …" not in shown("-h", registry=installed())
    by_hand = [
        spec.name
        for spec in sort_by_work(CORE.values())
        if spec.group == "Train by hand" and " " not in spec.name
    ]
    places = [
        by_hand.index(name) for name in ("mig", "pretrain-attn", "finetune", "predict", "run")
    ]
    assert places == sorted(places)
    assert {"quickstart", "suggest"} <= {
        spec.name for spec in CORE.values() if spec.group == "Begin"
    }


def test_one_option_is_explained(shown: Any) -> None:
    assert shown("help", "dig.depth").splitlines() == [
        "dig.depth:",
        "  what        How deep, in metres: from the grass down.",
        "  flag        --depth N",
        "  of          plant dig",
        "  recipe key  dig.depth (also by --set dig.depth=…)",
        "  value       whole number >= 1",
        "  default     3",
    ]
    both = shown("help", "--depth")
    assert both.index("dig.depth:") < both.index("fill.depth:")
    assert "default     none" not in both  # its text says what the default is
    assert "  of          plant dig, plant fill\n" in shown("help", "data.text-column")
    assert shown("help", "run").startswith("--run DIR:\n")


def test_what_is_neither_a_command_nor_an_option_gets_near_names(shown: Any) -> None:
    with pytest.raises(Exception, match=r"no command and no option 'dig\.dept'") as caught:
        shown("help", "dig.dept")
    assert "dig.depth" in caught.value.expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("Words kept, at most.", "Words kept, at most"),
        ("Is it real? Yes.", "Is it real?"),
        ("What starts: a or b", "What starts"),
        ("The id (default: a row).", "The id"),
        ("Such as 'P@5>=0.6'; more", "Such as 'P@5>=0.6'"),
    ],
)
def test_the_first_clause(text: str, clause: str) -> None:
    assert first_clause(text) == clause
