from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import plant_cli
from plant_cli.api import ArtefactError, Interrupted, UsageError
from plant_cli.data.files import hash_json, name_temporary, read_json, write_json
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import Run, StageFolder, copy_run


def test_a_new_run_has_a_header(tmp_path: Path) -> None:
    Run.create(tmp_path / "deep" / "run")
    header = read_json(tmp_path / "deep" / "run" / "run.json", "the header")
    assert header["format"] == 1
    assert header["plant_version"] == plant_cli.__version__
    assert (header["data_hash"], header["label_hash"]) == (None, None)


def test_creating_twice_opens_the_first(tmp_path: Path) -> None:
    run = Run.create(tmp_path)
    run.bind(data_hash="d", label_hash="l", sources={"/x": "1"})
    again = Run.create(tmp_path)
    assert again.header == run.header
    assert again.header.created == run.header.created
    assert again.header.data_hash == "d"


def test_a_cache_that_another_process_left_is_no_other_content(tmp_path: Path) -> None:
    (tmp_path / "cache" / "words-train").mkdir(parents=True)
    assert Run.create(tmp_path).header.data_hash is None
    assert (tmp_path / "cache" / "words-train").is_dir()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not a run folder and not empty") as caught:
        Run.create(tmp_path)
    assert "--run" in caught.value.todo
    with pytest.raises(UsageError, match="not a run folder"), Run.hold(tmp_path, "mig"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(UsageError):
        Run.create(tmp_path / "thesis.tex")


def test_opening_no_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="there is no run") as caught:
        Run.open(tmp_path)
    assert "plant mig" in caught.value.todo


def test_a_run_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"format": 99, "plant_version": "7.0"})
    for reach in (Run.open, Run.create):
        with pytest.raises(ArtefactError, match=r"format 99, written by plant 7\.0"):
            reach(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "finetune/stage.json", "linked/model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, name: str, kind: str) -> None:
    """To read it would never end."""
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    Run.create(run)
    elsewhere.mkdir()
    (run / "linked").symlink_to(elsewhere)
    path = run / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ArtefactError, match=f"'{path.name}' in the run is damaged: it is a {kind}"):
        Run.open(run)


def test_stages_have_folders_by_name_and_tag(run: Run) -> None:
    assert run.stage("finetune").path == run.path / "finetune"
    assert run.stage("finetune", "baseline.1").path == run.path / "finetune-baseline.1"


@pytest.mark.parametrize("tag", ["../x", "a/b", "", ".x", "Big", "a b", "-a"])
def test_a_tag_cannot_leave_the_run(run: Run, tag: str) -> None:
    with pytest.raises(UsageError, match="cannot name a folder"):
        run.stage("finetune", tag)


def test_stages_are_listed_by_start_and_hidden_ones_are_not(
    run: Run, make_record: Callable[..., StageRecord]
) -> None:
    for name, started in (
        ("mig", "2026-01-03"),
        ("finetune", "2026-01-02"),
        ("eval", "2026-01-04"),
    ):
        run.stage(name).begin(make_record(name, started=started))
    (run.path / "eval").rename(run.path / ".eval.failed")
    (run.path / "corpus").mkdir()
    assert [folder.name for folder in run.stages()] == ["finetune", "mig"]


def test_what_a_killed_process_left_of_a_new_run_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / f".{'0' * 32}-run.json").write_text("{")
    (tmp_path / ".lock").touch()
    with Run.hold(tmp_path, "mig") as run:
        assert run.header.data_hash is None
    assert (tmp_path / "run.json").exists()


def test_a_run_is_opened_once_nobody_else_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a run to be free finds it bound to what the other one read, and does not
    begin it a second time.
    """

    @contextmanager
    def lock_after_another(path: Path, purpose: str) -> Iterator[None]:
        Run.create(path).bind(data_hash="d", label_hash="l", sources={})
        yield

    monkeypatch.setattr("plant_cli.runs.folder.hold_lock", lock_after_another)
    with Run.hold(tmp_path / "run", "mig") as run:
        assert run.header.data_hash == "d"
    assert Run.open(tmp_path / "run").header.data_hash == "d"


def _fail_at(
    path: Path, error: Exception, make_record: Callable[..., StageRecord], *left: str
) -> None:
    """An attempt at a stage in a run that is made for it; it leaves these files and fails."""

    def attempt() -> None:
        with Run.hold(path, "mig") as run:
            run.stage("mig").begin(make_record("mig"))
            for name in left:
                (run.path / name).touch()
            raise error

    with pytest.raises(type(error)):
        attempt()


MISTYPED = UsageError("no corpus", where="here", expected="one", todo="name it")


def test_a_failed_command_leaves_no_run_in_which_nothing_was_done(
    tmp_path: Path, make_record: Callable[..., StageRecord]
) -> None:
    _fail_at(tmp_path / "mistyped", MISTYPED, make_record)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    _fail_at(tmp_path / "mine", MISTYPED, make_record)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
    Run.create(tmp_path / "mine")  # a run that was there stays
    _fail_at(tmp_path / "mine", MISTYPED, make_record)
    assert (tmp_path / "mine" / "run.json").exists()


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (MISTYPED, ("mig/counts.parquet",)),
        (MISTYPED, ("notes.txt",)),
        (Interrupted("stopped", where="here", expected="more", todo="go on"), ()),
        (ZeroDivisionError("a bug"), ()),
    ],
)
def test_a_failed_command_removes_nothing_that_may_be_wanted(
    tmp_path: Path, make_record: Callable[..., StageRecord], error: Exception, left: tuple[str, ...]
) -> None:
    _fail_at(tmp_path / "run", error, make_record, *left)
    assert all((tmp_path / "run" / name).exists() for name in ("run.json", "mig/stage.json", *left))


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="a link that leads nowhere") as caught:
        Run.create(tmp_path / "run")
    assert str(tmp_path / "gone") in caught.value.where


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


def test_a_replacement_that_finishes_takes_the_place(
    run: Run, done: StageFolder, make_record: Make
) -> None:
    done.begin(make_record())
    assert not (done.path / "mig.txt").exists()
    assert _names(run) == [".mig.previous", "mig"]
    (done.path / "mig.txt").write_text("new")
    done.finish(make_record(status="done"))
    assert _names(run) == ["mig"]
    assert (done.path / "mig.txt").read_text() == "new"


def test_a_replacement_that_fails_is_kept_aside_and_the_old_one_comes_back(
    run: Run, done: StageFolder, make_record: Make
) -> None:
    done.begin(make_record())
    (done.path / "half.txt").write_text("half")
    assert done.put_back()
    assert _names(run) == [".mig.failed", "mig"]
    assert (done.path / "mig.txt").read_text() == "old"
    assert (run.path / ".mig.failed" / "half.txt").exists()
    assert not done.put_back()


def test_a_replacement_takes_over_what_a_person_laid_beside_the_outputs(
    run: Run, done: StageFolder, make_record: Make
) -> None:
    (done.path / "edits.yaml").write_text("mine")
    (done.path / "checkpoints").mkdir()
    (done.path / "checkpoints" / "scratch").write_text("x")
    done.begin(make_record())
    (done.path / "mig.txt").write_text("new")
    record = make_record(status="done", outputs=done.hash_outputs())
    assert done.finish(record) == ["edits.yaml"]
    assert (done.path / "edits.yaml").read_text() == "mine"
    assert not (done.path / "checkpoints").exists()
    assert done.require("plant mig").outputs.keys() == {
        "mig.txt"
    }  # so that a later edit still changes the whole
    before = done.output_hash(record)
    (done.path / "edits.yaml").write_text("other")
    assert done.output_hash(record) != before


def test_a_finished_stage_keeps_no_checkpoints(done: StageFolder, make_record: Make) -> None:
    done.resume(make_record())
    (done.path / "checkpoints").mkdir()
    done.finish(make_record(status="done"))
    assert not (done.path / "checkpoints").exists()


def test_nothing_is_taken_over_from_an_attempt_that_did_not_finish(
    done: StageFolder, make_record: Make
) -> None:
    (done.path / "half.txt").write_text("half")
    done.write(make_record(status="failed"))
    done.begin(make_record())
    assert done.finish(make_record(status="done")) == []
    assert not (done.path / "half.txt").exists()


def test_the_finished_one_survives_a_replacement_that_is_restarted(
    run: Run, done: StageFolder, make_record: Make
) -> None:
    done.begin(make_record())
    (done.path / "first.txt").write_text("first attempt")
    done.begin(make_record())
    assert not (done.path / "first.txt").exists()
    assert done.put_back()
    assert (done.path / "mig.txt").read_text() == "old"


def test_only_what_is_beside_the_record_and_whole_is_work(run: Run, make_record: Make) -> None:
    folder = run.stage("mig")
    assert not folder.holds_work()
    folder.begin(make_record())
    name_temporary(folder.path / "words.parquet").write_text("{")  # left by a kill
    assert not folder.holds_work()
    folder.begin(make_record())
    assert [path.name for path in folder.path.iterdir()] == ["stage.json"]
    (folder.path / "words.parquet").touch()
    assert not folder.put_back()  # a failed first attempt stays where it is
    assert folder.holds_work()


def test_outputs_are_files_without_record_checkpoints_and_links(
    done: StageFolder, tmp_path: Path
) -> None:
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
    folder.begin(make_record())  # what `os._exit` and SIGKILL leave
    with pytest.raises(
        ArtefactError, match="is not done: its process is at work, or ended without a word"
    ) as caught:
        folder.require("plant mig")
    assert caught.value.todo == "plant mig; with --resume it goes on where it stopped"


def test_a_file_that_is_changed_or_gone_is_damage(done: StageFolder) -> None:
    (done.path / "mig.txt").write_text("odd")
    with pytest.raises(
        ArtefactError, match=r"the file 'mig.txt' of the stage 'mig' is damaged, or was changed"
    ):
        done.require("plant mig")
    assert [file.state for file in done.find_damage(done.record() or pytest.fail("no record"))] == [
        "changed"
    ]
    (done.path / "mig.txt").unlink()
    with pytest.raises(
        ArtefactError, match=r"the file 'mig.txt' of the stage 'mig' is gone"
    ) as caught:
        done.require("plant mig")
    assert caught.value.todo == "restore the file, or make it again: plant mig --force"
    (done.path / "stage.json").write_text('{"status": "do')
    with pytest.raises(ArtefactError, match="damaged"):  # an error, not an absence
        done.record()


def test_a_copied_folder_is_whole(run: Run, done: StageFolder) -> None:
    shutil.copytree(done.path, run.path / "copied", copy_function=shutil.copyfile)
    assert run.folder("copied").require("plant mig").outputs.keys() == {"mig.txt"}


def test_what_a_kill_left_is_no_output_and_is_removed_on_resuming(
    run: Run, make_record: Make
) -> None:
    folder = run.stage("finetune")
    folder.begin(make_record("finetune"))
    left = [folder.path / f".{'a' * 32}-model.safetensors", folder.path / ".x-model.safetensors"]
    (folder.path / "checkpoints").mkdir()
    for path in [
        *left,
        folder.path / "checkpoints" / f".{'b' * 32}-optimizer.pt",
        folder.path / "model.safetensors",
    ]:
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


def test_a_folder_that_is_a_link_loses_no_newer_result(
    run: Run, linked: StageFolder, make_record: Make, tmp_path: Path
) -> None:
    linked.begin(make_record())
    (linked.path / "mig.txt").write_text("newer")
    linked.finish(make_record(status="done", outputs=linked.hash_outputs()))
    assert _names(run) == ["mig"]
    assert not (run.path / ".mig.previous").is_symlink()
    assert (
        tmp_path / "disk" / "mig.txt"
    ).read_text() == "old"  # what the link led to is the user's
    linked.begin(make_record())
    assert linked.put_back()
    assert (linked.path / "mig.txt").read_text() == "newer"


def test_a_link_comes_back_when_its_replacement_fails(
    linked: StageFolder, make_record: Make
) -> None:
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


def test_a_link_to_nowhere_in_place_of_a_stage_is_replaced(
    run: Run, make_record: Make, tmp_path: Path
) -> None:
    (run.path / "mig").symlink_to(tmp_path / "nowhere")
    run.stage("mig").begin(make_record())
    assert not (run.path / "mig").is_symlink()
    (tmp_path / "large disk").mkdir()
    (run.path / "finetune").symlink_to(tmp_path / "large disk")
    run.stage("finetune").begin(make_record())
    assert (
        tmp_path / "large disk" / "stage.json"
    ).exists()  # the first attempt stays on the disk that was meant


@pytest.mark.parametrize("recorded", [True, False])
def test_a_link_to_a_stage_that_another_process_began_is_not_written_through(
    tmp_path: Path, make_record: Make, recorded: bool
) -> None:
    """The copy of a run has links to finished stages; one of them may be replaced while the
    copy's process starts.
    """
    theirs, ours = (StageFolder(tmp_path / name / "predict") for name in ("run", "copy"))
    theirs.begin(make_record())
    theirs.finish(make_record(status="done"))
    ours.path.parent.mkdir()
    ours.path.symlink_to(theirs.path)
    theirs.begin(make_record())
    if not recorded:  # not yet
        (theirs.path / "stage.json").unlink()
    before = {path.name for path in theirs.path.iterdir()}
    ours.begin(make_record())
    (ours.path / "new").touch()
    assert not ours.path.is_symlink()
    assert {path.name for path in theirs.path.iterdir()} == before


def test_an_interrupted_replacement_names_the_way_on_and_the_finished_one(
    done: StageFolder, make_record: Make
) -> None:
    done.begin(make_record())
    done.write(make_record(status="interrupted"))
    with pytest.raises(ArtefactError, match="is not done: interrupted") as caught:
        done.require("plant mig DATA")
    waits = (
        f"the finished one that it was to replace waits in {done.path.with_name('.mig.previous')}"
    )
    assert (
        caught.value.todo == f"plant mig DATA; with --resume it goes on where it stopped; {waits}"
    )


def make_run(path: Path, *, bound: bool) -> None:
    run = Run.create(path)
    (path / "corpus").mkdir()
    (path / "corpus" / "splits.json").write_text("{}")
    (path / "mig").mkdir()
    (path / "recipe.yaml").write_text("data: {path: x}")
    if bound:
        run.bind(data_hash="d", label_hash="l", sources={})


def test_a_copy_has_the_corpus_and_what_is_read_and_vanishes_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    for stage in ("mig", "finetune", "finetune-b"):
        (run / stage / "checkpoints").mkdir(parents=True, exist_ok=True)
        write_json(
            run / stage / "stage.json", {"status": "interrupted" if stage == "finetune" else "done"}
        )
    with copy_run(run) as copy:
        names = {"corpus", "run.json", "recipe.yaml", "mig", "finetune", "finetune-b", "cache"}
        assert {entry.name for entry in copy.iterdir()} == names
        assert Run.open(copy).header.data_hash == "d"
        assert {
            stage for stage in ("mig", "finetune", "finetune-b") if (copy / stage).is_symlink()
        } == {"mig", "finetune-b"}
        (copy / "finetune" / "stage.json").write_text("the copy's")
        (copy / "finetune" / "model").touch()
        assert (copy / "cache").resolve() == run / "cache"
        assert (copy / "finetune" / "checkpoints").resolve() == run / "finetune" / "checkpoints"
    assert not copy.exists()
    assert read_json(run / "finetune" / "stage.json", "the record") == {"status": "interrupted"}
    assert [entry.name for entry in (run / "finetune").iterdir() if entry.name == "model"] == []
    assert (run / "mig" / "checkpoints").is_dir()


def test_before_the_first_stage_there_is_but_the_cache_to_come(tmp_path: Path) -> None:
    run = tmp_path / "none yet"
    with copy_run(run) as copy:
        assert Run.open(copy).header.data_hash is None
        assert {entry.name for entry in copy.iterdir()} == {"run.json", "cache"}
        assert not run.exists()
        (run / "cache").mkdir(parents=True)
        (copy / "cache" / "states").touch()
    assert (run / "cache" / "states").exists()


def test_a_stage_that_is_replaced_while_it_is_looked_at_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    write_json(run / "mig" / "stage.json", {"status": "done"})

    def replaced(path: Path, what: str) -> Any:
        path.unlink()
        return read_json(path, what)

    monkeypatch.setattr("plant_cli.runs.folder.read_json", replaced)
    with copy_run(run) as copy:
        assert not (copy / "mig").exists()


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    (run / "mig" / "stage.json").write_text("{")
    with pytest.raises(ArtefactError, match="damaged"), copy_run(run):
        pass


def test_a_file_that_cannot_be_copied_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    copyfile = shutil.copyfile

    def refuse(source: Path, target: Path) -> Path:
        if source.name == "splits.json":
            raise PermissionError(13, "Permission denied", str(source))
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(PermissionError) as refused, copy_run(run):
        pass
    assert refused.value.filename == str(run / "corpus" / "splits.json")


def test_what_a_kill_left_of_the_runs_own_files_is_removed(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run")
    left = [run.path / f".{'a' * 32}-{name}" for name in ("run.json", "recipe.yaml", "other.csv")]
    for path in left:
        path.write_text("half")
    with Run.hold(run.path, "finetune"):
        assert [path.exists() for path in left] == [False, False, True]
