from __future__ import annotations

import os
import signal

import pytest

from plant_cli.api import ArtefactError, Interrupted, RecipeError, Result, Table, UsageError
from plant_cli.runs.recipe_runs import show_number


def test_all_steps_run_in_order_and_are_tabled(laboratory, recipe, statuses):
    result = laboratory.run("run", options={"recipe": str(recipe)})
    assert laboratory.calls == ["alpha", "beta", "beta"]
    assert statuses(result) == {"alpha": "done", "beta": "done", "beta-twice": "done"}
    assert result.tables[-1].rows[0][3] == "k 4"
    assert (laboratory.text("beta"), laboratory.text("beta-twice")) == ("4", "44")
    assert laboratory.record("alpha")["seed"] == 2


def test_metrics_are_in_points_and_other_numbers_as_they_are():
    shown = {"P@5": 0.3778, "nDCG@1000": 1.0, "threshold": 0.1963, "labels": 60, "ECE": 0.015}
    assert [show_number(name, value) for name, value in shown.items()] == [
        "37.8",
        "100.0",
        "0.1963",
        "60",
        "1.5",
    ]


def test_what_has_not_changed_is_passed_over(laboratory, recipe, statuses):
    laboratory.run("run", options={"recipe": str(recipe)})
    result = laboratory.run(
        "run", options={"recipe": str(recipe)}, flags={"machine": {"threads": 3}}
    )
    assert len(laboratory.calls) == 3
    assert set(statuses(result).values()) == {"unchanged"}
    assert result.data["alpha"]["summary"]["k"] == 4


def test_a_relative_file_of_rejects_is_no_change_once_it_is_there(
    laboratory, recipe, statuses, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    laboratory.on["alpha"] = lambda context: context.corpus()
    asked = {
        "options": {"recipe": str(recipe)},
        "flags": {"data": {"path": str(laboratory.data), "rejects": "bad.tsv"}},
    }
    laboratory.run("run", **asked)
    assert (tmp_path / "bad.tsv").exists()
    assert set(statuses(laboratory.run("run", **asked)).values()) == {"unchanged"}


def test_what_has_changed_is_refused_then_replaced_with_all_that_reads_it(
    laboratory, recipe, statuses
):
    laboratory.run("run", options={"recipe": str(recipe)})
    changed = {"options": {"recipe": str(recipe)}, "sets": ["alpha.k=5"]}
    with pytest.raises(UsageError) as caught:
        laboratory.run("run", **changed)
    assert "k was 4 and is now 5" in caught.value.where
    assert "--tag" not in caught.value.todo
    changed["force"] = True
    assert set(statuses(laboratory.run("run", **changed)).values()) == {"done"}
    assert laboratory.text("beta-twice") == "55"


def test_a_stage_made_anew_with_equal_outputs_changes_nothing_downstream(
    laboratory, recipe, statuses
):
    laboratory.run("run", options={"recipe": str(recipe)})
    laboratory.run("alpha", recipe=str(recipe), force=True)
    result = laboratory.run("run", options={"recipe": str(recipe)})
    assert set(statuses(result).values()) == {"unchanged"}


def test_a_tag_alone_can_change(laboratory, recipe, statuses):
    laboratory.run("run", options={"recipe": str(recipe)})
    recipe.write_text(recipe.read_text().replace("epochs: 2", "epochs: 3"))
    result = laboratory.run("run", options={"recipe": str(recipe)}, force=True)
    assert statuses(result) == {"alpha": "unchanged", "beta": "unchanged", "beta-twice": "done"}


def test_an_unfinished_step_is_continued_with_resume(laboratory, recipe, statuses):
    def fail(context):
        raise ValueError("boom")

    laboratory.on["beta"] = fail
    with pytest.raises(ValueError, match="boom"):
        laboratory.run("run", options={"recipe": str(recipe)})
    with pytest.raises(UsageError, match="failed: boom"):
        laboratory.run("run", options={"recipe": str(recipe)})
    resumed = []
    laboratory.on["beta"] = lambda context: resumed.append(context.resume)
    result = laboratory.run("run", options={"recipe": str(recipe)}, resume=True)
    assert resumed == [True, False]
    assert statuses(result) == {"alpha": "unchanged", "beta": "done", "beta-twice": "done"}


def test_a_stop_is_obeyed_between_steps(laboratory, recipe, statuses):
    laboratory.on["alpha"] = lambda context: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Interrupted, match="stopped before 'beta'"):
        laboratory.run("run", options={"recipe": str(recipe)})
    assert laboratory.record("alpha")["status"] == "done"
    result = laboratory.run("run", options={"recipe": str(recipe)}, resume=True)
    assert statuses(result)["alpha"] == "unchanged"


def test_all_steps_are_checked_before_the_first_runs(laboratory, recipe):
    recipe.write_text(recipe.read_text() + "gamma: {wantd: 3}\n")
    with pytest.raises(RecipeError, match="'gamma' has no option 'wantd'"):
        laboratory.run("run", options={"recipe": str(recipe)})
    assert laboratory.calls == []


def test_earlier_stages_of_the_run_do_not_colour_a_recipe(laboratory, recipe):
    laboratory.run("gamma", flags={"machine": {"precision": "bf16"}})
    laboratory.run("run", options={"recipe": str(recipe)}, force=True)
    assert laboratory.record("beta")["sections"]["machine"]["precision"] == "auto"


def test_actions_in_a_recipe_run_every_time_and_show_their_tables(laboratory, recipe, statuses):
    recipe.write_text(recipe.read_text() + "look:\n")
    laboratory.on["look"] = lambda context: Result(
        tables=[Table(title="seen", columns=(), rows=())]
    )
    laboratory.run("run", options={"recipe": str(recipe)})
    result = laboratory.run("run", options={"recipe": str(recipe)})
    assert result.tables[0].title == "seen"
    assert statuses(result)["look"] == "done"


def test_a_corpus_that_has_changed_is_noticed_even_if_every_step_is_done(laboratory, recipe):
    laboratory.on["alpha"] = lambda context: context.corpus()
    request = {
        "options": {"recipe": str(recipe)},
        "flags": {"data": {"path": str(laboratory.data)}},
    }
    laboratory.run("run", **request)
    laboratory.run("run", **request)
    laboratory.data.write_bytes(laboratory.data.read_bytes() + b"x")
    with pytest.raises(ArtefactError, match="the corpus has changed"):
        laboratory.run("run", **request)
