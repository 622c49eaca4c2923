from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from plant_cli.data.corpus_files import CorpusRecord, write_tables
from plant_cli.data.records import StageRecord
from plant_cli.runs.changes import stage_key
from plant_cli.runs.damage import examine_run, write_mark
from plant_cli.runs.folder import Run

Make = Callable[..., StageRecord]
LABELS = pl.DataFrame({"label": ["A"], "title": [None], "train_count": [1]}, schema_overrides={"title": pl.String})


@pytest.fixture
def full(run: Run, make_record: Make) -> Run:
    """A run with a corpus, a finished stage with a checkpoint, a stage under way, and a cache."""
    outputs = write_tables(run.corpus_path, LABELS, None, {"documents": 1})
    CorpusRecord(source={}, files=[], splits={}, held_out=[], label_hash="l", outputs=outputs).write(run.corpus_path)
    run.bind(data_hash="d", label_hash="l", sources={})
    done = run.stage("finetune", "baseline")
    done.begin(make_record("finetune", "baseline"))
    for name in ("model.bin", "adapter/config.json", "checkpoints/step-1/weights.bin", "edits.yaml"):
        (done.path / name).parent.mkdir(parents=True, exist_ok=True)
        (done.path / name).write_text("old")
    write_mark(done.path / "checkpoints" / "step-1" / "DONE")
    hashes = {name: digest for name, digest in done.hash_outputs().items() if name != "edits.yaml"}
    record = make_record("finetune", "baseline", status="done", outputs=hashes)
    done.finish(record.model_copy(update={"key": stage_key(record, "d")}))
    begun = run.stage("predict")
    begun.begin(make_record("predict"))
    (begun.path / "scores.bin").write_text("half")
    (run.path / "cache" / "hidden-train").mkdir(parents=True)
    (run.path / "cache" / "hidden-train" / "hidden.bin").write_text("old")
    write_mark(run.path / "cache" / "hidden-train" / "done.json")
    return run


def states(run: Run) -> dict[str, str]:
    return {f"{folder}/{file.name}": file.state for folder, files in examine_run(run) for file in files}


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
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1').replace('"options": {}', '"options": {"k": 1}'))
    assert states(full) == {**dict.fromkeys(RECORDED, "whole"), "finetune-baseline/stage.json": "changed"}


@pytest.mark.parametrize(
    ("record", "outputs"),
    [
        ("corpus/splits.json", RECORDED[:2]),
        ("finetune-baseline/stage.json", RECORDED[2:5]),
        ("finetune-baseline/checkpoints/step-1/DONE", RECORDED[5:6]),
        ("cache/hidden-train/done.json", RECORDED[6:]),
    ],
)
def test_a_record_that_cannot_be_read_is_a_changed_file(full: Run, record: str, outputs: list[str]) -> None:
    (full.path / record).write_text("{")
    assert states(full) == {record: "changed", **{name: "whole" for name in RECORDED if name not in outputs}}


def test_a_lost_record_of_the_corpus_is_missing(full: Run) -> None:
    (full.corpus_path / "splits.json").unlink()
    assert states(full)["corpus/splits.json"] == "missing"


def test_a_new_run_has_nothing_to_compare(tmp_path: Path) -> None:
    assert states(Run.create(tmp_path / "new")) == {}
