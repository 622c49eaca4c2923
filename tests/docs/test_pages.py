"""What the pages show works: links resolve, commands parse, recipes are valid, the README runs
in CI.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import RecipeError, Request, SilentReporter
from plant_cli.cli.tree import StageGroup
from plant_cli.main import build
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = [
    *sorted((ROOT / "recipes").glob("*.yaml")),
    *sorted((ROOT / "tests" / "benchmarks").glob("*.yaml")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")


def blocks(page: Path, language: str) -> Iterator[str]:
    """The code blocks of a page in one language."""
    return (text for found, text in FENCE.findall(page.read_text("utf-8")) if found == language)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {
        re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_the_index_leads_to_every_page() -> None:
    links = set(LINK.findall((ROOT / "docs" / "index.md").read_text("utf-8")))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - links == {"index.md"}


def shown_commands() -> list[tuple[str, str]]:
    """Every `plant` command in a shell block, in an indented block or in a recipe's remark,
    with its page.
    """
    lines = [
        (page, line) for page in PAGES for text in blocks(page, "sh") for line in text.splitlines()
    ]
    own = [
        page for page in PAGES if "examples" not in page.parts
    ]  # those of examples need their plugins
    indented = [(page, FENCE.sub("", page.read_text("utf-8")).replace("\\\n", "")) for page in own]
    lines += [
        (page, line)
        for page, text in indented
        for line in re.findall(r"^    (plant .*)$", text, re.MULTILINE)
    ]
    lines += [
        (path, line.lstrip("# "))
        for path in RECIPES
        for line in path.read_text("utf-8").splitlines()
        if line.startswith("# ")
    ]
    parts = [
        (page.name, part.split(" #")[0].strip())
        for page, line in lines
        for part in line.split(" && ")
    ]
    return sorted(
        {
            (page, re.sub(r"^\S*plant ", "plant ", part))
            for page, part in parts
            if re.match(r"\S*plant ", part)
        }
    )


def parse(group: Any, words: list[str]) -> str:
    """Parse a command line down to its command without running it; the command's name."""
    name, command, rest = group.resolve_command(
        group.make_context("plant", [], resilient_parsing=True), words
    )
    if isinstance(command, StageGroup):
        return f"{name} {parse(command, rest)}"
    return str(command.make_context(name, [word.strip("[]") for word in rest]).info_name)


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_commands_parse(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    assert " ".join(words).startswith(parse(build(installed()), words))


def test_a_wrong_flag_would_be_noticed() -> None:
    with pytest.raises(Exception, match="there is no option '--kk'"):
        parse(build(installed()), ["mig", "--kk", "5"])


@pytest.mark.parametrize("text", [text for page in PAGES for text in blocks(page, "yaml")])
def test_recipes_are_valid(text: str, tmp_path: Path) -> None:
    recipe = tmp_path / "shown.yaml"
    recipe.write_text(text, "utf-8")
    flags = {"recipe check": {"recipe": str(recipe)}}
    request = Request(
        registry=installed(), run_path=tmp_path / "run", flags=flags, reporter=SilentReporter()
    )
    assert run_stage(request, "recipe check") is not None
    recipe.write_text(f"{text}\nnowhere: {{}}\n", "utf-8")
    with pytest.raises(RecipeError, match="nowhere"):
        run_stage(request, "recipe check")


def test_every_study_is_named_with_its_command() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    commands = page[page.index("## Commands") :]
    folder = ROOT / "tests" / "benchmarks"
    modules = [path.stem for path in folder.glob("*.py") if "def main(" in path.read_text("utf-8")]
    assert len(modules) > 8
    assert sorted(name for name in modules if f"-m tests.benchmarks.{name} " not in commands) == []
    assert (
        sorted(
            path.name
            for path in folder.glob("*.yaml")
            if f"plant run tests/benchmarks/{path.name} " not in commands
        )
        == []
    )


def test_readme_says_what_contributing_says_and_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r"<!-- (install|test) -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert [name for name, _ in commands] == ["install", "test"]
    assert next(blocks(ROOT / "docs" / "contributing.md", "sh")) == "".join(
        text for _, text in commands
    )
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    run = [
        line.split("#")[0].split()[1:]
        for line in script.splitlines()
        if line.startswith("run_block ")
    ]
    assert run == [
        ["README.md", "install"],
        ["README.md", "test"],
        ["docs/contributing.md", "long"],
    ]
    assert commands[1][1].rstrip().endswith("&& pytest"), "pytest's closing line ends the log"


def test_the_ci_script_is_sound() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_the_map_of_the_house_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)+(?:\.py)?)`", text))
    folders = (ROOT, ROOT / "plant_cli", ROOT / "plugins")
    modules = {name for name in named if name.endswith(".py")}
    assert len(modules) > 20
    assert (
        sorted(name for name in modules if not any((folder / name).is_file() for folder in folders))
        == []
    )


def test_the_catalogue_of_the_tutorial_is_the_one_shown(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "catalogue.py"], cwd=tmp_path, check=True
    )
    head, first, *others = (tmp_path / "catalogue.csv").read_text("utf-8").splitlines()
    shown = next(blocks(ROOT / "docs" / "tutorial.md", "text")).splitlines()
    start, end = shown[-1].split("…")
    assert (head, first.startswith(start), first.endswith(end), len(others)) == (
        shown[-2],
        True,
        True,
        599,
    )
    catalogue = {line.partition(",")[0] for line in others}
    assert catalogue.isdisjoint(
        line.partition(",")[0]
        for line in (tmp_path / "new.csv").read_text("utf-8").splitlines()[1:]
    )
