"""Flags follow from options models: their types, what has none, and what the user really gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from plant_cli.api import Choice, Options, RecipeError, Result, StageSpec, choice, option
from plant_cli.cli.flags import GENERAL, flag_type, given_values, stage_flags
from plant_cli.registry import GENERAL_FLAGS, GENERAL_LETTERS, installed


class Cooking(Options):
    """What a made-up stage takes."""

    path: str | None = option(None, "What is cooked.", argument=True)
    minutes: int = option(5, "How long.", short="-m", ge=1)
    lid: bool | None = option(None, "Whether there is a lid.")
    spices: list[str] = option([], "What goes in (repeatable).")
    nested: dict[str, int] = option({}, "Nothing for a command line.")
    by_name: dict[str, dict[str, Any]] = option({}, "Options of several components.")
    loss: Choice = choice("loss", "bce", "The loss.")


SPEC = StageSpec(
    name="cook",
    summary="Cooks.",
    options=Cooking,
    run=lambda context, options: Result(),
    sections=("data", "machine"),
)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, int),
        (float | None, float),
        (list[str], list[str]),
        (tuple[int, ...], list[int]),
        (Literal["a", "b"], Literal["a", "b"]),
        (Literal[1, 2], int),
        (int | str, str),
        (Choice, str),
        (Path, Path),
        (dict[str, int], None),
        (dict[str, dict[str, Any]], list[str]),
        (list[dict[str, int]], None),
    ],
    ids=str,
)
def test_the_type_of_a_flag(annotation: Any, expected: Any) -> None:
    assert flag_type(annotation) == expected


def test_a_stage_has_its_own_flags_its_sections_and_the_general_ones_each_name_once() -> None:
    flags = stage_flags(SPEC, installed())
    names = [flag.field for flag in flags]
    assert len(names) == len(set(names))
    assert {
        "minutes",
        "lid",
        "spices",
        "loss",
        "text_column",
        "seed",
        "run",
        "tag",
        "force",
    } <= set(names)
    assert "nested" not in names
    owner = {flag.field: flag.section for flag in flags}
    assert (owner["path"], owner["minutes"], owner["text_column"], owner["tag"]) == (
        "cook",
        "cook",
        "data",
        GENERAL,
    )
    assert [flag.field for flag in flags if flag.positional] == ["path"]


def test_an_action_that_writes_nothing_has_no_flags_for_writing() -> None:
    action = StageSpec(
        name="look",
        summary="Looks.",
        run=lambda context, options: Result(),
        writes=False,
        needs_run=False,
    )
    assert {flag.field for flag in stage_flags(action, installed())} == {
        "format",
        "quiet",
        "verbose",
    }


def test_the_help_of_a_component_lists_the_registered_ones() -> None:
    flag = next(flag for flag in stage_flags(SPEC, installed()) if flag.field == "loss")
    assert "focal-hnm" in flag.choices
    assert flag.default == "bce"


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("path", "PATH"),
        ("minutes", "-m, --minutes N"),
        ("lid", "--[no-]lid"),
        ("spices", "--spices TEXT"),
        ("by_name", "--by-name NAME.KEY=VALUE"),
        ("loss", "--loss NAME"),
        ("duplicates", "--duplicates keep|drop"),
        ("titles", "--titles PATH"),
        ("strict", "--strict"),
        ("quiet", "-q, --quiet"),
    ],
)
def test_a_flag_as_help_shows_it(field: str, shown: str) -> None:
    assert (
        next(flag for flag in stage_flags(SPEC, installed()) if flag.field == field).shown == shown
    )


def test_only_what_the_user_gave_is_handed_on_and_no_is_an_answer() -> None:
    flags = stage_flags(SPEC, installed())
    given = {"cook__minutes": 0, "cook__lid": False, "cook__spices": [], "machine__seed": 3}
    values = {flag.parameter.name: None for flag in flags} | given
    assert given_values(flags, values) == {
        "cook": {"minutes": 0, "lid": False},
        "machine": {"seed": 3},
    }


def test_a_mapping_is_given_name_by_name() -> None:
    flags = stage_flags(SPEC, installed())
    texts = {"cook__by_name": ["salt.grams=3", "salt.kind=[sea, rock]", "oil.grams=0.5"]}
    assert given_values(flags, texts) == {
        "cook": {"by_name": {"salt": {"grams": 3, "kind": ["sea", "rock"]}, "oil": {"grams": 0.5}}}
    }
    with pytest.raises(RecipeError, match="'--by-name salt=3' sets nothing") as caught:
        given_values(flags, {"cook__by_name": ["salt=3"]})
    assert "--by-name name.key=3" in caught.value.todo


class NamesOptions(Options):
    systems: list[str] = option([], "Systems.", argument=True)


def test_an_argument_of_the_stage_makes_a_flag_of_that_of_a_shared_section() -> None:
    found = {
        names: {flag.field: flag.positional for flag in stage_flags(spec, installed())}
        for names, options in ((True, NamesOptions), (False, Options))
        for spec in [
            StageSpec(
                name="s",
                summary="S.",
                options=options,
                run=lambda context, options: Result(),
                sections=("data",),
            )
        ]
    }
    assert (found[True]["systems"], found[True]["path"]) == (True, False)
    assert found[False]["path"] is True


def test_what_every_command_has_is_no_name_for_an_option() -> None:
    """The registry refuses stages whose options are called so; `recipe` is an
    option of some actions.
    """
    general = [flag for flag in stage_flags(SPEC, installed()) if flag.section == GENERAL]
    names = [
        name.strip(",") for flag in general for name in flag.shown.split() if name.startswith("-")
    ]
    assert {flag.field for flag in general} - {"recipe"} | {"help", "help_all"} == {*GENERAL_FLAGS}
    assert {name for name in names if not name.startswith("--")} | {"-h"} == {*GENERAL_LETTERS}


class FartherOptions(NamesOptions):
    depth: int = option(1, "How deep.")
    target: str | None = option(None, "Where to.", argument=True)


def test_inherited_arguments_stay_first_and_inherited_options_follow_those_of_the_stage() -> None:
    class NearerOptions(FartherOptions):
        file: str | None = option(None, "A file.", argument=True)
        width: int = option(1, "How wide.")

    spec = StageSpec(
        name="s", summary="S.", options=NearerOptions, run=lambda context, options: Result()
    )
    names = [flag.field for flag in stage_flags(spec, installed()) if flag.section == "s"]
    assert names == ["systems", "target", "file", "width", "depth"]
    copy = installed().find(StageSpec, "recipe copy")
    assert [flag.shown for flag in stage_flags(copy, installed()) if flag.positional] == [
        "RECIPE",
        "FILE",
    ]
