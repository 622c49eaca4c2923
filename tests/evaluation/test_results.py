"""Requirements, metrics.json, options and conventions of an evaluation."""

import json
import re
from typing import get_args

import pytest
from pydantic import ValidationError

from plant_cli.api import ArtefactError, GateFailed
from plant_cli.commands.command_options import EvalOptions, SignificanceOptions
from plant_cli.evaluation.conventions import CONVENTION_HELP, CONVENTIONS, ConventionName
from plant_cli.evaluation.results import (
    Bound,
    ScoringOptions,
    check_gates,
    parse_gates,
    read_metrics,
)

VALUES = {"P@5": 0.6, "R@10[1-5]": 0.2, "R@10[>500]": 0.7, "p[R@10[>500]]": 0.04}


@pytest.mark.parametrize(
    ("met", "failed"),
    [
        ("P@5>=0.6", "P@5>=0.61"),
        ("P@5 <= .6", "P@5<=0.59"),
        ("R@10[1-5]>0.1", "R@10[1-5]>0.2"),
        ("P@5<0.61", "P@5<0.6"),
        ("R@10[>500]>0.6", "R@10[>500]>=0.8"),
        ("p[R@10[>500]] < 0.05", "p[R@10[>500]]<0.01"),
    ],
)
def test_met_or_not(met, failed):
    check_gates(parse_gates([met]), VALUES, "here")
    with pytest.raises(GateFailed, match=re.escape(failed)):
        check_gates(parse_gates([met, failed]), VALUES, "here")


def test_all_that_failed_are_named_and_an_undefined_metric_meets_nothing():
    with pytest.raises(GateFailed) as caught:
        check_gates(parse_gates(["P@5>0.6", "R@10[1-5]>=0.2", "P@5>=0.9"]), VALUES, "here")
    assert caught.value.exit_code == 7
    assert "P@5>0.6 (it is 0.6000), P@5>=0.9 (it is 0.6000)" in caught.value.what
    with pytest.raises(GateFailed, match="it is undefined"):
        check_gates(parse_gates(["R@10[0]<1"]), {"R@10[0]": None}, "here")


CONTENT = {
    "convention": "plant",
    "system": "finetune",
    "split": "test",
    "documents": 2,
    "gold": "a",
    "threshold": "0.5",
    "seed": 0,
    "level": 0.95,
    "metrics": {"P@1": {"value": 0.5, "low": None, "high": None}},
    "bins": {"1-5": {"labels": 3, "R@10": {"value": 0.25, "low": 0.1, "high": 0.4}}},
    "calibration": {
        "ECE": 0.1,
        "bins": [{"pairs": 3, "probability": 0.2, "right": 0.1}],
        "added": 1,
    },
    "later": "unknown keys are passed over",
}


def test_metrics_of_bins_have_their_range_in_the_name(tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps(CONTENT))
    found = read_metrics(tmp_path)
    assert found.all_metrics() == {
        "P@1": Bound(value=0.5),
        "R@10[1-5]": Bound(value=0.25, low=0.1, high=0.4),
    }
    assert found.bins["1-5"]["labels"] == 3
    assert found.calibration.ECE == 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": None},
        {"documents": "many"},
        {"split": "dev"},
        {"bins": {"1-5": {"R@10": "high"}}},
    ],
)
def test_what_no_evaluation_writes_is_refused(tmp_path, change):
    (tmp_path / "metrics.json").write_text(json.dumps(CONTENT | change))
    with pytest.raises(ArtefactError, match="is damaged") as raised:
        read_metrics(tmp_path)
    assert next(iter(change)) in raised.value.where


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArtefactError, match="is missing"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("name", ["metric_options", "convention", "level", "split"])
def test_both_stages_take_what_is_declared_once(name):
    base = ScoringOptions.model_fields[name]
    assert [
        model.model_fields[name].description for model in (EvalOptions, SignificanceOptions)
    ] == [base.description] * 2


def test_too_few_resamples_are_refused():
    for few in (1, 19):
        with pytest.raises(ValidationError, match="0, or 20 and more"):
            ScoringOptions(bootstrap=few)
    assert ScoringOptions(bootstrap=0).bootstrap == 0


def test_the_enumeration_holds_every_convention():
    assert list(CONVENTIONS) == list(get_args(ConventionName))
    assert all(
        name == convention.name and convention.summary for name, convention in CONVENTIONS.items()
    )


def test_every_convention_says_all_that_it_assumes():
    assert CONVENTIONS["plant"].assumptions == (
        "P@k divides by k",
        "R@k divides by the gold labels of the document",
        "a document without gold is left out",
        "ideals of nDCG and PSP know of the labels of train",
        "macro-F1 is the mean over the labels of train, 0 where a label has neither gold nor "
        "assignment",
        "PSP is divided by the best attainable, propensities are counted on train",
        "ties in score go by label index",
    )
    assert all(
        "ideals of nDCG and PSP know of all labels" in c.assumptions
        for name, c in CONVENTIONS.items()
        if name != "plant"
    )
    annif, caml, paper = (CONVENTIONS[name].assumptions for name in ("annif", "caml", "paper"))
    assert "F1@k is the F1 of the mean P@k and the mean R@k" not in annif
    assert CONVENTIONS["llms4subjects"].assumptions[2] == (
        "F1@k is the F1 of the mean P@k and the mean R@k"
    )
    assert annif[0] == "P@k divides by the labels predicted, at most k"
    assert annif[2] == "a document without gold counts as 0; its nDCG is 1"
    assert caml[4].startswith("macro-F1 is F1 of the mean precision and recall")
    assert paper[1] == "R@k divides by the smaller of k and the gold labels of the document"


def test_the_help_says_whose_way_each_is():
    assert CONVENTION_HELP.startswith("Whose way of scoring: plant (this tool's), paper (")
    assert all(f"{name} (" in CONVENTION_HELP for name in CONVENTIONS)


def test_names_of_metrics_may_stand_together_with_commas():
    assert ScoringOptions(metric=["P@1, P@5", "R@10[1-5]"]).metric == ["P@1", "P@5", "R@10[1-5]"]
    assert ScoringOptions(metric=[","]).metric == []
