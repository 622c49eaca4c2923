from __future__ import annotations

import errno
import os
import re
import signal
import weakref
from pathlib import Path

import pytest

from plant_cli.api import GateFailed, Interrupted, ResourceError, Result, TrainingError, UsageError
from plant_cli.data.files import hash_file
from plant_cli.runs.attempt import RESERVE


def _raise(error):
    def play(context):
        raise error

    return play


def _signal_twice(context):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def _stop_politely(context):
    assert not context.stopping
    os.kill(os.getpid(), signal.SIGTERM)
    assert context.stopping
    (context.folder / "checkpoints").mkdir()
    (context.folder / "checkpoints" / "DONE").touch()
    raise Interrupted("stopped after epoch 1", where=str(context.folder), expected="3 epochs", todo="--resume")


def test_the_record_tells_what_was_done_with_what(laboratory):
    laboratory.on["alpha"] = lambda context: context.reporter.warn("rare labels")
    laboratory.run("alpha", flags={"machine": {"seed": 11}})
    laboratory.run("beta")
    record = laboratory.record("alpha")
    assert (record["status"], record["stage"], record["tag"], record["seed"]) == ("done", "alpha", None, 11)
    assert record["options"] == {"k": 3}
    assert record["outputs"] == {"alpha.txt": hash_file(laboratory.path / "alpha" / "alpha.txt")}
    assert record["warnings"] == laboratory.reporter.warnings == ["rare labels"]
    assert record["summary"] == {"k": 3, "loss": None}
    assert record["started"] <= record["finished"]
    assert record["peak_memory_gb"] > 0
    assert "plant-cli" in record["environment"]["packages"]
    assert len(record["key"]) == 64
    assert laboratory.record("beta")["inputs"].keys() == {"alpha"}


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="resident memory is read from Linux")
def test_memory_kept_back_for_a_failure_is_address_space_alone(laboratory):
    def resident():
        return int(re.search(r"Rss:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) * 1024

    seen = []
    laboratory.on["alpha"] = lambda context: seen.append(resident())
    laboratory.run("alpha")
    before = resident()
    laboratory.run("alpha", force=True)
    assert seen[1] - before < RESERVE / 2


def test_while_it_runs_the_record_says_so(laboratory):
    seen = []
    laboratory.on["alpha"] = lambda context: seen.append(laboratory.record("alpha")["status"])
    laboratory.run("alpha")
    assert seen == ["running"]


def test_a_failure_keeps_files_and_text_and_can_be_continued(laboratory):
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("alpha")
    record = laboratory.record("alpha")
    assert (record["status"], record["error"], record["outputs"]) == ("failed", "boom", {})
    assert laboratory.text("alpha") == "3"
    with pytest.raises(UsageError, match="failed: boom") as caught:
        laboratory.run("alpha")
    assert "--resume" in caught.value.todo
    seen = []
    laboratory.on["alpha"] = lambda context: seen.append(context.resume)
    laboratory.run("alpha", resume=True)
    assert seen == [True]
    assert laboratory.record("alpha")["status"] == "done"


def test_a_failed_replacement_brings_the_old_one_back(laboratory):
    laboratory.run("alpha")
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("alpha", options={"k": 7}, force=True)
    assert laboratory.text("alpha") == "3"
    assert laboratory.record("alpha")["status"] == "done"
    assert (laboratory.path / ".alpha.failed" / "alpha.txt").read_text() == "7"
    assert any("is back in its place" in line for line in laboratory.reporter.warnings)
    del laboratory.on["alpha"]
    laboratory.run("alpha", options={"k": 7}, force=True)
    assert laboratory.text("alpha") == "7"
    assert not list(laboratory.path.glob(".alpha.*"))


def test_a_failed_replacement_is_named_where_it_lies_now(laboratory):
    laboratory.run("alpha")
    beside = laboratory.path / "alpha-tagged"

    def play(context):
        raise TrainingError("collapsed", where=f"{context.folder}; see {beside}", expected="few labels", todo="lower rates")

    laboratory.on["alpha"] = play
    with pytest.raises(TrainingError) as caught:
        laboratory.run("alpha", force=True)
    assert caught.value.where == f"{laboratory.path / '.alpha.failed'}; see {beside}"


def test_a_damaged_record_of_another_stage_does_not_undo_a_finished_one(laboratory):
    laboratory.run("alpha")
    (laboratory.path / "beta-old").mkdir()
    (laboratory.path / "beta-old" / "stage.json").write_text("{")
    laboratory.run("alpha", force=True)
    assert laboratory.record("alpha")["status"] == "done"
    (warning,) = laboratory.reporter.warnings
    assert warning.startswith("'alpha' is done, but recipe.yaml of the run does not have it: ")
    assert str(laboratory.path / "beta-old" / "stage.json") in warning


def test_results_that_miss_a_gate_stay_in_the_place_that_is_named(laboratory):
    laboratory.run("alpha")

    def play(context):
        raise GateFailed("not met", where=str(context.folder), expected="more", todo="look")

    laboratory.on["alpha"] = play
    with pytest.raises(GateFailed) as caught:
        laboratory.run("alpha", options={"k": 7}, force=True)
    assert caught.value.where == str(laboratory.path / "alpha")
    assert (laboratory.text("alpha"), laboratory.record("alpha")["status"]) == ("7", "failed")
    assert laboratory.record("alpha")["outputs"] == {"alpha.txt": hash_file(laboratory.path / "alpha" / "alpha.txt")}
    assert not list(laboratory.path.glob(".alpha.*"))
    assert laboratory.reporter.warnings == []


def test_corrections_by_hand_survive_a_replacement_and_make_readers_stale(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    (laboratory.path / "alpha" / "edits.yaml").write_text("deny: [left]")
    with pytest.raises(UsageError, match="other options or inputs") as caught:
        laboratory.run("beta")
    assert "its input 'alpha' has changed" in caught.value.where
    laboratory.run("alpha", force=True)
    assert (laboratory.path / "alpha" / "edits.yaml").read_text() == "deny: [left]"
    with pytest.raises(UsageError, match="other options or inputs"):
        laboratory.run("beta")
    laboratory.run("beta", force=True)
    laboratory.run("alpha", force=True)
    laboratory.run("beta", resume=True)  # passed over: nothing has changed since
    assert laboratory.calls.count("beta") == 2


def test_the_first_signal_lets_the_stage_save_and_stop(laboratory):
    before = signal.getsignal(signal.SIGINT)
    laboratory.on["alpha"] = _stop_politely
    with pytest.raises(Interrupted, match="stopped after epoch 1") as caught:
        laboratory.run("alpha", options={"k": 5})
    assert caught.value.exit_code == 130
    assert laboratory.record("alpha")["status"] == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(UsageError, match="was interrupted"):
        laboratory.run("alpha")
    found = []
    laboratory.on["alpha"] = lambda context: found.append((context.folder / "checkpoints" / "DONE").exists())
    laboratory.run("alpha", resume=True)  # with the options it was begun with
    assert found == [True]
    assert laboratory.record("alpha")["options"] == {"k": 5}
    assert laboratory.record("alpha")["outputs"].keys() == {"alpha.txt"}


def test_the_second_signal_stops_at_once_and_is_recorded(laboratory):
    laboratory.on["alpha"] = _signal_twice
    with pytest.raises(Interrupted, match="'alpha' was stopped") as caught:
        laboratory.run("alpha")
    assert "--resume" in caught.value.todo
    assert laboratory.record("alpha")["status"] == "interrupted"


def test_an_interrupted_replacement_can_be_continued_and_then_forgets_the_old_one(laboratory):
    laboratory.run("alpha")
    laboratory.on["alpha"] = _stop_politely
    with pytest.raises(Interrupted):
        laboratory.run("alpha", options={"k": 6}, force=True)
    assert (laboratory.path / ".alpha.previous" / "alpha.txt").read_text() == "3"
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)
    assert laboratory.text("alpha") == "6"
    assert not list(laboratory.path.glob(".alpha.*"))


def test_other_options_cannot_continue_it(laboratory):
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("alpha", options={"k": 5})
    with pytest.raises(UsageError, match="cannot be continued with other options") as caught:
        laboratory.run("alpha", options={"k": 6}, resume=True)
    assert "k was 5 and is now 6" in caught.value.where


def test_a_process_that_died_left_an_unfinished_stage(laboratory):
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("alpha")
    path = laboratory.path / "alpha" / "stage.json"
    path.write_text(path.read_text().replace('"failed"', '"running"'))
    with pytest.raises(UsageError, match="was interrupted"):
        laboratory.run("alpha")
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)
    assert laboratory.record("alpha")["status"] == "done"


def test_a_process_that_was_killed_is_not_continued_on_other_inputs(laboratory):
    laboratory.run("alpha")

    def die(context):
        assert set(laboratory.record("beta")["inputs"]) == {"alpha"}  # what was read is recorded at once
        raise ValueError("boom")

    laboratory.on["beta"] = die
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("beta")
    path = laboratory.path / "beta" / "stage.json"
    path.write_text(path.read_text().replace('"failed"', '"running"'))
    laboratory.run("alpha", options={"k": 5}, force=True)
    with pytest.raises(UsageError, match="cannot be continued") as caught:
        laboratory.run("beta", resume=True)
    assert "its input 'alpha' has changed" in caught.value.where


def test_resuming_what_is_done_does_nothing(laboratory):
    laboratory.run("alpha")
    result = laboratory.run("alpha", resume=True)
    assert result == Result(summary={"k": 3, "loss": None})
    assert laboratory.calls == ["alpha"]
    assert laboratory.reporter.notes == ["alpha: unchanged, passed over"]


def test_a_full_disk_is_a_resource_error_even_if_the_record_cannot_be_written(laboratory, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device", "model.safetensors")

    def fill(context):
        monkeypatch.setattr("plant_cli.runs.folder.write_json", lambda path, value: _raise(full)(None))
        raise full

    laboratory.on["alpha"] = fill
    with pytest.raises(ResourceError, match="the disk is full") as caught:
        laboratory.run("alpha")
    assert caught.value.exit_code == 6
    assert "are kept" in caught.value.todo
    monkeypatch.undo()
    assert laboratory.text("alpha") == "3"
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")])
def test_memory_that_ran_out_is_a_resource_error(laboratory, error):
    laboratory.on["alpha"] = _raise(error)
    with pytest.raises(ResourceError, match="memory ran out") as caught:
        laboratory.run("alpha")
    assert "--micro-batch" in caught.value.todo
    assert laboratory.record("alpha")["status"] == "failed"
    laboratory.on["look"] = _raise(error)
    with pytest.raises(ResourceError, match="memory ran out"):
        laboratory.run("look")


def test_an_error_with_advice_is_handed_on_unchanged(laboratory):
    advice = UsageError("no such label", where="L9", expected="a label", todo="look")
    laboratory.on["alpha"] = _raise(advice)
    with pytest.raises(UsageError) as caught:
        laboratory.run("alpha")
    assert caught.value is advice
    assert laboratory.record("alpha")["error"] == "no such label"


@pytest.mark.parametrize(("name", "where"), [("alpha", "alpha"), ("look", ".")])
def test_an_error_without_a_place_is_placed_by_the_attempt(laboratory, name, where):
    laboratory.run("alpha", tag="first")
    laboratory.on[name] = _raise(TrainingError("collapsed", expected="few labels", todo="lower rates"))
    with pytest.raises(TrainingError) as caught:
        laboratory.run(name)
    assert caught.value.where == str(laboratory.path / where)


def test_what_a_stage_held_is_let_go_before_its_failure_is_recorded(laboratory):
    """Where memory ran out there must be some to write stage.json."""
    held = []

    def fail(context):
        large = Large()
        held.append(weakref.ref(large))
        raise MemoryError("out of memory")

    laboratory.on["alpha"] = fail
    with pytest.raises(ResourceError, match="memory ran out"):
        laboratory.run("alpha")
    assert held[0]() is None
    assert laboratory.record("alpha")["status"] == "failed"


class Large:
    """Stands for tensors."""
