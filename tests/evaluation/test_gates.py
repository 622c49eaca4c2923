"""Requirements: read, met, not met, not understood."""

import re

import pytest

from plant_cli.api import GateFailed, UsageError
from plant_cli.evaluation.results import check_gates, parse_gates

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


def test_all_that_failed_are_told():
    with pytest.raises(GateFailed) as caught:
        check_gates(parse_gates(["P@5>0.6", "R@10[1-5]>=0.2", "P@5>=0.9"]), VALUES, "here")
    assert caught.value.exit_code == 7
    assert "P@5>0.6 (it is 0.6000), P@5>=0.9 (it is 0.6000)" in caught.value.what


def test_an_undefined_metric_meets_nothing():
    with pytest.raises(GateFailed, match="it is undefined"):
        check_gates(parse_gates(["R@10[0]<1"]), {"R@10[0]": None}, "here")


@pytest.mark.parametrize("text", ["P@5", "P@5>=60", "P@5==0.6", ">=0.6", "P@5>>0.6", "P@5=>0.6"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_gates([text])
