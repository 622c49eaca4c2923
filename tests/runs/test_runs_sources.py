"""Files and other runs that a stage reads are told apart by what they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plant_cli.api import Options, option
from plant_cli.data.files import hash_file
from plant_cli.data.records import StageRecord
from plant_cli.runs.changes import find_stale_inputs, hash_source, hash_sources, stage_key
from plant_cli.runs.folder import Run

Make = Callable[..., StageRecord]


class ReaderOptions(Options):
    systems: list[str] = option([], "Systems.", path=True)
    order: str | None = option(None, "A file.", path=True)
    name: str = option("a.txt", "No path.")


def test_files_are_hashed_and_what_is_no_path_or_not_there_is_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    options = ReaderOptions(systems=["finetune", str(tmp_path / "a.txt"), str(tmp_path / "gone.txt")])
    assert hash_sources(options, run.path) == {str(tmp_path / "a.txt"): hash_file(tmp_path / "a.txt")}
    assert hash_sources(ReaderOptions(order=str(run.path)), run.path) == {}  # its own stages are inputs


def test_another_run_is_what_its_system_left(tmp_path: Path, make_record: Make) -> None:
    other = Run.create(tmp_path / "other")
    assert hash_source(tmp_path) is None
    seen = [hash_source(other.path)]
    for stage, tag in (("finetune", None), ("predict", None), ("predict", "b"), ("mig", None)):
        folder = other.stage(stage, tag)
        folder.path.mkdir()
        (folder.path / "x").write_text(stage)
        folder.write(make_record(stage, tag, status="done", outputs=folder.hash_outputs()))
        seen.append(hash_source(other.path))
    assert len({*seen}) == 3  # neither the tagged system nor the relevance is of the one without a tag
    assert hash_source(other.path / "finetune") == seen[-1]
    assert hash_source(other.path / "finetune-b") not in seen


def test_what_an_unfinished_stage_has_left_is_no_system(tmp_path: Path, make_record: Make) -> None:
    other = Run.create(tmp_path / "other")
    none = hash_source(other.path)
    folder = other.stage("finetune", None)
    folder.path.mkdir()
    (folder.path / "x").write_text("x")
    folder.write(make_record("finetune", None, status="running", outputs=folder.hash_outputs()))
    assert hash_source(other.path) == none


def test_a_file_with_other_contents_makes_a_stage_stale(run: Run, tmp_path: Path, make_record: Make) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    record = make_record("eval", files={str(file): hash_file(file)})
    assert find_stale_inputs(record, run) == []
    assert stage_key(record, "d") != stage_key(make_record("eval"), "d")
    file.write_text("b")
    assert find_stale_inputs(record, run) == [f"the contents of '{file}' have changed"]
    file.unlink()
    assert find_stale_inputs(record, run) == []  # like a corpus that is no longer there
