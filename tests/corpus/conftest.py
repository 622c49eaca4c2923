from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api.corpus import Dataset, SplitName

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
