"""The command tree over a registry of invented stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from plant_cli.api import Choice, NoOptions, Options, PluginError, Result, StageSpec, choice, option
from plant_cli.cli import execution
from plant_cli.cli.failures import report_failures
from plant_cli.main import build
from plant_cli.registry import PluginRecord, Registry, installed
from tests.cli.conftest import make_plugin


class DigOptions(Options):
    depth: int = option(3, "How deep, in metres.", level="everyday", ge=1, was="metres")
    tool: Literal["spade", "fork"] = option("spade", "What to dig with.")
    wet: bool = option(
        True, "Water the soil first: with rain.", level="everyday", was="water_first"
    )
    near: list[str] = option([], "Plants near by (repeatable).")
    seedling: Choice = choice("signal", "oak", "What to plant.")
    output: str | None = option(None, "Where to write.", short="-O")
    extra: dict[str, int] = option({}, "Anything else.")


class ShowOptions(Options):
    label: str = option(help="Which label.", argument=True)


def _run(context: Any, options: Any) -> Result:
    return Result()


SPECS = (
    StageSpec(
        name="dig",
        summary="Dig a hole.",
        options=DigOptions,
        run=_run,
        sections=("data", "machine"),
        examples=("plant dig --depth 2",),
    ),
    StageSpec(name="dig show", summary="Show a hole.", options=ShowOptions, run=_run, writes=False),
    StageSpec(name="mig", summary="Count.", run=_run),
    StageSpec(
        name="soil make",
        summary="Make soil.",
        options=NoOptions,
        run=_run,
        writes=False,
        needs_run=False,
        group="Corpus",
    ),
    StageSpec(
        name="soil sift",
        summary="Sift soil.",
        options=NoOptions,
        run=_run,
        writes=False,
        needs_run=False,
        group="Corpus",
    ),
)


@pytest.fixture
def plant(garden: Registry, monkeypatch: pytest.MonkeyPatch) -> Any:
    calls: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        execution, "execute", lambda spec, registry, given: calls.append((spec.name, given))
    )

    def run(*args: str) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
        calls.clear()
        with pytest.raises(SystemExit) as left, report_failures():
            build(garden).main(list(args), prog_name="plant")
        return int(left.value.code or 0), calls

    return run


def test_only_given_flags_are_passed_on(plant: Any) -> None:
    assert plant("dig") == (0, [("dig", {})])
    assert plant("dig", "--depth", "3") == (0, [("dig", {"dig": {"depth": 3}})])


def test_flags_reach_their_sections(plant: Any) -> None:
    arguments = "dig --no-wet --near a --near b --tool fork corpus.csv --text-column body --seed 7"
    _, [(name, given)] = plant(*arguments.split())
    assert name == "dig"
    assert given["dig"] == {"wet": False, "near": ["a", "b"], "tool": "fork"}
    assert (given["data"], given["machine"]) == (
        {"path": "corpus.csv", "text_column": "body"},
        {"seed": 7},
    )


def test_general_flags(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, calls = plant(
        *[
            "mig",
            "--run",
            "r",
            "--tag",
            "t",
            "--set",
            "a.b=1",
            "--set",
            "c.d=x",
            "--force",
            "--format",
            "json",
            "-q",
        ]
    )
    switches = {"force": True, "format": "json", "quiet": True}
    assert calls[0][1]["general"] == {
        "run": Path("r"),
        "tag": "t",
        "set": ["a.b=1", "c.d=x"],
        **switches,
    }
    monkeypatch.setenv("PLANT_RUN", "elsewhere")
    assert str(plant("mig")[1][0][1]["general"]["run"]) == "elsewhere"


def test_component_and_short_flags(plant: Any) -> None:
    assert plant("dig", "--seedling", "elm", "-O", "x")[1] == [
        ("dig", {"dig": {"seedling": "elm", "output": "x"}})
    ]


def test_a_stage_and_its_action_share_the_first_word(plant: Any) -> None:
    assert plant("dig", "show", "E11.9")[1] == [("dig show", {"dig show": {"label": "E11.9"}})]
    assert plant("dig", "--depth", "2", "show")[1] == [
        ("dig", {"dig": {"depth": 2}, "data": {"path": "show"}})
    ]


def test_a_group_without_a_stage_of_its_own(plant: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert plant("soil", "make")[1] == [("soil make", {})]
    assert plant("soil", "--help")[0] == 0
    assert "sift" in capsys.readouterr().out
    assert plant("soil", "mak")[0] == 2
    assert "did you mean 'make'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "what", "hint"),
    [
        (["dgi"], 2, "error: there is no command 'dgi'", "did you mean 'dig'?"),
        (["dig", "--dept", "3"], 2, "error: there is no option '--dept'", "did you mean '--depth'"),
        (
            ["dig", "show", "-dash"],
            2,
            "error: there is no option '-d'",
            "before a value that begins with a dash",
        ),
        (
            ["dig", "--depth", "deep"],
            3,
            "error: the value of --depth is not valid",
            "expected:   a valid integer",
        ),
        (["dig", "--tool", "spoon"], 3, "error: the value of --tool is not valid", "'spade'"),
        (["dig", "show"], 2, "error: LABEL is missing", "plant dig show [OPTIONS]"),
        (
            ["dig", "show", "--label", "a"],
            2,
            "error: '--label' is no option but an argument",
            "what to do: write its value alone",
        ),
        (["dig", "show", "a", "b"], 2, "(b)", "plant dig show [OPTIONS]"),
        (["dig", "--depth"], 2, "requires an argument", "where:      plant dig"),
        (
            ["dig", "--metres=4"],
            2,
            "error: the option '--metres' is called '--depth'",
            "what to do: write --depth instead",
        ),
        (
            ["dig", "--water-first"],
            2,
            "error: the option '--water-first' is called '--wet'",
            "expected:   --wet",
        ),
        (
            ["dig", "--no-water-first"],
            2,
            "error: the option '--no-water-first' is called '--no-wet'",
            "write --no-wet instead",
        ),
    ],
)
def test_a_command_line_that_cannot_be_read_is_explained_in_four_parts(
    plant: Any, capsys: pytest.CaptureFixture[str], args: list[str], code: int, what: str, hint: str
) -> None:
    assert plant(*args) == (code, [])
    said = capsys.readouterr().err
    assert said.splitlines()[0].startswith("error: ")
    assert what in said.splitlines()[0]
    assert hint in said
    assert [line.split(":")[0].strip() for line in said.splitlines()] == [
        "error",
        "where",
        "expected",
        "what to do",
    ]


def test_two_owners_are_an_error_that_names_both(garden: Registry, plant: Any) -> None:
    garden.register(make_plugin(SPECS[2], name="other"), name="other")
    with pytest.raises(PluginError, match=r"garden.*and other"):
        build(garden).main(["mig"], prog_name="plant")


def test_broken_plugins_are_named_where_a_command_is_missing(
    garden: Registry, plant: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    garden.plugins.append(PluginRecord(name="rotten", error="ImportError: no"))
    plant("harvest")
    assert "rotten" in capsys.readouterr().err
    plant("--help")
    assert "Broken plugins, left out: rotten" in capsys.readouterr().out


def test_a_corpus_behind_a_recipe_is_told_as_path(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, report_failures():
        build(installed())(["run", "recommended", "data.parquet"], prog_name="plant")
    assert ended.value.code == 2
    assert "what to do: name the corpus with --path" in capsys.readouterr().err
