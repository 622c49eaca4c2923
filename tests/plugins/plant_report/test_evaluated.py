"""Which systems a report takes: evaluated ones, up to date, measured alike."""

import shutil

import pytest
from plant_report.evaluated import read_evaluated

from plant_cli.api import ArtefactError, DataError, UsageError


def test_what_evaluations_recorded(systems, metrics, tmp_path):
    first, second = systems
    assert [system.name for system in systems] == ["finetune", "baseline"]
    assert first.metrics.metrics["P@1"].value == metrics()["metrics"]["P@1"]["value"]
    assert (
        second.metrics.all_metrics()["R@10[1-5]"].value
        == metrics("eval-baseline")["bins"]["1-5"]["R@10"]["value"]
    )
    assert list(first.stages) == ["finetune", "predict", "eval"]
    assert second.command("eval", "--force") == "plant eval --tag baseline --force"
    assert first.documents == {"train": 36, "validation": 1, "test": 24}
    assert first.conditions == (
        "24 documents of test; macro-F1 over 6 labels, macro-F1-present over 6 labels; "
        "convention plant; "
        "trained with seed 0, resampled with seed 0; 95% intervals from 40 resamples of the "
        "documents"
    )
    labels = first.read_labels()
    assert labels["test_count"].sum() == 48
    assert len(first.read_documents()) == 24
    assert first.read_history("finetune") == []


def test_names_tell_runs_apart(evaluate, tmp_path):
    evaluate()
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    found = read_evaluated([str(tmp_path / "run"), str(tmp_path / "other")], tmp_path / "run")
    assert [system.name for system in found] == ["run", "other"]
    [one] = read_evaluated([str(tmp_path / "run" / "finetune")], tmp_path / "elsewhere")
    assert (one.run, one.tag, one.name) == (tmp_path / "run", None, "run")


def test_a_run_without_evaluation_says_which_command_makes_it(played, tmp_path):
    played("eval", bootstrap=40)
    with pytest.raises(ArtefactError, match="'eval-baseline' has not run") as raised:
        read_evaluated(["finetune", "baseline"], tmp_path / "run")
    assert raised.value.todo.endswith("--tag baseline")


def test_an_evaluation_that_is_out_of_date_is_refused(evaluate, played, tmp_path):
    evaluate()
    played("predict", force=True, split="validation")
    with pytest.raises(ArtefactError, match="out of date: 'predict' was made again"):
        read_evaluated(["finetune"], tmp_path / "run")


@pytest.mark.parametrize("content", ["{", '{"metrics": 3}', "[]", ""])
def test_damaged_metrics_are_refused(evaluate, rewrite, tmp_path, content):
    evaluate()
    path = tmp_path / "run" / "eval" / "metrics.json"
    path.write_text(content)
    with pytest.raises(ArtefactError, match="damaged") as raised:
        read_evaluated(["finetune"], tmp_path / "run")
    assert str(path) in raised.value.where
    rewrite(
        "eval", outputs={}, facts={}
    )  # somebody who also changes the record is told what is wrong inside
    with pytest.raises(ArtefactError, match="damaged"):
        read_evaluated(["finetune"], tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"convention": "annif"}, "convention, annif and plant"),
        ({"level": 0.9}, "coverage"),
        ({"split": "validation"}, "split"),
    ],
)
def test_systems_that_were_measured_otherwise_are_refused_with_the_difference(
    evaluate, played, tmp_path, options, what
):
    evaluate("baseline")
    played("eval", None, force=True, bootstrap=40, **options)
    with pytest.raises(DataError, match=f"not measured alike: another {what}"):
        read_evaluated(["finetune", "baseline"], tmp_path / "run")


def test_other_gold_is_refused(evaluate, rewrite, tmp_path):
    evaluate("baseline")
    rewrite("eval-baseline", outputs={}, facts={})
    path = tmp_path / "run" / "eval-baseline" / "metrics.json"
    gold = read_evaluated(["baseline"], tmp_path / "run")[0].metrics.gold
    path.write_text(path.read_text().replace(gold, "0" * 64))
    with pytest.raises(DataError, match=f"another gold labels, {gold[:12]} and 000000000000"):
        read_evaluated(["finetune", "baseline"], tmp_path / "run")


def test_names_that_mean_nothing_here(evaluate, tmp_path):
    evaluate()
    with pytest.raises(UsageError, match="named twice"):
        read_evaluated(["finetune", str(tmp_path / "run")], tmp_path / "run")
    file = tmp_path / "p.csv"
    file.write_text("doc_id,labels,scores\n")
    with pytest.raises(UsageError, match="no evaluation of its own"):
        read_evaluated([str(file)], tmp_path / "run")
    with pytest.raises(ArtefactError):
        read_evaluated(["finetune"], tmp_path / "nowhere")


def test_a_second_judgement_under_a_tag_of_its_own_is_of_the_same_system(evaluate):
    first, second = evaluate("gate")
    assert (second.tag, second.system_tag, second.folder.name) == ("gate", None, "eval-gate")
    assert second.trained == first.trained is not None
    assert second.command("eval") == "plant eval --tag gate"
    assert second.command("predict") == "plant predict"
