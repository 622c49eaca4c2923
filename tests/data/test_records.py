from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from plant_cli.api import ArtefactError
from plant_cli.data.files import write_json
from plant_cli.data.records import FORMAT, RunHeader, StageRecord, plain_values, read_record

HEADER = {"format": FORMAT, "created": "2026-01-01T00:00:00+00:00", "plant_version": "0.1.0"}
RECORD: dict[str, Any] = {"status": "done", "stage": "mig", "tag": None, "options": {}, "sections": {}, "seed": 0, "started": "2026"}


def test_a_newer_format_says_which_version_wrote_it(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {**HEADER, "format": FORMAT + 1, "plant_version": "9.1.0", "shape": "unknown"})
    with pytest.raises(ArtefactError, match=f"format {FORMAT + 1}, written by plant 9.1.0") as caught:
        read_record(tmp_path / "run.json", RunHeader, "the header")
    assert caught.value.expected == f"format {FORMAT} or older"
    assert caught.value.exit_code == 4


def test_a_header_that_is_no_json_is_not_mended_by_force(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ArtefactError, match="damaged") as caught:
        read_record(tmp_path / "run.json", RunHeader, "the header")
    assert "--run DIR" in caught.value.todo


def test_keys_that_were_added_later_are_passed_over(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {**HEADER, "mood": "fine"})
    assert read_record(tmp_path / "run.json", RunHeader, "the header").data_hash is None


@pytest.mark.parametrize("content", [[], 3, {"format": "x"}, {**HEADER, "format": None}])
def test_a_damaged_record_names_the_file(tmp_path: Path, content: Any) -> None:
    write_json(tmp_path / "run.json", content)
    with pytest.raises(ArtefactError, match="damaged") as caught:
        read_record(tmp_path / "run.json", RunHeader, "the header")
    assert str(tmp_path / "run.json") in caught.value.where


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/file", "a/../../b", "", "a\\..\\b"])
def test_no_output_can_lead_outside(path: str) -> None:
    with pytest.raises(ValidationError):
        StageRecord.model_validate({**RECORD, "outputs": {path: "0"}})


@pytest.mark.parametrize("name", ["../mig", "/mig", ".mig", "Mig", "a/b", ""])
def test_no_input_or_tag_can_lead_outside(name: str) -> None:
    with pytest.raises(ValidationError):
        StageRecord.model_validate({**RECORD, "inputs": {name: "0"}})
    with pytest.raises(ValidationError):
        StageRecord.model_validate({**RECORD, "tag": name})


def test_summaries_become_plain_json() -> None:
    summary = {"a": np.float32(0.5), "b": math.nan, "c": [np.int64(3), math.inf], 4: True, "d": Path("x"), "e": None, "f": "t"}
    assert plain_values(summary) == {"a": 0.5, "b": None, "c": [3, None], "4": True, "d": "x", "e": None, "f": "t"}
