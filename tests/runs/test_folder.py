from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import plant_cli
from plant_cli.api import ArtefactError, Interrupted, UsageError
from plant_cli.data.files import read_json, write_json
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import Run


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


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not a run folder and not empty") as caught:
        Run.create(tmp_path)
    assert "--run" in caught.value.todo
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


def test_stages_have_folders_by_name_and_tag(run: Run) -> None:
    assert run.stage("finetune").path == run.path / "finetune"
    assert run.stage("finetune", "baseline.1").path == run.path / "finetune-baseline.1"


@pytest.mark.parametrize("tag", ["../x", "a/b", "", ".x", "Big", "a b", "-a"])
def test_a_tag_cannot_leave_the_run(run: Run, tag: str) -> None:
    with pytest.raises(UsageError, match="cannot name a folder"):
        run.stage("finetune", tag)


def test_stages_are_listed_by_start_and_hidden_ones_are_not(run: Run, make_record: Callable[..., StageRecord]) -> None:
    for name, started in (("mig", "2026-01-03"), ("finetune", "2026-01-02"), ("eval", "2026-01-04")):
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


def test_a_run_is_opened_once_nobody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a run to be free finds it bound to what the other one read, and does not begin it a second time."""

    @contextmanager
    def lock_after_another(path: Path, purpose: str) -> Iterator[None]:
        Run.create(path).bind(data_hash="d", label_hash="l", sources={})
        yield

    monkeypatch.setattr("plant_cli.runs.folder.hold_lock", lock_after_another)
    with Run.hold(tmp_path / "run", "mig") as run:
        assert run.header.data_hash == "d"
    assert Run.open(tmp_path / "run").header.data_hash == "d"


def test_holding_leaves_nothing_in_a_folder_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not a run folder"), Run.hold(tmp_path, "mig"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def _fail_at(path: Path, error: Exception, make_record: Callable[..., StageRecord], *left: str) -> None:
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


def test_a_failed_command_leaves_no_run_in_which_nothing_was_done(tmp_path: Path, make_record: Callable[..., StageRecord]) -> None:
    _fail_at(tmp_path / "mistyped", MISTYPED, make_record)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    _fail_at(tmp_path / "mine", MISTYPED, make_record)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


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


def test_a_run_that_was_there_stays_when_a_command_fails(tmp_path: Path, make_record: Callable[..., StageRecord]) -> None:
    Run.create(tmp_path / "run")
    _fail_at(tmp_path / "run", MISTYPED, make_record)
    assert (tmp_path / "run" / "run.json").exists()


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="a link that leads nowhere") as caught:
        Run.create(tmp_path / "run")
    assert str(tmp_path / "gone") in caught.value.where
