from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import ArtefactError
from plant_cli.data.corpus_files import CorpusRecord, write_tables
from plant_cli.data.records import StageRecord
from plant_cli.runs.changes import stage_key
from plant_cli.runs.damage import examine_marked, examine_run, is_whole, require_marked, write_mark
from plant_cli.runs.folder import Run


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    for name in ("weights.bin", "position.json"):
        (tmp_path / name).write_bytes(b"0" * 10)
    write_mark(tmp_path / "DONE")
    return tmp_path / "DONE"


def require(mark: Path) -> None:
    require_marked(mark, "the checkpoint", "go on from an earlier one")


def test_a_marked_folder_is_whole_also_when_it_was_copied(mark: Path) -> None:
    require(mark)
    os.utime(mark.parent / "weights.bin", ns=(0, 0))
    require(mark)
    assert {file.state for file in examine_marked(mark)} == {"whole"}
    (mark.parent / "weights.bin").write_bytes(b"0" * 9)
    with pytest.raises(ArtefactError, match=r"'weights.bin' of the checkpoint is damaged"):
        require(mark)


def test_a_lost_file_and_a_flipped_bit_are_told(mark: Path) -> None:
    path = mark.parent / "weights.bin"
    time = path.stat().st_mtime_ns
    path.write_bytes(b"1" + b"0" * 9)
    with pytest.raises(
        ArtefactError, match=r"'weights.bin' of the checkpoint is damaged"
    ) as caught:
        require(mark)
    os.utime(path, ns=(time, time))
    assert {file.state for file in examine_marked(mark)} == {"whole"}  # size and time are the same
    with pytest.raises(ArtefactError, match="damaged"):
        require(mark)
    assert caught.value.todo == "restore the file, or go on from an earlier one"
    path.unlink()
    with pytest.raises(ArtefactError, match=r"'weights.bin' of the checkpoint is gone"):
        require(mark)
    assert [(file.name, file.state) for file in examine_marked(mark)] == [
        ("position.json", "whole"),
        ("weights.bin", "missing"),
    ]


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[1, 2]", '{"outputs": {}, "facts": {}}', '{"outputs": {"../x": "0"}, "facts": {}}'],
)
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


Make = Callable[..., StageRecord]
LABELS = pl.DataFrame(
    {"label": ["A"], "title": [None], "train_count": [1]}, schema_overrides={"title": pl.String}
)


@pytest.fixture
def full(run: Run, make_record: Make) -> Run:
    """A run with a corpus, a finished stage with a checkpoint, a stage under way, and a cache."""
    outputs = write_tables(run.corpus_path, {"labels.parquet": LABELS}, {"documents": 1})
    CorpusRecord(
        source={}, files=[], splits={}, held_out=[], label_hash="l", outputs=outputs
    ).write(run.corpus_path)
    run.bind(data_hash="d", label_hash="l", sources={})
    done = run.stage("finetune", "baseline")
    done.begin(make_record("finetune", "baseline"))
    for name in ("model.bin", "adapter/config.json", "edits.yaml"):
        (done.path / name).parent.mkdir(parents=True, exist_ok=True)
        (done.path / name).write_text("old")
    hashes = {name: digest for name, digest in done.hash_outputs().items() if name != "edits.yaml"}
    record = make_record("finetune", "baseline", status="done", outputs=hashes)
    done.finish(record.model_copy(update={"key": stage_key(record, "d")}))
    (done.path / "checkpoints" / "step-1").mkdir(
        parents=True
    )  # of an earlier version, which kept them
    (done.path / "checkpoints" / "step-1" / "weights.bin").write_text("old")
    write_mark(done.path / "checkpoints" / "step-1" / "DONE")
    begun = run.stage("predict")
    begun.begin(make_record("predict"))
    (begun.path / "scores.bin").write_text("half")
    (run.path / "cache" / "hidden-train").mkdir(parents=True)
    (run.path / "cache" / "hidden-train" / "hidden.bin").write_text("old")
    write_mark(run.path / "cache" / "hidden-train" / "done.json")
    return run


def states(run: Run) -> dict[str, str]:
    return {
        f"{folder}/{file.name}": file.state for folder, files in examine_run(run) for file in files
    }


RECORDED = [
    "corpus/labels.parquet",
    "corpus/statistics.json",
    "finetune-baseline/stage.json",
    "finetune-baseline/adapter/config.json",
    "finetune-baseline/model.bin",
    "finetune-baseline/checkpoints/step-1/weights.bin",
    "cache/hidden-train/hidden.bin",
]


def test_every_recorded_file_is_whole(full: Run) -> None:
    assert states(full) == dict.fromkeys(RECORDED, "whole")


@pytest.mark.parametrize("name", [name for name in RECORDED if not name.endswith("stage.json")])
def test_damage_that_left_size_and_time_alone_is_seen(full: Run, name: str) -> None:
    path = full.path / name
    time, content = path.stat().st_mtime_ns, path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    os.utime(path, ns=(time, time))
    assert states(full) == {**dict.fromkeys(RECORDED, "whole"), name: "changed"}
    path.unlink()
    assert states(full) == {**dict.fromkeys(RECORDED, "whole"), name: "missing"}


def test_a_record_that_was_changed_is_told(full: Run) -> None:
    path = full.path / "finetune-baseline" / "stage.json"
    path.write_text(
        path.read_text()
        .replace('"seed": 0', '"seed": 1')
        .replace('"options": {}', '"options": {"k": 1}')
    )
    assert states(full) == {
        **dict.fromkeys(RECORDED, "whole"),
        "finetune-baseline/stage.json": "changed",
    }


@pytest.mark.parametrize(
    ("record", "outputs"),
    [
        ("corpus/splits.json", RECORDED[:2]),
        ("finetune-baseline/stage.json", RECORDED[2:5]),
        ("finetune-baseline/checkpoints/step-1/DONE", RECORDED[5:6]),
        ("cache/hidden-train/done.json", RECORDED[6:]),
    ],
)
def test_a_record_that_cannot_be_read_is_a_changed_file(
    full: Run, record: str, outputs: list[str]
) -> None:
    (full.path / record).write_text("{")
    assert states(full) == {
        record: "changed",
        **{name: "whole" for name in RECORDED if name not in outputs},
    }
    (full.path / record).unlink()
    assert states(full).get(record) == ("missing" if record.startswith("corpus") else None)


def test_a_new_run_has_nothing_to_compare(tmp_path: Path) -> None:
    assert states(Run.create(tmp_path / "new")) == {}
