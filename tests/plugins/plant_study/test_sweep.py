from __future__ import annotations

from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import yaml
from builders import run_at
from laboratory import CLINIC

from plant_cli.api import Interrupted, RecipeError, UsageError
from plant_cli.runs.runner import run_below

RECIPE = "mig: {k: 10}\nfinetune: {network: false, scorers: [words]}\neval: {}\n"
SCORERS = "finetune.scorers=[words],[titles],[words, titles]"


@pytest.fixture
def sweep(tmp_path):
    """Run `plant sweep` on a small made-up clinic; scorers alone are trained."""

    def run(*over, text=RECIPE, **options):
        (tmp_path / "r.yaml").write_text(text)
        flags = {"sweep": {"recipe": str(tmp_path / "r.yaml"), "over": list(over), **options}}
        return run_at(tmp_path / "run", "sweep", CLINIC[0], flags=flags)

    return run


def test_every_combination_is_trained_and_the_best_is_written(sweep, tmp_path):
    result = sweep(SCORERS, figures=str(tmp_path / "figures"))
    trials = result.data["trials"]
    assert [trial["figure"] for trial in trials] == sorted(
        (trial["figure"] for trial in trials), reverse=True
    )
    assert {str(trial["values"]["finetune.scorers"]) for trial in trials} == {
        "['words']",
        "['titles']",
        "['words', 'titles']",
    }
    assert (
        next(
            trial["folder"] for trial in trials if trial["values"]["finetune.scorers"] == ["words"]
        )
        == "finetune"
    )  # as in the recipe
    best = yaml.safe_load((tmp_path / "run" / "best.yaml").read_text())
    assert best["finetune"] == {"scorers": trials[0]["values"]["finetune.scorers"]}
    assert run_at(
        tmp_path / "run",
        "recipe check",
        flags={"recipe check": {"recipe": str(tmp_path / "run" / "best.yaml")}},
    )
    assert result.data["files"] == []  # lists are no numbers


def test_test_is_never_read_and_what_is_done_is_skipped(sweep, tmp_path):
    sweep(SCORERS)
    assert not [
        path.name
        for path in (tmp_path / "run").iterdir()
        if path.name.startswith(("eval", "predict", "significance"))
    ]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("*/stage.json")}
    again = sweep(SCORERS)
    assert {
        path: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("*/stage.json")
    } == before
    assert len(again.data["trials"]) == 3


def test_a_range_is_searched_and_drawn(sweep, tmp_path):
    pytest.importorskip("optuna")
    first = sweep("mig.k=2..64", trials=3, figures=str(tmp_path / "figures")).data
    tried = [trial["values"]["mig.k"] for trial in first["trials"]]
    assert all(isinstance(k, int) and 2 <= k <= 64 for k in tried)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "mig.k.png",
        "mig.k.svg",
    ]
    assert sweep("mig.k=2..64", trials=3).data["trials"] == first["trials"]  # one seed, one search


def test_lists_are_searched_and_the_first_trial_begins_whatever_the_hours(sweep, recwarn):
    pytest.importorskip("optuna")
    table = sweep(SCORERS, trials=2, hours=1e-9)
    assert len(table.data["trials"]) == 1
    assert "the hours were over before all trials" in table.tables[0].notes
    assert not [one for one in recwarn if "categorical" in str(one.message)]


def test_a_trial_that_fails_is_told_and_the_others_go_on(sweep):
    table = sweep("mig.k=5,-1").tables[0]
    errors = {row[0]: row[-1] for row in table.rows}
    assert errors[5] == ""
    assert "k' cannot be -1" in errors[-1]
    assert "failed trials: 1" in table.notes
    with pytest.raises(RecipeError, match="k' cannot be -2"):
        sweep("mig.k=-2,-1")


@pytest.mark.parametrize(
    ("over", "says"),
    [
        (["finetune.epochs"], "gives nothing to try"),
        (["finetune.epochs="], "gives nothing to try"),
        (["epochs=1,2"], "gives nothing to try"),
        (["finetune.epochs=9..3"], "gives nothing to try"),
        (["data.documents=5,6"], "gives nothing to try"),
        (["finetune.epochs=1..3"], "a range has no end"),
    ],
)
def test_what_cannot_be_tried_is_refused(sweep, tmp_path, over, says):
    with pytest.raises(UsageError, match=says):
        sweep(*over)
    assert not (tmp_path / "run").exists()


def test_an_unknown_figure_and_a_recipe_that_trains_nothing_are_told(sweep, tmp_path):
    for unknown in (
        "P@7",
        "ECE",
        "threshold",
    ):  # the last two are in the summary of a training; a high one is not good
        with pytest.raises(UsageError, match=f"does not measure '{unknown}'") as caught:
            sweep("mig.k=5,10", metric=unknown)
        assert "MAP" in caught.value.expected
    assert not (tmp_path / "run").exists()  # nothing was trained in vain
    with pytest.raises(
        UsageError, match="does not measure 'MAP of the network'"
    ):  # there are no scorers beside it
        sweep("mig.k=5,10", metric="MAP of the network")
    assert len(list((tmp_path / "run").glob("finetune*"))) == 1
    with pytest.raises(RecipeError, match="trains nothing"):
        sweep("mig.k=5,10", text="mig: {}\n")


@pytest.fixture
def side_by_side(monkeypatch):
    """In place of processes: a step is done when it is waited for. Gives the names of the steps
    that were at work at once.
    """
    together = []

    def submit(work, request, *arguments):
        future = Future()
        future.do = lambda: work(request, *arguments)
        return future

    def wait(running, timeout, return_when):
        together.append(sorted(running.values()))
        for future in running:
            try:
                future.set_result(future.do())
            except Exception as error:
                future.set_exception(error)
        return SimpleNamespace(done=[*running])

    monkeypatch.setattr(
        "plant_cli.runs.side_by_side._pool",
        lambda jobs: nullcontext(SimpleNamespace(submit=submit)),
    )
    monkeypatch.setattr("plant_cli.runs.side_by_side.wait", wait)
    return together


def test_trials_side_by_side_share_their_steps(sweep, side_by_side, tmp_path):
    trials = sweep(SCORERS, jobs=2).data["trials"]
    folder = {str(trial["values"]["finetune.scorers"]): trial["folder"] for trial in trials}
    words, titles, both = (
        folder[scorers] for scorers in ("['words']", "['titles']", "['words', 'titles']")
    )
    assert side_by_side == [["mig"], sorted([words, titles]), [both]]
    assert [trial["figure"] for trial in trials] == sorted(
        (trial["figure"] for trial in trials), reverse=True
    )
    assert {path.name for path in (tmp_path / "run").glob("finetune*")} == {words, titles, both}


def test_a_trial_that_fails_does_not_stop_the_one_beside_it(sweep, side_by_side, monkeypatch):
    table = sweep("mig.k=-1,5,0", jobs=3).tables[0]
    assert {row[0]: row[-1] == "" for row in table.rows} == {-1: False, 5: True, 0: False}
    assert "failed trials: 2" in table.notes


def test_values_are_asked_for_beside_trials_at_work(sweep, side_by_side):
    pytest.importorskip("optuna")
    trials = sweep(SCORERS, trials=2, jobs=2).data["trials"]
    assert side_by_side == [["mig"], sorted(trial["folder"] for trial in trials)]
    assert len(trials) == 2


def test_a_stop_waits_for_all_at_work_and_keeps_what_is_done(
    sweep, side_by_side, monkeypatch, tmp_path
):
    def stop(request, name):
        if name.startswith("finetune-"):
            raise Interrupted("stopped", where="w", expected="e", todo="t")
        return run_below(request, name)

    monkeypatch.setattr("plant_study.trials.run_below", stop)
    with pytest.raises(Interrupted):
        sweep(SCORERS, jobs=2)
    assert [path.name for path in (tmp_path / "run").glob("finetune*")] == ["finetune"]
    monkeypatch.undo()
    assert len(sweep(SCORERS).data["trials"]) == 3
