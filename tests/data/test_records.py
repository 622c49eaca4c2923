"""Records of a run and whether recorded files are what was written."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from plant_cli.api import ArtefactError
from plant_cli.data import records as integrity
from plant_cli.data.files import hash_file, write_json
from plant_cli.data.records import (
    RECORD_FORMAT,
    Facts,
    RunHeader,
    StageRecord,
    examine_file,
    examine_files,
    hash_unchanged,
    plain_values,
    read_record,
    require_recorded,
    require_same,
    stamp,
)

HEADER = {"format": RECORD_FORMAT, "created": "2026-01-01T00:00:00+00:00", "plant_version": "0.1.0"}

RECORD: dict[str, Any] = {
    "status": "done",
    "stage": "mig",
    "tag": None,
    "options": {},
    "sections": {},
    "seed": 0,
    "started": "2026",
}


def test_a_newer_format_says_which_version_wrote_it(tmp_path: Path) -> None:
    write_json(
        tmp_path / "run.json",
        {**HEADER, "format": RECORD_FORMAT + 1, "plant_version": "9.1.0", "shape": "unknown"},
    )
    with pytest.raises(
        ArtefactError, match=f"format {RECORD_FORMAT + 1}, written by plant 9.1.0"
    ) as caught:
        read_record(tmp_path / "run.json", RunHeader, "the header")
    assert caught.value.expected == f"format {RECORD_FORMAT} or older"
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    "content", ["{", "[]", "3", '{"format": "x"}', json.dumps({**HEADER, "format": None})]
)
def test_a_damaged_record_names_the_file_and_is_not_mended_by_force(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ArtefactError, match="damaged") as caught:
        read_record(tmp_path / "run.json", RunHeader, "the header")
    assert str(tmp_path / "run.json") in caught.value.where
    assert "--run DIR" in caught.value.todo


def test_keys_that_were_added_later_are_passed_over(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {**HEADER, "mood": "fine"})
    assert read_record(tmp_path / "run.json", RunHeader, "the header").data_hash is None


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
    summary = {
        "a": np.float32(0.5),
        "b": math.nan,
        "c": [np.int64(3), math.inf],
        4: True,
        "d": Path("x"),
        "e": None,
        "f": "t",
    }
    assert plain_values(summary) == {
        "a": 0.5,
        "b": None,
        "c": [3, None],
        "4": True,
        "d": "x",
        "e": None,
        "f": "t",
    }


A, B = "a" * 64, "b" * 64


def check(found: dict[str, object], **wanted: str) -> None:
    require_same(
        found,
        path=Path("run/mig/mig.parquet"),
        what="the relevance",
        todo="run `plant mig --force`",
        **wanted,
    )


def test_a_stamp_holds_the_format_and_the_hashes_that_apply() -> None:
    assert stamp() == {"format": str(RECORD_FORMAT)}
    assert stamp(labels=A) == {"format": str(RECORD_FORMAT), "label_hash": A}
    assert stamp(labels=A, tokenizer=B) == {
        "format": str(RECORD_FORMAT),
        "label_hash": A,
        "tokenizer_hash": B,
    }


def test_what_was_stamped_passes_and_only_that() -> None:
    for found, wanted, unlike in (
        (
            stamp(labels=A, tokenizer=B),
            {"labels": A, "tokenizer": B},
            {"labels": A, "tokenizer": A},
        ),
        (stamp(labels=A), {"tokenizer": None}, {"tokenizer": A}),
        (
            {"format": RECORD_FORMAT, "label_hash": A},
            {"labels": A},
            {"labels": B},
        ),  # JSON may hold the format as a number
    ):
        check(found, **wanted)  # type: ignore[arg-type]
        with pytest.raises(ArtefactError, match="the relevance was made for another"):
            check(found, **unlike)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "other"),
    [({"labels": B}, "label order"), ({"labels": A, "tokenizer": A}, "tokenizer")],
)
def test_another_hash_is_refused_with_both_places(wanted: dict[str, str], other: str) -> None:
    with pytest.raises(
        ArtefactError, match=f"the relevance was made for another {other}"
    ) as caught:
        check(stamp(labels=A, tokenizer=B), **wanted)
    assert caught.value.exit_code == 4
    assert "run/mig/mig.parquet" in caught.value.where
    assert "aaaaaaaaaaaa" in caught.value.where
    assert "bbbbbbbbbbbb" in caught.value.where
    assert caught.value.todo == "run `plant mig --force`"


@pytest.mark.parametrize("found", [{}, {"format": "2"}, {"format": None}])
def test_another_format_is_refused_before_anything_is_compared(found: dict[str, object]) -> None:
    with pytest.raises(ArtefactError, match="the relevance has format"):
        check(found, labels=A)
    with pytest.raises(ArtefactError, match="another label order"):  # a file without a mark
        check(stamp(), labels=A)


NAMES = ("model.safetensors", "adapter/config.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "finetune-baseline"
    (path / "adapter").mkdir(parents=True)
    for name in NAMES:
        (path / name).write_bytes(b"\0" * 64)
    write_record(path)
    return path


def write_record(folder: Path, status: str = "done") -> StageRecord:
    record = StageRecord(
        status=status,  # type: ignore[arg-type]
        stage="finetune",
        tag="baseline",
        options={},
        sections={},
        seed=0,
        started="2026-01-01T00:00:00",
        outputs={name: hash_file(folder / name) for name in NAMES},
        facts={name: Facts.of(folder / name) for name in NAMES},
    )
    write_json(folder / "stage.json", record.model_dump(mode="json"))
    return record


def flip(path: Path, *, keep_time: bool = False) -> None:
    """Turn one bit over; the size stays, and the time if asked for."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if keep_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def states(folder: Path, **options: bool) -> list[str]:
    return [
        file.state
        for file in examine_files(
            folder, StageRecord.model_validate_json((folder / "stage.json").read_text()), **options
        )
    ]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are hashed from here on."""
    seen: list[Path] = []

    def record(path: Path) -> str:
        seen.append(path)
        return hash_file(path)

    monkeypatch.setattr(integrity, "hash_file", record)
    return seen


def test_files_that_nobody_touched_are_not_read(folder: Path, hashed: list[Path]) -> None:
    assert (states(folder), hashed) == (["whole", "whole"], [])


def test_a_copy_with_other_times_is_hashed_and_passes(folder: Path, hashed: list[Path]) -> None:
    for name in NAMES:
        os.utime(folder / name, ns=(0, 0))
    assert states(folder) == ["whole", "whole"]
    assert hashed == [folder / name for name in NAMES]
    assert states(folder) == ["whole", "whole"]
    assert len(hashed) == 2  # once in a process


def test_a_record_without_sizes_and_times_is_hashed(folder: Path) -> None:
    path = folder / NAMES[0]
    assert examine_file(path, hash_file(path)).state == "whole"
    assert examine_file(path, "0" * 64).state == "changed"


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_and_a_lost_file_are_seen(folder: Path, name: str) -> None:
    flip(folder / name)
    assert sorted(states(folder)) == ["changed", "whole"]
    (folder / name).unlink()
    assert sorted(states(folder)) == ["missing", "whole"]


def test_another_size_is_enough(folder: Path, hashed: list[Path]) -> None:
    (folder / NAMES[0]).write_bytes(b"")
    assert (states(folder), hashed) == (["changed", "whole"], [])


def test_a_flipped_bit_behind_the_same_time_is_seen_in_full(folder: Path) -> None:
    flip(folder / NAMES[0], keep_time=True)
    assert states(folder) == ["whole", "whole"]
    assert states(folder, fully=True) == ["changed", "whole"]


def test_readers_ask_for_the_hash_whatever_the_time_says(folder: Path) -> None:
    require_recorded(folder)
    require_recorded(folder, NAMES[0])
    flip(folder / NAMES[0], keep_time=True)
    require_recorded(folder, NAMES[1])
    for names in ((), NAMES[:1]):
        with pytest.raises(
            ArtefactError, match=r"of the stage 'finetune-baseline' is damaged, or was changed"
        ) as caught:
            require_recorded(folder, *names)
    assert caught.value.where == str(folder / NAMES[0])
    assert (
        caught.value.todo
        == f"restore the file, or make it again: plant finetune --run {folder.parent} --tag "
        "baseline --force"
    )
    assert caught.value.exit_code == 4


def test_a_lost_file_is_told(folder: Path) -> None:
    (folder / NAMES[1]).unlink()
    with pytest.raises(
        ArtefactError, match=r"'adapter/config.json' of the stage 'finetune-baseline' is gone"
    ):
        require_recorded(folder, NAMES[1])


def test_what_was_laid_there_later_and_what_is_not_finished_passes(folder: Path) -> None:
    flip(folder / NAMES[0])
    require_recorded(folder, "edits.yaml")
    with pytest.raises(ArtefactError, match="is damaged"):
        require_recorded(folder, NAMES[0])
    write_record(folder, status="running")
    flip(folder / NAMES[0])
    require_recorded(folder, NAMES[0])
    (folder / "stage.json").unlink()
    require_recorded(folder, NAMES[0])
    write_record(folder)
    flip(folder / NAMES[0])
    with pytest.raises(ArtefactError, match="is damaged"):
        require_recorded(folder, NAMES[0])


def test_a_hash_is_taken_again_when_the_file_was_touched(folder: Path, hashed: list[Path]) -> None:
    path = folder / NAMES[0]
    before = hash_unchanged(path)
    assert hash_unchanged(path) == before
    flip(path, keep_time=True)
    assert hash_unchanged(path) != before
    assert len(hashed) == 2


def test_only_the_named_files_are_looked_at(folder: Path) -> None:
    found = examine_files(folder, write_record(folder), ["adapter/config.json", "unknown"])
    assert [(file.name, file.path, file.state) for file in found] == [
        ("adapter/config.json", folder / "adapter/config.json", "whole")
    ]
