"""What is planned for relevance is what is measured, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

TOLERANCE = 0.25


@pytest.mark.slow
@pytest.mark.parametrize(("distinct", "longest"), [(800, 1), (8, 20000)], ids=["many words", "long texts"])
def test_planned_memory_of_relevance_is_the_measured_one(
    tmp_path: Path, run_alone: Callable[..., Any], distinct: int, longest: int
) -> None:
    documents, words, labels = 16000, 40000, 300
    names = ["".join("abcdefghij"[int(digit)] for digit in f"{number:05}") for number in range(words)]
    texts = (" ".join(names[(d * 37 + j * (1 + d % 61)) % words] for j in range(distinct)) + longest * "a" for d in range(documents))
    rows = [("train" if d % 100 else "test", str(d), text, [f"label {d % labels}"]) for d, text in enumerate(texts)]
    frame = pl.DataFrame(rows, schema=["split", "doc_id", "text", "labels"], orient="row")
    frame.write_parquet(tmp_path / "data.parquet", row_group_size=1000)
    (tmp_path / "recipe.yaml").write_text("mig: {k: 100}\n")
    sets = [f"data.path={tmp_path / 'data.parquet'}", "machine.device=cpu", "machine.threads=1"]
    plan = run_alone(tmp_path / "run", "plan", [*sets, f"plan.recipe={tmp_path / 'recipe.yaml'}"])
    planned = plan["data"]["mig"]["peak_bytes"] - plan["before"]
    measured = run_alone(tmp_path / "run", "mig", [*sets, "mig.k=100"])["peak"]
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert abs(planned / measured - 1) < TOLERANCE, (plan["data"]["mig"]["memory"], measured)
