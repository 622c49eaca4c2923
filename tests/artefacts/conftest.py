"""Relevance for the tests of its files, and the record of a finished stage over files that a test wrote."""

from __future__ import annotations

from pathlib import Path

from plant_cli.artefacts.records import Facts, StageRecord
from plant_cli.base.files import read_json, write_json
from plant_cli.base.hashing import hash_file
from tests.relevance.conftest import joined

__all__ = ["joined", "record_again", "record_outputs"]


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
