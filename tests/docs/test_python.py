"""The examples of the page *Use from Python* run, one after the other, and do what the page
says of them.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that the examples define, and what each of them printed, under `printed`; the
    working directory is theirs.
    """
    names: dict[str, Any] = {"printed": []}
    with contextlib.chdir(tmp_path_factory.mktemp("python")):
        for example in EXAMPLES:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(example, PAGE.name, "exec"), names)
            names["printed"].append(printed.getvalue())
        yield names


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) > 5


def test_stages_run_and_a_mistake_is_named(played: dict[str, Any]) -> None:
    assert sorted(path.parent.name for path in Path("python-run").glob("*/stage.json")) == [
        "eval",
        "finetune",
        "finetune-baseline",
        "mig",
        "predict",
        "pretrain-attn",
    ]
    assert any(text.startswith("the stage 'finetune' is finished\n") for text in played["printed"])


def test_the_run_s_own_recipe_finds_nothing_to_do(played: dict[str, Any]) -> None:
    (steps,) = [text for text in played["printed"] if "unchanged" in text]
    assert [line.split()[1] for line in steps.splitlines()] == ["unchanged"] * 6


def test_a_run_is_read(played: dict[str, Any]) -> None:
    assert played["relevance"].matrix.shape == (
        len(played["index"]),
        len(played["relevance"].words),
    )
    table = played["read_label_words"](Path("python-run/mig"), played["first"])
    row = played["relevance"].matrix[[0]]
    best = {
        played["relevance"].words[column]: value
        for column, value in zip(row.indices, row.data, strict=True)
    }
    assert best == dict(zip(table["word"], table["relevance"], strict=True))
    assert played["history"].height >= 1
    assert played["predictions"].schema["scores"] == pl.List(pl.Float64)
    assert 0 <= played["metrics"]["metrics"]["P@1"]["value"] <= 1


def test_new_texts_get_labels(played: dict[str, Any]) -> None:
    found = played["model"].suggest(["a cough"], k=3)
    assert [len(text) for text in found] == [3]
    assert {suggestion.label for suggestion in found[0]} <= set(played["model"].labels.ids)
