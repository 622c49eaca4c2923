"""The generated blocks of the docs say what the code says."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from plant_cli import api
from plant_cli.api import PlantError, errors
from plant_cli.api.specs import TABLE, Kind
from plant_cli.registry import Registry
from plant_cli.testing.checklist import find_cases

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_page_is_current(generator: ModuleType, page: Path) -> None:
    text = page.read_text("utf-8")
    assert generator.fill(text) == text, "run: python docs/generate.py --write"


def test_every_block_is_used_and_every_block_used_is_known(generator: ModuleType) -> None:
    used = [
        found["name"]
        for page in DOCS.glob("*.md")
        for found in generator.BLOCK.finditer(page.read_text("utf-8"))
    ]
    assert sorted(used) == sorted(generator.BLOCKS)


def test_a_stale_block_is_found_and_written_anew(
    generator: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "errors.md"
    page.write_text(
        "before\n<!-- generated: errors -->\nstale line\n<!-- end -->\nafter\n", "utf-8"
    )
    monkeypatch.setattr(generator, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert generator.main() == 1
    assert "errors.md is out of date" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["generate.py", "--write"])
    assert generator.main() == 0
    text = page.read_text("utf-8")
    assert text.startswith("before\n<!-- generated: errors -->\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "stale line" not in text
    assert "| 130 | `Interrupted` |" in text
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert generator.main() == 0


@pytest.mark.parametrize(
    "path", sorted((DOCS / "results").glob("*.json")), ids=lambda path: path.stem
)
def test_results_have_one_shape(path: Path) -> None:
    result = json.loads(path.read_text("utf-8"))
    assert list(result) == ["title", "date", "convention", "seeds", "columns", "rows", "note"]
    assert {len(row) for row in result["rows"]} == {len(result["columns"])}
    assert all(isinstance(cell, str) for row in result["rows"] for cell in row)


def test_columns_of_figures_are_aligned_right(generator: ModuleType, tmp_path: Path) -> None:
    result = {
        "title": "Speed",
        "date": "2026-01-02",
        "convention": "Seconds.",
        "seeds": 3,
        "columns": ["part", "time"],
        "note": "Quiet.",
    }
    (tmp_path / "speed.json").write_text(
        json.dumps({**result, "rows": [["reading", "+1.5 [1.2, 1.9] ▲"], ["the rest", "–"]]}),
        "utf-8",
    )
    head, _, *lines = generator.result_table(tmp_path / "speed.json")
    assert head == "**Speed** (3 seeds, 2026-01-02). Seconds."
    assert lines == [
        "| part | time |",
        "|---|--:|",
        "| reading | +1.5 [1.2, 1.9] ▲ |",
        "| the rest | – |",
        "",
        "Quiet.",
        "",
    ]


def test_every_error_is_documented() -> None:
    failures = (DOCS / "errors.md").read_text("utf-8")
    for error in PlantError.__subclasses__():
        if error.__module__ == errors.__name__:
            assert f"| {error.exit_code} | `{error.__name__}` |" in failures


def test_every_class_of_the_contract_is_explained(generator: ModuleType) -> None:
    page = (DOCS / "plugins.md").read_text("utf-8")
    explained = {value for values in generator.CONTRACT.values() for value in values}
    shown = {api.Spec, *(kind.spec for kind in generator.TABLE)} | explained
    assert sorted(value.__name__ for value in shown if f"`{value.__name__}`: " not in page) == []
    assert [
        line for line in page.splitlines() if line.startswith("* `") and line.endswith(": ")
    ] == []
    options = {
        "Choice",
        "DataSection",
        "MachineSection",
        "ModelSection",
        "NoOptions",
        "Options",
    }  # by cli.md, and in the text
    by_pydoc = {
        *(
            "AllScores",
            "Analyser",
            "BackboneStart",
            "Components",
            "DatasetCard",
            "Evidence",
            "Excluded",
            "GroupedReading",
        ),
        *(
            "Hierarchy",
            "Passage",
            "Gathered",
            "NetworkSpec",
            "Pieces",
            "PluginRecord",
            "Request",
            "Runner",
            "SilentReporter",
            "StepResult",
            "Task",
            "WeightedMetric",
        ),
    }
    classes = {
        name
        for name, value in vars(api).items()
        if inspect.isclass(value) and not issubclass(value, PlantError)
    }
    assert classes - {value.__name__ for value in shown} == options | by_pydoc


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.name)
def test_the_example_of_each_kind_passes_the_checks(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = DOCS / "examples" / "plant-example"
    monkeypatch.syspath_prepend(str(path))
    text = (path / "plant_example" / f"{kind.name}.py").read_text("utf-8")
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 52  # of 100 columns
    registry = Registry()
    registry.register(import_module(f"plant_example.{kind.name}"), name="example")
    cases = find_cases("example", registry)
    assert len(cases) > 6
    for case in cases:
        if (
            case.check.__name__ != "needs_no_terminal"
        ):  # another process, which does not see the folder
            with contextlib.suppress(pytest.skip.Exception):
                case.check(case.spec)


def test_every_option_of_a_component_is_found_by_the_first_list_that_has_it(
    generator: ModuleType,
) -> None:
    """A component's own list, then those of the sections that it links to, in this order."""
    page = (DOCS / "components.md").read_text("utf-8")
    sections = {
        generator.slug(text.splitlines()[0]): text
        for text in re.split(r"^##+ ", page, flags=re.MULTILINE)
    }
    kinds = [kind for kind in generator.TABLE if kind.spec is not api.StageSpec]
    for name, spec in [
        (kind.name, spec) for kind in kinds for spec in generator.shipped(kind.spec)
    ]:
        if generator.is_plain(spec):
            assert f"`{spec.name}`" in sections["datasets"]
            continue
        own = sections[generator.slug(f"{name} {spec.name}")]
        chain = [own, *(sections[anchor] for anchor in re.findall(r"\]\(#([\w-]+)\)", own))]
        shown: dict[str, str] = {}
        for line in (
            line for text in chain for line in text.splitlines() if line.startswith("* `")
        ):
            shown.setdefault(line.split("`")[1], line)
        expected = generator.option_entries(generator.option_rows(spec.options))
        assert sorted(shown.values()) == sorted(line for line in expected if line), spec.name


def test_options_that_backbones_share_stand_once() -> None:
    assert (DOCS / "components.md").read_text("utf-8").count("* `lora_rank` ") == 1


def test_a_cell_cannot_break_its_table(generator: ModuleType) -> None:
    assert list(generator.table(("a", "b"), [("x|y", "two\nlines")])) == [
        "| a | b |",
        "|---|---|",
        "| x\\|y | two lines |",
        "",
    ]


def test_meanings_come_from_the_arguments_of_a_docstring(generator: ModuleType) -> None:
    docstring = """One sentence.

    Args:
        first: what it is,
            on two lines.
        second, third: both.
    """
    assert {
        key: " ".join(text.split()) for key, text in generator.argument_meanings(docstring).items()
    } == {
        "first": "what it is, on two lines.",
        "second, third": "both.",
    }
