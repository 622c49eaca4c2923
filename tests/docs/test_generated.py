"""The generated blocks of the docs say what the code says."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from plant_cli import api
from plant_cli.api import PlantError, errors
from plant_cli.api.hooks import HOOKS

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
    used = [found["name"] for page in DOCS.glob("*.md") for found in generator.BLOCK.finditer(page.read_text("utf-8"))]
    assert sorted(used) == sorted(generator.BLOCKS)


def test_a_stale_block_is_found_and_written_anew(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "errors.md"
    page.write_text("before\n<!-- generated: errors -->\nstale line\n<!-- end -->\nafter\n", "utf-8")
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


@pytest.mark.parametrize("path", sorted((DOCS / "results").glob("*.json")), ids=lambda path: path.stem)
def test_results_have_one_shape(path: Path) -> None:
    result = json.loads(path.read_text("utf-8"))
    assert list(result) == ["title", "date", "convention", "seeds", "columns", "rows", "note"]
    assert {len(row) for row in result["rows"]} == {len(result["columns"])}
    assert all(isinstance(cell, str) for row in result["rows"] for cell in row)


def test_columns_of_figures_are_aligned_right(generator: ModuleType, tmp_path: Path) -> None:
    result = {"title": "Speed", "date": "2026-01-02", "convention": "Seconds.", "seeds": 3, "columns": ["part", "time"], "note": "Quiet."}
    (tmp_path / "speed.json").write_text(json.dumps({**result, "rows": [["reading", "+1.5 [1.2, 1.9] ▲"], ["the rest", "–"]]}), "utf-8")
    head, _, *lines = generator.result_table(tmp_path / "speed.json")
    assert head == "**Speed** (3 seeds, 2026-01-02). Seconds."
    assert lines == ["| part | time |", "|---|--:|", "| reading | +1.5 [1.2, 1.9] ▲ |", "| the rest | – |", "", "Quiet.", ""]


def test_every_hook_and_every_error_is_documented() -> None:
    plugins, failures = (DOCS / "plugins.md").read_text("utf-8"), (DOCS / "errors.md").read_text("utf-8")
    for hook in HOOKS:
        assert f"def {hook}() -> Sequence[" in plugins
    for error in PlantError.__subclasses__():
        if error.__module__ == errors.__name__:
            assert f"| {error.exit_code} | `{error.__name__}` |" in failures


def test_every_name_of_the_contract_is_explained() -> None:
    page = (DOCS / "plugins.md").read_text("utf-8")
    classes = {name for name, value in vars(api).items() if inspect.isclass(value) and not issubclass(value, PlantError)}
    functions = {name for name, value in vars(api).items() if inspect.isfunction(value)}
    explained = set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE))
    assert classes | functions <= explained
    unexplained = [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")]
    assert unexplained == []


def test_every_option_of_a_component_is_found_by_the_first_table_that_has_it(generator: ModuleType) -> None:
    """A component's own table, then those of the sections that it links to, in this order."""
    page = (DOCS / "components.md").read_text("utf-8")
    sections = {generator.slug(text.splitlines()[0]): text for text in re.split(r"^##+ ", page, flags=re.MULTILINE)}
    kinds = [kind for kind in generator.TABLE if kind.spec is not api.StageSpec]
    for name, spec in [(kind.name, spec) for kind in kinds for spec in generator.shipped(kind.spec)]:
        own = sections[generator.slug(f"{name} {spec.name}")]
        chain = [own, *(sections[anchor] for anchor in re.findall(r"\]\(#([\w-]+)\)", own))]
        shown: dict[str, str] = {}
        for line in (line for text in chain for line in text.splitlines() if line.startswith("| `")):
            shown.setdefault(line.split("`")[1], line)
        expected = generator.option_table([(generator.code(row.name), row) for row in generator.option_rows(spec.options)], "option")
        assert sorted(shown.values()) == sorted(line for line in expected if line.startswith("| `")), spec.name


def test_options_that_backbones_share_stand_once() -> None:
    assert (DOCS / "components.md").read_text("utf-8").count("| `lora_rank` |") == 1


def test_a_cell_cannot_break_its_table(generator: ModuleType) -> None:
    assert list(generator.table(("a", "b"), [("x|y", "two\nlines")])) == ["| a | b |", "|---|---|", "| x\\|y | two lines |", ""]


def test_meanings_come_from_the_arguments_of_a_docstring(generator: ModuleType) -> None:
    docstring = """One sentence.

    Args:
        first: what it is,
            on two lines.
        second, third: both.
    """
    assert {key: " ".join(text.split()) for key, text in generator.argument_meanings(docstring).items()} == {
        "first": "what it is, on two lines.",
        "second, third": "both.",
    }
