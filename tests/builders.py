"""Small corpora and records of finished stages, for tests of any room."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.data.files import hash_file, read_json, write_json
from plant_cli.data.records import Facts, StageRecord

SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


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
        "test": frame(("e", "fever and something not seen", ["B1", "Z0"]), ("f", "another rarity, never seen", ["Z0", "Y0"])),
    }


@pytest.fixture
def dataset(frames: dict[SplitName, pl.DataFrame]) -> Dataset:
    titles = pl.LazyFrame({"label": ["B1", " A9 ", "C1", "A9"], "title": ["Fever", "Fracture", "", "Second"]})
    return Dataset(splits={name: part.lazy() for name, part in frames.items()}, labels=titles, files=["x.parquet"])


def record_outputs(folder: Path, stage: str) -> None:
    """Write the stage.json of a finished stage that left the files of a folder."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file() and path.name != "stage.json"}
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
    write_json(folder / "stage.json", {**record, "outputs": {name: hash_file(folder / name) for name in record["outputs"]}, "facts": {}})
