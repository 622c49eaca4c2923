from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.artefacts.records import StageRecord
from plant_cli.base.hashing import hash_json
from plant_cli.runs.folder import Run
from plant_cli.runs.stage import StageFolder

Make = Callable[..., StageRecord]


@pytest.fixture
def done(run: Run, make_record: Make) -> StageFolder:
    folder = run.stage("mig")
    folder.begin(make_record())
    (folder.path / "mig.txt").write_text("old")
    folder.finish(make_record(status="done", outputs=folder.hash_outputs()))
    return folder


def _names(run: Run) -> list[str]:
    return sorted(path.name for path in run.path.iterdir() if path.is_dir())


def test_a_replacement_that_finishes_takes_the_place(run: Run, done: StageFolder, make_record: Make) -> None:
    done.begin(make_record())
    assert not (done.path / "mig.txt").exists()
    assert _names(run) == [".mig.previous", "mig"]
    (done.path / "mig.txt").write_text("new")
    done.finish(make_record(status="done"))
    assert _names(run) == ["mig"]
    assert (done.path / "mig.txt").read_text() == "new"


def test_a_replacement_that_fails_is_kept_aside_and_the_old_one_comes_back(run: Run, done: StageFolder, make_record: Make) -> None:
    done.begin(make_record())
    (done.path / "half.txt").write_text("half")
    assert done.put_back()
    assert _names(run) == [".mig.failed", "mig"]
    assert (done.path / "mig.txt").read_text() == "old"
    assert (run.path / ".mig.failed" / "half.txt").exists()
    assert not done.put_back()


def test_a_replacement_takes_over_what_a_person_laid_beside_the_outputs(run: Run, done: StageFolder, make_record: Make) -> None:
    (done.path / "edits.yaml").write_text("mine")
    (done.path / "checkpoints").mkdir()
    (done.path / "checkpoints" / "scratch").write_text("x")
    done.begin(make_record())
    (done.path / "mig.txt").write_text("new")
    record = make_record(status="done", outputs=done.hash_outputs())
    assert done.finish(record) == ["edits.yaml"]
    assert (done.path / "edits.yaml").read_text() == "mine"
    assert not (done.path / "checkpoints").exists()
    assert done.require("plant mig").outputs.keys() == {"mig.txt"}  # so that a later edit still changes the whole
    before = done.output_hash(record)
    (done.path / "edits.yaml").write_text("other")
    assert done.output_hash(record) != before


def test_nothing_is_taken_over_from_an_attempt_that_did_not_finish(done: StageFolder, make_record: Make) -> None:
    (done.path / "half.txt").write_text("half")
    done.write(make_record(status="failed"))
    done.begin(make_record())
    assert done.finish(make_record(status="done")) == []
    assert not (done.path / "half.txt").exists()


def test_the_finished_one_survives_a_replacement_that_is_restarted(run: Run, done: StageFolder, make_record: Make) -> None:
    done.begin(make_record())
    (done.path / "first.txt").write_text("first attempt")
    done.begin(make_record())
    assert not (done.path / "first.txt").exists()
    assert done.put_back()
    assert (done.path / "mig.txt").read_text() == "old"


def test_a_failed_first_attempt_stays_where_it_is(run: Run, make_record: Make) -> None:
    folder = run.stage("mig")
    folder.begin(make_record())
    (folder.path / "half.txt").write_text("half")
    assert not folder.put_back()
    assert folder.holds_work()


def test_an_empty_attempt_holds_no_work(run: Run, make_record: Make) -> None:
    folder = run.stage("mig")
    assert not folder.holds_work()
    folder.begin(make_record())
    assert not folder.holds_work()


def test_outputs_are_files_without_record_checkpoints_and_links(done: StageFolder, tmp_path: Path) -> None:
    (done.path / "checkpoints").mkdir()
    (done.path / "checkpoints" / "1.bin").write_text("x")
    (done.path / "sub").mkdir()
    (done.path / "sub" / "a.txt").write_text("a")
    (tmp_path / "secret").write_text("s")
    (done.path / "link").symlink_to(tmp_path / "secret")
    assert set(done.hash_outputs()) == {"mig.txt", "sub/a.txt"}


def test_known_hashes_are_trusted_and_additions_change_the_whole(done: StageFolder) -> None:
    record = done.require("plant mig")
    before = done.output_hash(record)
    assert before == hash_json(record.outputs)
    assert done.hash_outputs(known={"mig.txt": "known"}) == {"mig.txt": "known"}
    (done.path / "edits.json").write_text("{}")
    assert done.output_hash(record) != before


def test_a_stage_that_is_not_done_names_the_command(run: Run, make_record: Make) -> None:
    folder = run.stage("mig")
    with pytest.raises(ArtefactError, match="the stage 'mig' has not run") as caught:
        folder.require("plant mig")
    assert caught.value.todo == "plant mig"
    folder.begin(make_record(status="failed"))
    with pytest.raises(ArtefactError, match="is not done: failed"):
        folder.require("plant mig")


def test_a_file_that_is_gone_is_missed(done: StageFolder) -> None:
    (done.path / "mig.txt").unlink()
    with pytest.raises(ArtefactError, match=r"the file 'mig.txt' of the stage 'mig' is gone") as caught:
        done.require("plant mig")
    assert caught.value.todo == "plant mig --force"


def test_a_damaged_record_is_an_error_not_an_absence(done: StageFolder) -> None:
    (done.path / "stage.json").write_text('{"status": "do')
    with pytest.raises(ArtefactError, match="damaged"):
        done.record()
