from __future__ import annotations

import os
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.runs.damage import examine_marked, is_whole, require_marked, write_mark


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    for name in ("weights.bin", "position.json"):
        (tmp_path / name).write_bytes(b"0" * 10)
    write_mark(tmp_path / "DONE")
    return tmp_path / "DONE"


def require(mark: Path, *, fully: bool = False) -> None:
    require_marked(mark, "the checkpoint", "go on from an earlier one", fully=fully)


def test_a_marked_folder_is_whole_also_when_it_was_copied(mark: Path) -> None:
    require(mark)
    require(mark, fully=True)
    os.utime(mark.parent / "weights.bin", ns=(0, 0))
    require(mark)
    assert {file.state for file in examine_marked(mark)} == {"whole"}
    (mark.parent / "weights.bin").write_bytes(b"0" * 9)
    with pytest.raises(ArtefactError, match=r"'weights.bin' of the checkpoint is damaged"):
        require(mark)


def test_a_lost_file_and_a_flipped_bit_are_told(mark: Path) -> None:
    path = mark.parent / "weights.bin"
    path.write_bytes(b"1" + b"0" * 9)
    with pytest.raises(ArtefactError, match=r"'weights.bin' of the checkpoint is damaged") as caught:
        require(mark)
    assert caught.value.todo == "restore the file, or go on from an earlier one"
    path.unlink()
    with pytest.raises(ArtefactError, match=r"'weights.bin' of the checkpoint is gone"):
        require(mark)
    assert [(file.name, file.state) for file in examine_marked(mark)] == [("position.json", "whole"), ("weights.bin", "missing")]


def test_damage_behind_the_same_time_is_seen_in_full(mark: Path) -> None:
    path = mark.parent / "weights.bin"
    time = path.stat().st_mtime_ns
    path.write_bytes(b"1" + b"0" * 9)
    os.utime(path, ns=(time, time))
    require(mark)
    with pytest.raises(ArtefactError, match="damaged"):
        require(mark, fully=True)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"outputs": {}, "facts": {}}', '{"outputs": {"../x": "0"}, "facts": {}}'])
def test_a_mark_that_was_not_written_so_is_refused(mark: Path, content: str) -> None:
    mark.write_text(content)
    with pytest.raises(ArtefactError, match="the mark of a finished folder is damaged"):
        require(mark)
    mark.unlink()
    with pytest.raises(ArtefactError, match="the mark of a finished folder is missing"):
        require(mark)


@pytest.mark.parametrize("damage", ["flip", "flip in place", "halve", "empty", "remove", "mark"])
def test_what_can_be_made_again_is_told_when_it_is_damaged(mark: Path, damage: str) -> None:
    told: list[str] = []
    path = mark.parent / "weights.bin"
    assert is_whole(mark, "the cached states", told.append)
    assert not is_whole(mark.parent / "other" / "DONE", "the cached states", told.append)
    assert told == []
    if damage == "remove":
        path.unlink()
    elif damage == "mark":
        mark.write_text("[1, 2]")
    else:
        before = path.stat()
        path.write_bytes({"halve": b"0" * 5, "empty": b""}.get(damage, b"1" + b"0" * 9))
        if damage == "flip in place":  # size and time say nothing
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_whole(mark, "the cached states", told.append)
    assert len(told) == 1
    assert told[0].endswith("; the cached states are made again")
