"""The formats that are registered."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_datasets.formats.registration import FORMATS

from plant_cli.api import ComponentError, DataSection, Dataset


def test_each_format_has_a_module_that_reads_recognises_and_writes() -> None:
    for spec in FORMATS:
        module = import_module(f"plant_datasets.formats.{spec.name.replace('-', '_')}")
        assert all(callable(getattr(module, name)) for name in ("load", "recognise", "write")), spec.name


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("name", [spec.name for spec in FORMATS])
def test_what_one_format_writes_no_other_recognises(name: str, labels: int, tmp_path: Path) -> None:
    """Forty documents, some with one label alone, as most corpora have."""
    draw = random.Random(0)
    splits: dict[Any, pl.LazyFrame] = {}
    for split, count in (("train", 40), ("test", 20)):
        texts = [" ".join(draw.choices(["fever", "cough", "rash", "fall"], k=6)) + f" {split} {row}" for row in range(count)]
        given = [sorted(draw.sample(["L1", "L2", "L3", "L4", "L5"], draw.randint(1, labels))) for _ in range(count)]
        frame = pl.DataFrame({"doc_id": [f"{split}{row}" for row in range(count)], "text": texts, "labels": given})
        splits[split] = frame.lazy()
    spec = next(spec for spec in FORMATS if spec.name == name)
    assert spec.write is not None
    try:
        spec.write(Dataset(splits=splits), tmp_path, "")
    except ComponentError as error:
        pytest.skip(str(error))
    data = DataSection(path=str(tmp_path))
    assert [other.name for other in FORMATS if other.recognise is not None and other.recognise(data) is not None] == [name]
