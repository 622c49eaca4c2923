from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    Interrupted,
    PlantError,
    RecipeError,
    Request,
    ResourceError,
    Result,
    SilentReporter,
    UsageError,
)
from plant_cli.data.files import name_temporary, replacing
from plant_cli.runs.folder import Run
from plant_cli.runs.runner import print_config


def test_a_finished_stage_is_not_replaced_without_force(laboratory):
    laboratory.run("alpha")
    with pytest.raises(UsageError, match="the stage 'alpha' is finished") as caught:
        laboratory.run("alpha")
    assert "--force" in caught.value.todo
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError) as caught:
        laboratory.run("alpha", options={"k": 4})
    assert "k was 3 and is now 4" in caught.value.where
    assert laboratory.text("alpha") == "3"
    laboratory.run("alpha", options={"k": 4}, force=True)
    assert laboratory.text("alpha") == "4"


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
    assert (record["options"]["epochs"], record["sections"]["machine"]["seed"], record["sections"]["machine"]["threads"]) == (2, 1, 2)
    laboratory.run("beta", tag="x", recipe=str(recipe))
    laboratory.run("beta", tag="y", recipe=str(recipe), sets=["beta.epochs=4"])
    laboratory.run("beta", tag="z", recipe=str(recipe), sets=["beta.epochs=4"], options={"epochs": 5})
    assert [laboratory.record(f"beta-{tag}")["options"]["epochs"] for tag in "xyz"] == [3, 4, 5]
    laboratory.run("beta", tag="x", recipe=str(recipe), options={"epochs": 6}, force=True)
    assert laboratory.record("beta-x")["options"]["epochs"] == 6


def test_what_the_command_says_wins_over_the_recipes_own_section(laboratory, tmp_path):
    laboratory.run("alpha")
    recipe = tmp_path / "r.yaml"
    recipe.write_text("machine: {seed: 1}\nbeta: {machine: {seed: 3}}\nbeta-x: {epochs: 8}\n")
    laboratory.run("beta", tag="x", recipe=str(recipe), sets=["beta.epochs=2"], flags={"machine": {"seed": 5}})
    assert (laboratory.record("beta-x")["options"]["epochs"], laboratory.record("beta-x")["seed"]) == (2, 5)
    laboratory.on["beta"] = lambda context: os.kill(os.getpid(), signal.SIGINT) or 1 / 0
    with pytest.raises(ZeroDivisionError):
        laboratory.run("beta", tag="y", recipe=str(recipe))
    with pytest.raises(UsageError, match="cannot be continued with other options"):
        laboratory.run("beta", tag="y", sets=["beta.epochs=9"], resume=True)


def test_a_mistake_in_the_request_leaves_no_trace(laboratory):
    for wrong, error in (
        ({"options": {"q": 1}}, RecipeError),
        ({"sets": ["alpha.q=1"]}, RecipeError),
        ({"sets": ["alhpa.k=1"]}, RecipeError),
        ({"flags": {"data": {"dataset": "fils"}}}, ComponentError),
        ({"recipe": "absent.yaml"}, RecipeError),
    ):
        with pytest.raises(error):
            laboratory.run("alpha", **wrong)
    assert not laboratory.path.exists()
    with pytest.raises(ComponentError, match="no stage named 'alpah'"):
        laboratory.run("alpah")


def test_a_missing_input_names_the_command(laboratory):
    with pytest.raises(ArtefactError, match="the stage 'alpha' has not run") as caught:
        laboratory.run("beta")
    assert caught.value.todo == f"plant alpha --run {laboratory.path}"
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
    with pytest.raises(UsageError) as caught:
        laboratory.run("gamma", options={"wanted": 5})
    assert "k was 8 and is now 5" in caught.value.where
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
    assert any("'gamma' is out of date: its input 'alpha' has changed" in line for line in laboratory.reporter.warnings)


def test_actions_leave_nothing_and_need_no_lock(laboratory):
    laboratory.run("alpha")
    before = sorted(path.relative_to(laboratory.path) for path in laboratory.path.rglob("*"))
    seen = []
    laboratory.on["look"] = lambda context: seen.append((context.folder, context.input("alpha")))
    with Run.hold(laboratory.path, "finetune"):
        laboratory.run("look")
    assert seen == [(laboratory.path, laboratory.path / "alpha")]
    assert sorted(path.relative_to(laboratory.path) for path in laboratory.path.rglob("*")) == before


def replace_alpha(laboratory):
    """Another process makes the stage anew, with the same options."""
    laboratory.run("alpha", force=True)


def test_an_action_whose_input_is_made_anew_meanwhile_is_refused(laboratory):
    laboratory.run("alpha")
    laboratory.on["look"] = lambda context: (context.input("alpha"), replace_alpha(laboratory), Result())[-1]
    with pytest.raises(ArtefactError, match="'alpha' was made anew, or removed, while it was read"):
        laboratory.run("look")
    laboratory.on["look"] = lambda context: (context.input("alpha"), Result())[-1]
    laboratory.run("look")


def test_an_action_that_stumbles_over_such_a_change_says_so(laboratory):
    def stumble(context):
        shutil.rmtree(context.input("alpha"))
        (context.input("alpha") / "alpha.txt").read_text()

    laboratory.run("alpha")
    laboratory.on["look"] = stumble
    with pytest.raises(ArtefactError, match="was made anew, or removed") as caught:
        laboratory.run("look")
    assert isinstance(caught.value.__cause__, ArtefactError)


def test_an_action_asks_before_it_writes_elsewhere(laboratory):
    def look(context):
        context.input("alpha")
        context.confirm_inputs()
        replace_alpha(laboratory)
        context.confirm_inputs()

    laboratory.run("alpha")
    laboratory.on["look"] = look
    with pytest.raises(ArtefactError, match="was made anew"):
        laboratory.run("look")


def test_a_stage_waits_for_nobody(laboratory):
    laboratory.run("alpha")
    with Run.hold(laboratory.path, "finetune"), pytest.raises(ArtefactError, match="another process is writing to this run: finetune"):
        laboratory.run("beta")


def test_a_disk_that_an_action_fills_is_the_one_it_writes_to(laboratory, tmp_path):
    def write(context):
        with replacing(tmp_path / "elsewhere" / "out.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")

    laboratory.on["outside"] = write
    with pytest.raises(ResourceError, match="the disk is full") as caught:
        laboratory.run("outside")
    assert caught.value.where.startswith(f"{tmp_path}/elsewhere/out.csv; ")
    assert "another -O" in caught.value.todo
    assert "--resume" not in caught.value.todo


def test_an_action_in_no_run_says_how_to_make_one(laboratory):
    laboratory.on["look"] = lambda context: context.input("alpha")
    with pytest.raises(ArtefactError, match="there is no run"):
        laboratory.run("look")
    assert not laboratory.path.exists()


def test_an_action_outside_any_run_cannot_read_one(laboratory):
    laboratory.on["outside"] = lambda context: context.corpus()
    with pytest.raises(UsageError, match="works outside any run"):
        laboratory.run("outside")


def test_the_runs_recipe_repeats_the_run(laboratory, tmp_path):
    laboratory.run("alpha", options={"k": 2}, flags={"machine": {"seed": 3}, "data": {"path": "d.csv"}})
    laboratory.run("beta", options={"epochs": 2})
    laboratory.run("beta", tag="x", options={"epochs": 4}, flags={"machine": {"seed": 5}})
    first = laboratory.path / "recipe.yaml"
    text = first.read_text()
    laboratory.path = tmp_path / "again"
    laboratory.run("run", options={"recipe": str(first)})
    assert (laboratory.path / "recipe.yaml").read_text() == text
    assert (laboratory.text("alpha"), laboratory.text("beta"), laboratory.text("beta-x")) == ("2", "22", "2222")
    assert laboratory.record("beta-x")["sections"]["machine"]["seed"] == 5
    assert laboratory.record("beta")["sections"]["machine"]["seed"] == 3


def test_the_runs_recipe_puts_inputs_before_what_reads_them(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    laboratory.run("alpha", force=True)  # started last now
    sections = [line.rstrip(":") for line in (laboratory.path / "recipe.yaml").read_text().splitlines() if line.endswith(":")]
    assert [name for name in sections if name in ("alpha", "beta")] == ["alpha", "beta"]


def test_print_config_shows_what_would_run(laboratory):
    request = {"registry": laboratory.registry, "run_path": laboratory.path, "flags": {"alpha": {"k": 9}}}
    text = print_config(Request(**request), "alpha", "x")
    assert "alpha-x:\n  k: 9\n" in text
    assert not laboratory.path.exists()


def test_a_header_of_a_newer_version_stops_every_stage(laboratory):
    laboratory.path.mkdir()
    (laboratory.path / "run.json").write_text('{"format": 2, "plant_version": "3.0"}')
    with pytest.raises(ArtefactError, match=r"written by plant 3\.0"):
        laboratory.run("alpha")


def test_a_corpus_that_is_not_there_blocks_nothing_later(laboratory):
    laboratory.on["alpha"] = lambda context: context.corpus()
    with pytest.raises(DataError):
        laboratory.run("alpha", flags={"data": {"path": "absent.parquet"}})
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
    with pytest.raises(ArtefactError, match=r"the file 'alpha.txt' of the stage 'alpha' is") as caught:
        laboratory.run("alpha", resume=True)
    assert caught.value.todo == "restore the file, or make it again: repeat the command with --force"
    with pytest.raises(ArtefactError, match=r"alpha\.txt"):
        laboratory.run("beta")
    laboratory.run("alpha", force=True)
    assert laboratory.text("alpha") == "3"
    laboratory.run("beta")


def test_leftovers_of_a_kill_are_no_outputs(laboratory):
    def die(context):
        (context.folder / f".{'a' * 32}-alpha.txt").write_text("half")
        raise KeyboardInterrupt

    laboratory.on["alpha"] = die
    with pytest.raises(Interrupted):
        laboratory.run("alpha")
    del laboratory.on["alpha"]
    laboratory.run("alpha", resume=True)
    assert laboratory.record("alpha")["outputs"].keys() == {"alpha.txt"}
    assert sorted(path.name for path in (laboratory.path / "alpha").iterdir()) == ["alpha.txt", "stage.json"]


def test_a_copied_run_goes_on(laboratory):
    laboratory.run("alpha")
    copy = laboratory.path.with_name("copy")
    shutil.copytree(laboratory.path, copy, copy_function=shutil.copyfile)
    laboratory.path = copy
    laboratory.run("beta")
    assert laboratory.text("beta") == "3"


def test_a_stage_that_lost_its_record_is_not_made_anew_in_silence(laboratory):
    laboratory.run("gamma")
    (laboratory.path / "alpha" / "stage.json").unlink()
    for request in ({"tag": "b"}, {"force": True}):  # --force replaces what was asked for, not what it reads
        with pytest.raises(ArtefactError, match="the stage 'alpha' has lost its record") as caught:
            laboratory.run("gamma", **request)
        assert f"plant alpha --run {laboratory.path} --force" in caught.value.todo
    assert laboratory.calls == ["alpha"]


@pytest.mark.parametrize("flags", [{}, {"resume": True}])
def test_a_stage_whose_own_record_is_lost_is_made_anew_with_force_alone(laboratory, flags):
    """No flag is named that would be refused in turn."""
    laboratory.run("alpha")
    (laboratory.path / "alpha" / "stage.json").unlink()
    with pytest.raises(ArtefactError, match="the stage 'alpha' has lost its record") as caught:
        laboratory.run("alpha", **flags)
    assert "--resume" not in f"{caught.value.expected} {caught.value.todo}"
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
    with pytest.raises(PlantError, match="no longer there"):
        laboratory.run("alpha")
    assert not laboratory.path.exists()
