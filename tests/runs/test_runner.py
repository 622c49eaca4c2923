from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import weakref
from pathlib import Path

import pytest

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    GateFailed,
    Interrupted,
    PlantError,
    RecipeError,
    Request,
    ResourceError,
    Result,
    SilentReporter,
    TrainingError,
    UsageError,
)
from plant_cli.data.files import hash_file, name_temporary, read_json, replacing
from plant_cli.registry import installed
from plant_cli.runs.attempt import RESERVE
from plant_cli.runs.folder import Run
from plant_cli.runs.runner import RequestRunner, print_config

KEEP_BOTH = "repeat the command with --tag NAME to keep both, or with --force to replace it"
REPLACE_ONE = "repeat the command with --force to replace it"
REPLACE = f"{REPLACE_ONE}, or with --tag NAME to keep both"


def test_a_finished_stage_is_not_replaced_without_force(laboratory, recipe):
    laboratory.run("alpha")
    laboratory.run("gamma")
    folder = laboratory.path / "alpha"
    error = laboratory.fails(UsageError, "", "alpha")
    assert (error.what, error.where, error.todo) == (
        "the stage 'alpha' is finished",
        f"{folder}, which holds alpha.txt",
        REPLACE,
    )
    error = laboratory.fails(UsageError, "with other options or inputs", "alpha", options={"k": 4})
    assert (error.where, error.todo, error.exit_code) == (
        f"{folder}: k was 3 and is now 4",
        KEEP_BOTH,
        2,
    )
    assert (
        laboratory.fails(UsageError, "", "run", options={"recipe": str(recipe)}).todo == REPLACE_ONE
    )  # it is a step of a recipe
    laboratory.run("beta")
    assert laboratory.text("alpha") == "3"
    laboratory.run("alpha", options={"k": 4}, force=True)
    assert laboratory.text("alpha") == "4"
    assert laboratory.fails(UsageError, "", "beta").todo == REPLACE  # its input has changed


def test_a_look_takes_the_place_of_the_last_one(laboratory):
    laboratory.run("glance")
    laboratory.run("glance", options={"k": 4})
    assert laboratory.text("glance") == "4"
    laboratory.on["glance"] = _raise(DataError("odd", where="x", expected="y", todo="z"))
    laboratory.fails(DataError, "odd", "glance", options={"k": 5})
    assert laboratory.text("glance") == "4"


def test_stage_2_takes_the_model_of_the_stage_1_that_it_starts_from(tmp_path, make_record):
    run = Run.create(tmp_path)
    for tag, hidden in ((None, 64), ("wide", 96)):
        model = {
            "backbone": {"name": "tiny", "hidden": hidden},
            "decoder": {"name": "label-attention", "heads": 2},
        }
        folder = run.stage("pretrain-attn", tag)
        folder.begin(make_record("pretrain-attn", tag, status="done", sections={"model": model}))

    def chosen(*sets, **options):
        step = RequestRunner(
            Request(registry=installed(), run_path=tmp_path, sets=sets, flags={"finetune": options})
        ).resolve("finetune", "x")
        return step.sections["model"]["backbone"].get("hidden"), step.sections["model"]["decoder"][
            "heads"
        ]

    assert (chosen(), chosen(planted="wide")) == ((64, 2), (96, 2))
    assert chosen("model.backbone.hidden=32", planted="wide") == (32, 2)
    assert chosen("model.backbone=tiny", planted="lost") == (128, 8)


def test_a_stage_that_another_one_needed_says_so(laboratory):
    laboratory.run("gamma")
    laboratory.fails(UsageError, "the stage 'alpha' is finished, since 'gamma' needed it", "alpha")


def test_a_tag_keeps_both(laboratory):
    laboratory.run("alpha")
    laboratory.run("alpha", tag="wide", options={"k": 9})
    assert (laboratory.text("alpha"), laboratory.text("alpha-wide")) == ("3", "9")
    assert laboratory.record("alpha-wide")["tag"] == "wide"


def test_flags_win_over_sets_over_recipe_over_earlier_stages(laboratory, tmp_path):
    laboratory.run("alpha", flags={"machine": {"seed": 1}})
    recipe = tmp_path / "r.yaml"
    recipe.write_text("machine: {threads: 2}\nbeta: {epochs: 2}\nbeta-x: {epochs: 3}\n")
    laboratory.run("beta", recipe=str(recipe))
    record = laboratory.record("beta")
    assert (
        record["options"]["epochs"],
        record["sections"]["machine"]["seed"],
        record["sections"]["machine"]["threads"],
    ) == (2, 1, 2)
    laboratory.run("beta", tag="x", recipe=str(recipe))
    laboratory.run("beta", tag="y", recipe=str(recipe), sets=["beta.epochs=4"])
    laboratory.run(
        "beta", tag="z", recipe=str(recipe), sets=["beta.epochs=4"], options={"epochs": 5}
    )
    assert [laboratory.record(f"beta-{tag}")["options"]["epochs"] for tag in "xyz"] == [3, 4, 5]
    laboratory.run("beta", tag="x", recipe=str(recipe), options={"epochs": 6}, force=True)
    assert laboratory.record("beta-x")["options"]["epochs"] == 6


def test_what_the_command_says_wins_over_the_recipes_own_section(laboratory, tmp_path):
    laboratory.run("alpha")
    recipe = tmp_path / "r.yaml"
    recipe.write_text("machine: {seed: 1}\nbeta: {machine: {seed: 3}}\nbeta-x: {epochs: 8}\n")
    laboratory.run(
        "beta", tag="x", recipe=str(recipe), sets=["beta.epochs=2"], flags={"machine": {"seed": 5}}
    )
    assert (
        laboratory.record("beta-x")["options"]["epochs"],
        laboratory.record("beta-x")["seed"],
    ) == (2, 5)
    laboratory.on["beta"] = lambda context: os.kill(os.getpid(), signal.SIGINT) or 1 / 0
    laboratory.fails(ZeroDivisionError, "", "beta", tag="y", recipe=str(recipe))
    laboratory.fails(
        UsageError,
        "cannot be continued with other options",
        "beta",
        tag="y",
        sets=["beta.epochs=9"],
        resume=True,
    )


def test_a_mistake_in_the_request_leaves_no_trace(laboratory):
    for wrong, error in (
        ({"options": {"q": 1}}, RecipeError),
        ({"sets": ["alpha.q=1"]}, RecipeError),
        ({"sets": ["alhpa.k=1"]}, RecipeError),
        ({"flags": {"data": {"dataset": "fils"}}}, ComponentError),
        ({"recipe": "absent.yaml"}, RecipeError),
    ):
        laboratory.fails(error, "", "alpha", **wrong)
    assert not laboratory.path.exists()
    laboratory.fails(ComponentError, "no stage named 'alpah'", "alpah")


def test_a_missing_input_names_the_command(laboratory):
    assert (
        laboratory.fails(ArtefactError, "the stage 'alpha' has not run", "beta").todo
        == f"plant alpha --run {laboratory.path}"
    )
    laboratory.run("alpha")
    laboratory.run("beta")  # nothing had been made, so nothing stands in the way


def test_ensure_runs_what_is_missing_and_keeps_what_is_valid(laboratory):
    laboratory.run("gamma")
    laboratory.run("gamma", tag="b")
    laboratory.run("gamma", tag="c", options={"wanted": 3})
    assert laboratory.calls == ["alpha"]
    assert laboratory.record("gamma")["inputs"].keys() == {"alpha"}


def test_ensure_replaces_what_does_not_fit_only_with_force(laboratory):
    laboratory.run("alpha", options={"k": 8})
    assert (
        "k was 8 and is now 5"
        in laboratory.fails(UsageError, "", "gamma", options={"wanted": 5}).where
    )
    assert laboratory.text("alpha") == "8"
    laboratory.run("gamma", options={"wanted": 5}, force=True)
    assert laboratory.text("gamma") == "5"


def test_shared_flags_reach_an_ensured_stage(laboratory):
    laboratory.run("gamma", flags={"machine": {"seed": 7}, "data": {"path": "x.csv"}})
    sections = laboratory.record("alpha")["sections"]
    assert (sections["machine"]["seed"], sections["data"]["path"]) == (7, "x.csv")


def test_a_stale_input_is_warned_about(laboratory):
    laboratory.run("alpha")
    laboratory.run("gamma")
    laboratory.run("alpha", options={"k": 4}, force=True)
    laboratory.on["look"] = lambda context: context.input("gamma")
    laboratory.run("look")
    assert any(
        "'gamma' is out of date: its input 'alpha' has changed" in line
        for line in laboratory.reporter.warnings
    )


def test_actions_leave_nothing_and_need_no_lock(laboratory):
    laboratory.run("alpha")
    before = sorted(path.relative_to(laboratory.path) for path in laboratory.path.rglob("*"))
    seen = []
    laboratory.on["look"] = lambda context: seen.append((context.folder, context.input("alpha")))
    with Run.hold(laboratory.path, "finetune"):
        laboratory.run("look")
    assert seen == [(laboratory.path, laboratory.path / "alpha")]
    assert (
        sorted(path.relative_to(laboratory.path) for path in laboratory.path.rglob("*")) == before
    )


def test_an_action_whose_input_is_made_anew_meanwhile_is_refused(laboratory):
    def look(context):
        context.input("alpha")
        context.confirm_inputs()
        laboratory.run("alpha", force=True)  # by another process, with the same options
        if asking:
            context.confirm_inputs()  # before it writes elsewhere
        return Result()

    def stumble(context):
        shutil.rmtree(context.input("alpha"))
        (context.input("alpha") / "alpha.txt").read_text()

    laboratory.run("alpha")
    laboratory.on["look"] = look
    for asking in (False, True):  # noqa: B007  # `look` reads it
        laboratory.fails(
            ArtefactError, "'alpha' was made anew, or removed, while it was read", "look"
        )
    laboratory.on["look"] = stumble
    error = laboratory.fails(ArtefactError, "was made anew, or removed", "look")
    assert isinstance(error.__cause__, ArtefactError)


def test_a_stage_waits_for_nobody(laboratory):
    laboratory.run("alpha")
    with (
        Run.hold(laboratory.path, "finetune"),
        pytest.raises(ArtefactError, match="another process is writing to this run: finetune"),
    ):
        laboratory.run("beta")


def test_a_disk_that_an_action_fills_is_the_one_it_writes_to(laboratory, tmp_path):
    def write(context):
        with replacing(tmp_path / "elsewhere" / "out.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")

    laboratory.on["outside"] = write
    error = laboratory.fails(ResourceError, "the disk is full", "outside")
    assert error.where.startswith(f"{tmp_path}/elsewhere/out.csv; ")
    assert "another -O" in error.todo
    assert "--resume" not in error.todo


def test_an_action_that_finds_no_run_says_why(laboratory):
    laboratory.on["look"] = lambda context: context.input("alpha")
    laboratory.fails(ArtefactError, "there is no run", "look")
    assert not laboratory.path.exists()
    laboratory.on["outside"] = lambda context: context.corpus()
    laboratory.fails(UsageError, "works outside any run", "outside")


def test_the_runs_recipe_repeats_the_run(laboratory, tmp_path):
    laboratory.run(
        "alpha", options={"k": 2}, flags={"machine": {"seed": 3}, "data": {"path": "d.csv"}}
    )
    laboratory.run("beta", options={"epochs": 2})
    laboratory.run("beta", tag="x", options={"epochs": 4}, flags={"machine": {"seed": 5}})
    first = laboratory.path / "recipe.yaml"
    text = first.read_text()
    laboratory.path = tmp_path / "again"
    laboratory.run("run", options={"recipe": str(first)})
    assert (laboratory.path / "recipe.yaml").read_text() == text
    assert (laboratory.text("alpha"), laboratory.text("beta"), laboratory.text("beta-x")) == (
        "2",
        "22",
        "2222",
    )
    assert laboratory.record("beta-x")["sections"]["machine"]["seed"] == 5
    assert laboratory.record("beta")["sections"]["machine"]["seed"] == 3


def test_the_runs_recipe_puts_inputs_before_what_reads_them(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    laboratory.run("alpha", force=True)  # started last now
    sections = [
        line.rstrip(":")
        for line in (laboratory.path / "recipe.yaml").read_text().splitlines()
        if line.endswith(":")
    ]
    assert [name for name in sections if name in ("alpha", "beta")] == ["alpha", "beta"]


def test_print_config_shows_what_would_run(laboratory):
    request = {
        "registry": laboratory.registry,
        "run_path": laboratory.path,
        "flags": {"alpha": {"k": 9}},
    }
    text = print_config(Request(**request), "alpha", "x")
    assert "alpha-x:\n  k: 9\n" in text
    assert not laboratory.path.exists()


def test_a_corpus_that_is_not_there_blocks_nothing_later(laboratory):
    laboratory.on["alpha"] = lambda context: context.corpus()
    laboratory.fails(DataError, "", "alpha", flags={"data": {"path": "absent.parquet"}})
    (laboratory.path / "alpha" / "alpha.txt").unlink()
    laboratory.run("alpha", flags={"data": {"path": str(laboratory.data)}})
    assert laboratory.record("alpha")["status"] == "done"
    assert isinstance(laboratory.reporter, SilentReporter)
    assert Path(laboratory.record("alpha")["sections"]["data"]["path"]) == laboratory.data


@pytest.mark.parametrize("damage", ["flip", "empty", "remove"])
def test_damaged_or_missing_results_are_not_passed_over(laboratory, damage):
    laboratory.run("alpha")
    path = laboratory.path / "alpha" / "alpha.txt"
    if damage == "remove":
        path.unlink()
    else:
        path.write_text({"flip": "2", "empty": ""}[damage])
    assert (
        laboratory.fails(
            ArtefactError, r"the file 'alpha.txt' of the stage 'alpha' is", "alpha", resume=True
        ).todo
        == "restore the file, or make it again: repeat the command with --force"
    )
    laboratory.fails(ArtefactError, r"alpha\.txt", "beta")
    laboratory.run("alpha", force=True)
    assert laboratory.text("alpha") == "3"
    laboratory.run("beta")


def test_a_stage_that_lost_its_record_is_not_made_anew_in_silence(laboratory):
    laboratory.run("gamma")
    (laboratory.path / "alpha" / "stage.json").unlink()
    for request in (
        {"tag": "b"},
        {"force": True},
    ):  # --force replaces what was asked for, not what it reads
        error = laboratory.fails(
            ArtefactError, "the stage 'alpha' has lost its record", "gamma", **request
        )
        assert f"plant alpha --run {laboratory.path} --force" in error.todo
    assert laboratory.calls == ["alpha"]


@pytest.mark.parametrize("flags", [{}, {"resume": True}])
def test_a_stage_whose_own_record_is_lost_is_made_anew_with_force_alone(laboratory, flags):
    """No flag is named that would be refused in turn."""
    laboratory.run("alpha")
    (laboratory.path / "alpha" / "stage.json").unlink()
    error = laboratory.fails(
        ArtefactError, "the stage 'alpha' has lost its record", "alpha", **flags
    )
    assert "--resume" not in f"{error.expected} {error.todo}"
    laboratory.run("alpha", force=True)
    assert laboratory.calls == ["alpha", "alpha"]


@pytest.mark.parametrize("flags", [{}, {"resume": True}])
def test_a_kill_while_the_first_record_is_written_leaves_nothing_to_lose(laboratory, flags):
    laboratory.run("alpha")
    folder = laboratory.path / "beta"
    folder.mkdir()
    name_temporary(folder / "stage.json").write_text("{")
    laboratory.run("beta", **flags)
    assert laboratory.text("beta") == "3"


def test_a_run_that_is_removed_while_a_stage_works_does_not_come_back(laboratory):
    laboratory.on["alpha"] = lambda context: shutil.rmtree(context.run_path)
    laboratory.fails(PlantError, "no longer there", "alpha")
    assert not laboratory.path.exists()


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
    raise Interrupted(
        "stopped after epoch 1", where=str(context.folder), expected="3 epochs", todo="--resume"
    )


def test_the_record_tells_what_was_done_with_what(laboratory):
    seen = []
    laboratory.on["alpha"] = lambda context: (
        seen.append(laboratory.record("alpha")["status"]) or context.reporter.warn("rare labels")
    )
    laboratory.run("alpha", flags={"machine": {"seed": 11}})
    assert seen == ["running"]
    laboratory.run("beta")
    record = laboratory.record("alpha")
    assert (record["status"], record["stage"], record["tag"], record["seed"]) == (
        "done",
        "alpha",
        None,
        11,
    )
    assert record["options"] == {"k": 3}
    assert record["outputs"] == {"alpha.txt": hash_file(laboratory.path / "alpha" / "alpha.txt")}
    assert record["warnings"] == laboratory.reporter.warnings == ["rare labels"]
    assert record["summary"] == {"k": 3, "loss": None}
    assert record["started"] <= record["finished"]
    assert record["peak_memory_gb"] > 0
    assert "plant-cli" in record["environment"]["packages"]
    assert len(record["key"]) == 64
    assert laboratory.record("beta")["inputs"].keys() == {"alpha"}


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="resident memory is read from Linux"
)
def test_memory_kept_back_for_a_failure_is_address_space_alone(laboratory):
    def resident():
        return (
            int(re.search(r"Rss:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) * 1024
        )

    seen = []
    laboratory.on["alpha"] = lambda context: seen.append(resident())
    laboratory.run("alpha")
    before = resident()
    laboratory.run("alpha", force=True)
    assert seen[1] - before < RESERVE / 2


def test_a_failure_keeps_files_and_text_and_can_be_continued(laboratory):
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    laboratory.fails(ValueError, "boom", "alpha")
    record = laboratory.record("alpha")
    assert (record["status"], record["error"], record["outputs"]) == ("failed", "boom", {})
    assert laboratory.text("alpha") == "3"
    assert "--resume" in laboratory.fails(UsageError, "failed: boom", "alpha").todo
    seen = []
    laboratory.on["alpha"] = lambda context: seen.append(context.resume)
    error = laboratory.fails(
        UsageError, "cannot be continued with other options", "alpha", options={"k": 6}, resume=True
    )
    assert "k was 3 and is now 6" in error.where
    laboratory.run("alpha", resume=True)
    assert seen == [True]
    assert laboratory.record("alpha")["status"] == "done"


def test_a_failed_replacement_brings_the_old_one_back(laboratory):
    laboratory.run("alpha")
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    laboratory.fails(ValueError, "boom", "alpha", options={"k": 7}, force=True)
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
        raise TrainingError(
            "collapsed",
            where=f"{context.folder}; see {beside}",
            expected="few labels",
            todo="lower rates",
        )

    laboratory.on["alpha"] = play
    assert (
        laboratory.fails(TrainingError, "", "alpha", force=True).where
        == f"{laboratory.path / '.alpha.failed'}; see {beside}"
    )


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
    assert laboratory.fails(GateFailed, "", "alpha", options={"k": 7}, force=True).where == str(
        laboratory.path / "alpha"
    )
    assert (laboratory.text("alpha"), laboratory.record("alpha")["status"]) == ("7", "failed")
    assert laboratory.record("alpha")["outputs"] == {
        "alpha.txt": hash_file(laboratory.path / "alpha" / "alpha.txt")
    }
    assert not list(laboratory.path.glob(".alpha.*"))
    assert laboratory.reporter.warnings == []


def test_corrections_by_hand_survive_a_replacement_and_make_readers_stale(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    (laboratory.path / "alpha" / "edits.yaml").write_text("deny: [left]")
    assert (
        "its input 'alpha' has changed"
        in laboratory.fails(UsageError, "other options or inputs", "beta").where
    )
    laboratory.run("alpha", force=True)
    assert (laboratory.path / "alpha" / "edits.yaml").read_text() == "deny: [left]"
    laboratory.fails(UsageError, "other options or inputs", "beta")
    laboratory.run("beta", force=True)
    laboratory.run("alpha", force=True)
    laboratory.run("beta", resume=True)  # skipped: nothing has changed since
    assert laboratory.calls.count("beta") == 2


def test_the_first_signal_lets_the_stage_save_and_stop(laboratory):
    before = signal.getsignal(signal.SIGINT)
    laboratory.on["alpha"] = _stop_politely
    assert (
        laboratory.fails(Interrupted, "stopped after epoch 1", "alpha", options={"k": 5}).exit_code
        == 130
    )
    assert laboratory.record("alpha")["status"] == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    laboratory.fails(UsageError, "was interrupted", "alpha")
    found = []
    laboratory.on["alpha"] = lambda context: found.append(
        (context.folder / "checkpoints" / "DONE").exists()
    )
    laboratory.run("alpha", resume=True)  # with the options it was begun with
    assert found == [True]
    assert laboratory.record("alpha")["options"] == {"k": 5}
    assert laboratory.record("alpha")["outputs"].keys() == {"alpha.txt"}


def test_the_second_signal_stops_at_once_and_is_recorded(laboratory):
    laboratory.on["alpha"] = _signal_twice
    assert "--resume" in laboratory.fails(Interrupted, "'alpha' was stopped", "alpha").todo
    assert laboratory.record("alpha")["status"] == "interrupted"


def test_an_interrupted_replacement_can_be_continued_and_then_forgets_the_old_one(laboratory):
    laboratory.run("alpha")
    laboratory.on["alpha"] = _stop_politely
    laboratory.fails(Interrupted, "", "alpha", options={"k": 6}, force=True)
    assert (laboratory.path / ".alpha.previous" / "alpha.txt").read_text() == "3"
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)
    assert laboratory.text("alpha") == "6"
    assert not list(laboratory.path.glob(".alpha.*"))


def test_a_replacement_killed_before_its_record_keeps_the_options_of_what_it_replaces(laboratory):
    laboratory.run("alpha", options={"k": 5})
    (laboratory.path / "alpha").rename(laboratory.path / ".alpha.previous")
    laboratory.run("alpha", resume=True)
    assert laboratory.text("alpha") == "5"
    assert not list(laboratory.path.glob(".alpha.*"))


def test_a_process_that_died_left_an_unfinished_stage(laboratory):
    laboratory.on["alpha"] = _raise(ValueError("boom"))
    laboratory.fails(ValueError, "boom", "alpha")
    path = laboratory.path / "alpha" / "stage.json"
    path.write_text(path.read_text().replace('"failed"', '"running"'))
    laboratory.fails(UsageError, "was interrupted", "alpha")
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)
    assert laboratory.record("alpha")["status"] == "done"


def test_a_process_that_was_killed_is_not_continued_on_other_inputs(laboratory):
    laboratory.run("alpha")

    def die(context):
        assert set(laboratory.record("beta")["inputs"]) == {
            "alpha"
        }  # what was read is recorded at once
        raise ValueError("boom")

    laboratory.on["beta"] = die
    laboratory.fails(ValueError, "boom", "beta")
    path = laboratory.path / "beta" / "stage.json"
    path.write_text(path.read_text().replace('"failed"', '"running"'))
    laboratory.run("alpha", options={"k": 5}, force=True)
    assert (
        "its input 'alpha' has changed"
        in laboratory.fails(UsageError, "cannot be continued", "beta", resume=True).where
    )


def test_a_second_death_before_anything_is_read_forgets_no_input(laboratory, monkeypatch):
    laboratory.run("alpha")
    laboratory.on["beta"] = _raise(ValueError("boom"))
    laboratory.fails(ValueError, "boom", "beta")
    with monkeypatch.context() as patch:
        patch.setattr(
            "plant_cli.runs.stage_context.RunContext.input",
            lambda *_: _raise(ValueError("early"))(None),
        )
        laboratory.fails(ValueError, "early", "beta", resume=True)
    assert set(laboratory.record("beta")["inputs"]) == {"alpha"}


def test_a_file_that_an_option_names_is_recorded_and_may_not_change(laboratory, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("a")
    laboratory.run("gamma", options={"notes": str(notes)})
    assert laboratory.record("gamma")["files"] == {str(notes): hash_file(notes)}
    notes.write_text("b")
    error = laboratory.fails(
        UsageError, "with other options or inputs", "gamma", options={"notes": str(notes)}
    )
    assert f"the contents of '{notes}' have changed" in error.where


def test_resuming_what_is_done_does_nothing(laboratory):
    laboratory.run("alpha")
    result = laboratory.run("alpha", resume=True)
    assert result == Result(summary={"k": 3, "loss": None})
    assert laboratory.calls == ["alpha"]
    assert laboratory.reporter.notes == ["alpha: unchanged, skipped"]


def test_force_and_resume_together_continue_what_was_stopped_and_replace_what_changed(laboratory):
    def stop(context):
        raise Interrupted("stopped", expected="", todo="")

    resumed = []
    laboratory.on["alpha"] = stop
    laboratory.fails(Interrupted, "", "alpha")
    laboratory.on["alpha"] = lambda context: resumed.append(context.resume) or {}
    laboratory.run("alpha", resume=True, force=True)
    laboratory.run("alpha", resume=True, force=True, options={"k": 5})
    assert resumed == [True, False]
    assert laboratory.text("alpha") == "5"


def test_a_full_disk_is_a_resource_error_even_if_the_record_cannot_be_written(
    laboratory, monkeypatch
):
    full = OSError(errno.ENOSPC, "No space left on device", "model.safetensors")

    def fill(context):
        monkeypatch.setattr(
            "plant_cli.runs.folder.write_json", lambda path, value: _raise(full)(None)
        )
        raise full

    laboratory.on["alpha"] = fill
    error = laboratory.fails(ResourceError, "the disk is full", "alpha")
    assert error.exit_code == 6
    assert "are kept" in error.todo
    monkeypatch.undo()
    assert laboratory.text("alpha") == "3"
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")]
)
def test_memory_that_ran_out_is_a_resource_error(laboratory, error):
    laboratory.on["alpha"] = _raise(error)
    todo = laboratory.fails(ResourceError, "memory ran out", "alpha").todo
    assert ("--micro-batch" in todo) == ("CUDA" in str(error))  # the stage has no batches
    assert ("close other programs" in todo) == isinstance(error, MemoryError)
    assert laboratory.record("alpha")["status"] == "failed"
    laboratory.on["look"] = _raise(error)
    laboratory.fails(ResourceError, "memory ran out", "look")


def test_an_error_with_advice_is_handed_on_unchanged(laboratory):
    advice = UsageError("no such label", where="L9", expected="a label", todo="look")
    laboratory.on["alpha"] = _raise(advice)
    error = laboratory.fails(UsageError, "", "alpha")
    assert error is advice
    assert laboratory.record("alpha")["error"] == "no such label"


@pytest.mark.parametrize("name", ["alpha", "look"])
def test_an_error_without_a_place_names_the_command(laboratory, name):
    laboratory.run("alpha", tag="first")
    laboratory.on[name] = _raise(
        TrainingError("collapsed", expected="few labels", todo="lower rates")
    )
    assert laboratory.fails(TrainingError, "collapsed", name).where == f"plant {name}"


def test_what_a_stage_held_is_let_go_before_its_failure_is_recorded(laboratory):
    """Where memory ran out there must be some to write stage.json."""
    held = []

    class Large:
        """Stands for tensors."""

    def fail(context):
        large = Large()
        held.append(weakref.ref(large))
        raise MemoryError("out of memory")

    laboratory.on["alpha"] = fail
    laboratory.fails(ResourceError, "memory ran out", "alpha")
    assert held[0]() is None
    assert laboratory.record("alpha")["status"] == "failed"


def test_another_split_leads_to_the_predictions_of_validation_that_are_there(clinic):
    clinic("finetune", "finetune.network=false", "finetune.scorers=[words]")
    clinic("eval", "eval.bootstrap=0")
    with pytest.raises(UsageError, match="the stage 'predict' is finished") as caught:
        clinic("eval", "eval.bootstrap=0", "eval.split=validation", tag="validation")
    kept = clinic.path / "finetune" / "validation.parquet"
    assert (
        f"plant eval --split validation --predictions {kept} --tag validation" in caught.value.todo
    )
    clinic(
        "eval",
        "eval.bootstrap=0",
        "eval.split=validation",
        f"eval.predictions={kept}",
        tag="validation",
    )
    assert (
        read_json(clinic.path / "eval-validation" / "stage.json", "the record")["status"] == "done"
    )
