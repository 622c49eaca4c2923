"""Small corpora, registries, runs and records, and the comparison of errors with a table of
messages, for tests of any room.

`from builders import label_table, make_split, make_registry, write_documents, run_at, run_plant,
read_cases, explained, read_stage`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from scipy.sparse import csr_array

from plant_cli.api import PlantError, Request, Result, SilentReporter, Split
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.data.files import hash_file, read_json, write_json
from plant_cli.data.labels import LabelTable
from plant_cli.data.records import Facts, StageRecord
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage
from plant_cli.testing.contexts import make_registry  # noqa: F401  # for tests

SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def label_table(
    *ids: str, titles: Sequence[str | None] = (), counts: Sequence[int] = (), **more: Any
) -> LabelTable:
    """An index of labels, by default without titles and with one training document each."""
    return LabelTable(
        ids=ids,
        titles=list(titles) or [None] * len(ids),
        train_counts=list(counts) or [1] * len(ids),
        **more,
    )


def make_split(
    texts: Sequence[str], gold: Any = None, name: SplitName = "train", **values: Any
) -> Split:
    """A split of texts with gold [N, L] (by default one label that no document has); the ids
    are `d0`, `d1` and so on.
    """
    count = len(texts)
    gold = csr_array(np.zeros((count, 1), dtype=np.int64) if gold is None else gold)
    defaults = {
        "doc_ids": [f"d{row}" for row in range(count)],
        "unseen": csr_array((count, 0), dtype=np.int64),
    }
    return Split(name=name, texts=texts, gold=gold, **{**defaults, **values})


def write_documents(path: Path, *documents: tuple[str, str, Sequence[str]]) -> Path:
    """Write documents (split, text, labels) as a table; the ending of the path decides its
    format: Parquet or JSON lines.
    """
    rows = pl.DataFrame(
        documents,
        schema={"split": pl.String, "text": pl.String, "labels": pl.List(pl.String)},
        orient="row",
    )
    rows = rows.with_row_index("doc_id").with_columns(pl.col("doc_id").cast(pl.String))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.write_ndjson(path) if path.suffix == ".jsonl" else rows.write_parquet(path)
    return path


def run_at(
    path: Path, name: str, *sets: str, tag: str | None = None, registry: Any = None, **request: Any
) -> Result:
    """Run a stage in a run folder: `run_at(run, "mig", "mig.k=5", tag="a", flags={…},
    force=True)`.
    """
    request = {"reporter": SilentReporter(), **request}
    return run_stage(
        Request(registry=registry or installed(), run_path=path, sets=sets, **request), name, tag
    )


def run_plant(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder, as a process of its own."""
    command = [sys.executable, "-m", "plant_cli", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def read_cases(path: Path) -> list[dict[str, Any]]:
    """A table of mistakes (`messages.yaml`): each has what makes it, the class of its error, and
    the four parts that the user sees.

    A case with `each` stands for several, with each of these texts in place of EACH.
    """
    cases = yaml.safe_load(path.read_text("utf-8"))
    return [_fill(case, text) for case in cases for text in case.pop("each", [""])]


def _fill(part: Any, text: str) -> Any:
    if isinstance(part, dict):
        return {key: _fill(value, text) for key, value in part.items()}
    if isinstance(part, list):
        return [_fill(value, text) for value in part]
    return part.replace("EACH", text) if isinstance(part, str) else part


@contextmanager
def explained(case: dict[str, Any], folder: Path) -> Iterator[None]:
    """Require that the block ends with the error of a case; `DIR` in its parts is the folder."""
    with pytest.raises(PlantError) as caught:
        yield
    error = caught.value
    said = [
        text.replace(str(folder.resolve()), "DIR")
        for text in (error.what, error.where, error.expected, error.todo)
    ]
    assert [type(error).__name__, *said] == [case["error"], *case["says"]]


def frame(*documents: tuple[str | None, str | None, list[str | None] | None]) -> pl.DataFrame:
    """Documents as (id, text, labels)."""
    return pl.DataFrame(documents, schema=SCHEMA, orient="row")


@pytest.fixture
def frames() -> dict[SplitName, pl.DataFrame]:
    return {
        "train": frame(
            ("a", "heart failure and fever", ["C1", "B1"]),
            ("b", "a broken leg after a fall", ["A9"]),
            ("c", "fever again, of some sort", ["B1"]),
        ),
        "validation": frame(("d", "the heart fails once more", ["C1"])),
        "test": frame(
            ("e", "fever and something not seen", ["B1", "Z0"]),
            ("f", "another rarity, never seen", ["Z0", "Y0"]),
        ),
    }


@pytest.fixture
def dataset(frames: dict[SplitName, pl.DataFrame]) -> Dataset:
    titles = pl.LazyFrame(
        {"label": ["B1", " A9 ", "C1", "A9"], "title": ["Fever", "Fracture", "", "Second"]}
    )
    return Dataset(
        splits={name: part.lazy() for name, part in frames.items()},
        labels=titles,
        files=["x.parquet"],
    )


def read_stage(run: Path, folder: str) -> dict[str, Any]:
    """The record of a stage: `read_stage(run, "finetune-baseline")["options"]`."""
    return dict(read_json(run / folder / "stage.json", "the record of the stage"))


def record_outputs(folder: Path, stage: str) -> None:
    """Write the stage.json of a finished stage that left the files of a folder."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and path.name != "stage.json"
    }
    record = StageRecord(
        status="done",
        stage=stage,
        tag=None,
        options={},
        sections={},
        seed=0,
        started="2026-01-01T00:00:00",
        outputs={name: hash_file(path) for name, path in files.items()},
        facts={name: Facts.of(path) for name, path in files.items()},
    )
    write_json(folder / "stage.json", record.model_dump(mode="json"))


def record_again(folder: Path) -> None:
    """Let the record of a finished stage name the files of its folder as they are now."""
    record = read_json(folder / "stage.json", "the record of the stage")
    write_json(
        folder / "stage.json",
        {
            **record,
            "outputs": {name: hash_file(folder / name) for name in record["outputs"]},
            "facts": {},
        },
    )
