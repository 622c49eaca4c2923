"""Targets as a person writes them."""

import pytest

from plant_cli.api import UsageError
from plant_cli.evaluation.targets import Aim, Target, parse_targets


def test_one_target_and_two():
    assert parse_targets(["precision=0.9"]) == Aim(assign=Target(measure="precision", least=0.9))
    assert parse_targets([" F1 "]) == Aim(assign=Target(measure="f1"))
    both = parse_targets(["recall=.95", "precision = 0.9"])
    assert both == Aim(assign=Target(measure="precision", least=0.9), review=Target(measure="recall", least=0.95))
    assert str(both) == "precision=0.9 recall=0.95"
    assert str(parse_targets(["macro-f1"])) == "macro-f1"


@pytest.mark.parametrize("text", ["precision", "precision=1.5", "precision=0", "f1=0.9", "accuracy=0.9", "0.9", "", "precision=nan"])
def test_what_cannot_be_read(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_targets([text])


@pytest.mark.parametrize("texts", [[], ["f1", "recall=0.9"], ["recall=0.8", "recall=0.9"], ["f1", "f1"]])
def test_what_does_not_go_together(texts):
    with pytest.raises(UsageError, match="target"):
        parse_targets(texts)
