"""`plant data info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from round_trips import write_format

from plant_cli.api import Dataset, Request, Result, SilentReporter, UsageError
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage


def info(**options: Any) -> Result:
    flags = {"data info": options}
    return run_stage(Request(registry=installed(), run_path=Path("nowhere"), flags=flags, reporter=SilentReporter()), "data info")


def test_the_list_and_a_card() -> None:
    assert {"eurlex-4k", "codiesp", "tibkat"} <= {row[0] for row in info().tables[0].rows}
    result = info(name="eurlex-4k")
    assert ("licence", result.data["licence"]) in [tuple(row) for row in result.tables[0].rows]
    assert [row[1] for row in result.tables[1].rows] == [15_449, 15_539]


def test_a_download_is_counted_beside_the_expected_counts(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"doc_id": ["1"], "text": ["a"], "labels": [["x"]]})
    write_format("pecos", Dataset(splits={"train": frame, "test": frame}), tmp_path)
    result = info(name="eurlex-4k", path=str(tmp_path))
    assert result.data["found"] == {"train": 1, "test": 1, "labels": 1, "label names": 1}
    assert tuple(result.tables[1].rows[-1]) == ("your download", 1, None, 1, 1, 1)


def test_other_datasets_have_no_card() -> None:
    with pytest.raises(UsageError, match="'files' is not a published corpus"):
        info(name="files")
