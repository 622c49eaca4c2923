"""Hints from known names, what others' errors say, and errors that recur."""

import inspect
import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest

from plant_cli.api import (
    UsageError,
    damaged_file,
    exclusive_options,
    first_line,
    missing_column,
    near_names,
    refuse_repeated,
)
from plant_cli.api.errors import naming_command


def test_near_names_are_found_whatever_their_case() -> None:
    assert near_names("case_id", ["CASE_ID", "text"]) == "did you mean 'CASE_ID'?"
    assert near_names("FOO", ["bar", "Foo", "foo"]) == "did you mean 'Foo' or 'foo'?"
    assert (
        near_names("colum", ["A", "a", "Column", "column", "COLUMN", "columns"])
        == "did you mean 'COLUMN' or 'Column' or 'column'?"
    )


def test_without_a_near_name_the_first_few_are_shown() -> None:
    assert (
        near_names("x", [f"name {i:02}" for i in range(13)])
        == f"one of {', '.join(f'name {i:02}' for i in range(12))}, …"
    )
    assert near_names("x", []) == "none are known"


def test_the_first_line_of_what_an_error_says() -> None:
    assert first_line(ValueError("\n one\ntwo")) == "one"
    assert first_line(ValueError("x" * 9_000)) == "x" * 200
    assert first_line(ValueError(" ")) == first_line(ValueError()) == "ValueError"


def test_what_recurs_has_four_parts() -> None:
    errors = [
        damaged_file("the list", "it lacks a key", Path("a.json"), todo="run it again"),
        missing_column("txt", ["text", "labels"], where="a.csv", todo="name it with --text-column"),
        exclusive_options("--one", "--other"),
        exclusive_options("--one", "--other", why="both choose", todo="leave --one out"),
    ]
    assert [
        (error.exit_code, error.what, error.where, error.expected, error.todo) for error in errors
    ] == [
        (
            4,
            "the list is damaged: it lacks a key",
            "a.json",
            "the file as it was written",
            "run it again",
        ),
        (
            4,
            "there is no column 'txt'",
            "a.csv",
            "did you mean 'text'?",
            "name it with --text-column",
        ),
        (2, "--one and --other exclude each other", "", "one of the two", "leave one of them out"),
        (
            2,
            "--one and --other exclude each other: both choose",
            "",
            "one of the two",
            "leave --one out",
        ),
    ]


def test_a_name_that_is_given_twice_is_refused() -> None:
    refuse_repeated(["a", "b"], "system")
    with pytest.raises(UsageError, match="'b' is given twice"):
        refuse_repeated(["a", "b", "b"], "system")


def test_an_error_without_a_place_names_the_command() -> None:
    for where, shown in (("", "plant eval"), ("a.csv", "a.csv")):
        with pytest.raises(UsageError) as caught, naming_command("plant eval"):
            raise UsageError("no", where=where, expected="yes", todo="again")
        assert caught.value.where == shown


def find_errors() -> dict[str, str]:
    """The module of every error of the project, by its name."""
    root = Path(__file__).parents[2]
    bases = {
        (match[1], match[2]): path
        for folder in ("plant_cli", "plugins")
        for path in (root / folder).rglob("*.py")
        for match in re.finditer(r"^class (\w+)\((\w+)\)", path.read_text("utf-8"), re.MULTILINE)
    }
    errors, found = dict[str, str](), {"PlantError": "plant_cli.api.errors"}
    while found:
        errors |= found
        found = {
            name: ".".join(path.relative_to(root).with_suffix("").parts).removeprefix("plugins.")
            for (name, base), path in bases.items()
            if base in found
        }
    return errors


ERRORS = find_errors()
VALUES = {"str": "a", "int": 5, "Mapping": {"a": ["b"]}}  # by the beginning of an annotation


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_reaches_another_process_as_it_is(name: str) -> None:
    kind = getattr(import_module(ERRORS[name]), name)
    given = {
        one.name: next(value for start, value in VALUES.items() if one.annotation.startswith(start))
        for one in inspect.signature(kind).parameters.values()
    }
    error = kind(**given)
    error.where = "elsewhere"
    error.add_note("and more")
    reached = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(reached) is kind
    assert (str(reached), vars(reached)) == (str(error), vars(error))
    assert (reached.args, reached.exit_code) == (error.args, kind.exit_code)


def test_the_errors_of_the_project_are_found() -> None:
    assert {"ScorerError", "ColumnQuestion", "Refusal", "Interrupted"} <= set(ERRORS)
