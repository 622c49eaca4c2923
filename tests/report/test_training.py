"""Curves of training hold the epochs of history.jsonl, and figures over systems their records."""

import json
from dataclasses import replace

import pytest

from plant_cli.report.sections import draw_planting, draw_sizes, read_curve, write_training

EPOCHS = [
    {"epoch": 0, "loss": None, "MAP": 0.1, "macro-F1": 0.05, "nDCG@1000": 0.6, "random nDCG@1000": 0.4},
    {"epoch": 1, "loss": 2.5, "MAP": 0.2, "macro-F1": 0.15, "nDCG@1000": 0.55, "random nDCG@1000": 0.4},
]


@pytest.fixture
def trained(systems, tmp_path):
    """The systems with epochs, the first also with a stage 1."""
    for folder in ("finetune", "finetune-baseline", "pretrain-attn"):
        path = tmp_path / "run" / folder
        path.mkdir(exist_ok=True)
        (path / "history.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in EPOCHS))
    stage1 = systems[0].stages["finetune"].model_copy(update={"stage": "pretrain-attn", "summary": {"nDCG@1000": 0.6, "tau": 0.2}})
    return [replace(systems[0], stages={"pretrain-attn": stage1, **systems[0].stages}), systems[1]]


def test_curves_are_the_recorded_epochs(trained):
    section = write_training(trained)
    figures = {figure.name: figure for figure in section.figures}
    for name, key in (("training-map", "MAP"), ("training-macro-f1", "macro-F1"), ("attention", "nDCG@1000"), ("planting", "nDCG@1000")):
        assert (list(figures[name].series[0].x), list(figures[name].series[0].y)) == ([0, 1], [epoch[key] for epoch in EPOCHS])
    assert list(figures["training-loss"].series[0].y) == [2.5]
    assert figures["attention"].series[-1].name == "finetune, random order"
    assert list(figures["attention"].series[-1].y) == [0.4, 0.4]
    assert [series.name for series in figures["planting"].series] == ["finetune", "finetune, random order"]


def test_an_average_has_no_training_of_its_own(trained):
    record = trained[0].record.model_copy(update={"tag": "ensemble", "inputs": {"predict-ensemble": "hash"}})
    predict = trained[0].stages["predict"].model_copy(update={"tag": "ensemble"})
    stages = {**trained[0].stages, "predict-ensemble": predict}  # those of its members, too
    average = replace(trained[0], tag="ensemble", record=record, stages=stages)
    assert average.trained is None
    assert average.read_history("finetune") == []
    assert list(write_training([average]).figures) == []


def test_missing_figures_of_an_epoch_are_passed_over():
    assert list(read_curve("a", [{"epoch": 0, "MAP": None}, {"epoch": 1}, {"epoch": 2, "MAP": 0.5}], "MAP").x) == [2]


def test_without_a_network_every_curve_is_a_sentence(systems):
    section = write_training(systems)
    assert list(section.figures) == []
    assert [sentence.split(":")[0] for sentence in section.missing] == [
        "There are no training curves",
        "There is no curve of stage 1",
        "Stage 1 against the result is left out",
        "The result against the size of train is left out",
    ]


def test_stage_1_against_the_result(trained, metrics):
    assert isinstance(draw_planting(trained), str)  # one system has a stage 1
    other = trained[0].stages["pretrain-attn"].model_copy(update={"summary": {"nDCG@1000": 0.7}})
    both = [trained[0], replace(trained[1], stages={"pretrain-attn": other, **trained[1].stages})]
    figure = draw_planting(both)
    assert not isinstance(figure, str)
    for series, quality, folder in zip(figure.series, (0.6, 0.7), ("eval", "eval-baseline"), strict=True):
        bound = metrics(folder)["metrics"]["macro-F1"]
        assert (series.x, series.y, series.bounds(0)) == ([quality], [bound["value"]], (bound["low"], bound["high"]))


def test_the_result_against_the_size_of_train(systems, metrics):
    half = replace(systems[0], name="half", documents={"train": 18})
    figure = draw_sizes([systems[0], half])
    assert not isinstance(figure, str)
    [series] = figure.series  # of one kind: joined by a line
    assert (list(series.x), list(series.y)) == ([18.0, 36.0], [metrics()["metrics"]["macro-F1"]["value"]] * 2)
    assert isinstance(draw_sizes(systems), str)
