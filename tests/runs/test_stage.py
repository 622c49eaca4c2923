from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.data.files import hash_json, name_temporary
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import Run, StageFolder

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


def test_what_a_kill_left_half_written_is_no_work(run: Run) -> None:
    folder = run.stage("mig")
    folder.path.mkdir()
    name_temporary(folder.path / "stage.json").write_text("{")
    assert not folder.holds_work()
    (folder.path / "words.parquet").touch()
    assert folder.holds_work()


def test_what_a_kill_left_half_written_goes_when_the_stage_begins_again(run: Run, make_record: Make) -> None:
    stage = run.stage("mig")
    stage.begin(make_record())
    name_temporary(stage.path / "metrics.json").touch()
    stage.begin(make_record())
    assert [path.name for path in stage.path.iterdir()] == ["stage.json"]


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
    assert caught.value.todo == "restore the file, or make it again: plant mig --force"


def test_a_flipped_bit_is_told(done: StageFolder) -> None:
    (done.path / "mig.txt").write_text("odd")
    with pytest.raises(ArtefactError, match=r"the file 'mig.txt' of the stage 'mig' is damaged, or was changed"):
        done.require("plant mig")
    assert [file.state for file in done.find_damage(done.record() or pytest.fail("no record"))] == ["changed"]


def test_a_copied_folder_is_whole(run: Run, done: StageFolder) -> None:
    shutil.copytree(done.path, run.path / "copied", copy_function=shutil.copyfile)
    assert run.folder("copied").require("plant mig").outputs.keys() == {"mig.txt"}


def test_what_a_kill_left_is_no_output_and_is_removed_on_resuming(run: Run, make_record: Make) -> None:
    folder = run.stage("finetune")
    folder.begin(make_record("finetune"))
    left = [folder.path / f".{'a' * 32}-model.safetensors", folder.path / ".x-model.safetensors"]
    (folder.path / "checkpoints").mkdir()
    for path in [*left, folder.path / "checkpoints" / f".{'b' * 32}-optimizer.pt", folder.path / "model.safetensors"]:
        path.write_text("half")
    assert folder.hash_outputs().keys() == {"model.safetensors"}
    folder.resume(make_record("finetune"))
    assert not left[0].exists()
    assert list((folder.path / "checkpoints").iterdir()) == []


@pytest.fixture
def linked(run: Run, done: StageFolder, tmp_path: Path) -> StageFolder:
    """The finished stage on another disk, with a link in its place."""
    shutil.move(done.path, tmp_path / "disk")
    done.path.symlink_to(tmp_path / "disk")
    return done


def test_a_folder_that_is_a_link_loses_no_newer_result(run: Run, linked: StageFolder, make_record: Make, tmp_path: Path) -> None:
    linked.begin(make_record())
    (linked.path / "mig.txt").write_text("newer")
    linked.finish(make_record(status="done", outputs=linked.hash_outputs()))
    assert _names(run) == ["mig"]
    assert not (run.path / ".mig.previous").is_symlink()
    assert (tmp_path / "disk" / "mig.txt").read_text() == "old"  # what the link led to is the user's
    linked.begin(make_record())
    assert linked.put_back()
    assert (linked.path / "mig.txt").read_text() == "newer"


def test_a_link_comes_back_when_its_replacement_fails(linked: StageFolder, make_record: Make) -> None:
    linked.begin(make_record())
    assert linked.put_back()
    assert linked.path.is_symlink()
    assert linked.require("plant mig").outputs.keys() == {"mig.txt"}


@pytest.mark.parametrize("kind", ["folder", "link", "link to nowhere"])
def test_an_earlier_folder_that_was_not_removed_costs_no_newer_result(
    run: Run, done: StageFolder, make_record: Make, tmp_path: Path, kind: str
) -> None:
    """A kill between the new record and the removal of the old folder leaves both."""
    waiting = run.path / ".mig.previous"
    if kind == "folder":
        shutil.copytree(done.path, waiting)
    else:
        waiting.symlink_to(tmp_path / "nowhere" if kind == "link to nowhere" else tmp_path)
    (done.path / "mig.txt").write_text("newer")
    done.begin(make_record())
    assert done.put_back()
    assert (done.path / "mig.txt").read_text() == "newer"


def test_a_link_to_nowhere_in_place_of_a_stage_is_replaced(run: Run, make_record: Make, tmp_path: Path) -> None:
    (run.path / "mig").symlink_to(tmp_path / "nowhere")
    run.stage("mig").begin(make_record())
    assert not (run.path / "mig").is_symlink()


def test_a_damaged_record_is_an_error_not_an_absence(done: StageFolder) -> None:
    (done.path / "stage.json").write_text('{"status": "do')
    with pytest.raises(ArtefactError, match="damaged"):
        done.record()


@pytest.mark.parametrize("recorded", [True, False])
def test_a_link_to_a_stage_that_another_process_began_is_not_written_through(tmp_path: Path, make_record: Make, recorded: bool) -> None:
    """The copy of a run has links to finished stages; one of them may be replaced while the copy's process starts."""
    theirs, ours = (StageFolder(tmp_path / name / "predict") for name in ("run", "copy"))
    theirs.begin(make_record())
    theirs.finish(make_record(status="done"))
    ours.path.parent.mkdir()
    ours.path.symlink_to(theirs.path)
    theirs.begin(make_record())
    if not recorded:  # not yet
        theirs.drop_record()
    before = {path.name for path in theirs.path.iterdir()}
    ours.begin(make_record())
    (ours.path / "new").touch()
    assert not ours.path.is_symlink()
    assert {path.name for path in theirs.path.iterdir()} == before


def test_the_first_attempt_of_a_stage_on_another_disk_stays_there(run: Run, make_record: Make, tmp_path: Path) -> None:
    elsewhere = tmp_path / "large disk"
    elsewhere.mkdir()
    (run.path / "mig").symlink_to(elsewhere)
    run.stage("mig").begin(make_record())
    assert (elsewhere / "stage.json").exists()


def test_an_interrupted_replacement_names_the_way_on_and_the_finished_one(done: StageFolder, make_record: Make) -> None:
    done.begin(make_record())
    done.write(make_record(status="interrupted"))
    with pytest.raises(ArtefactError, match="is not done: interrupted") as caught:
        done.require("plant mig DATA")
    waits = f"the finished one that it was to replace waits in {done.path.with_name('.mig.previous')}"
    assert caught.value.todo == f"plant mig DATA; with --resume it goes on where it stopped; {waits}"
