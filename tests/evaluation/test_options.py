"""Options of eval and significance: one declaration, and options of metric families by name."""

import pytest
from pydantic import ValidationError

from plant_cli.api import Choice
from plant_cli.evaluation.options import ScoringOptions
from plant_cli.stages.eval import EvalOptions
from plant_cli.stages.significance import SignificanceOptions


@pytest.mark.parametrize("name", ["metric_options", "convention", "level", "split"])
def test_both_stages_take_what_is_declared_once(name):
    base = ScoringOptions.model_fields[name]
    assert [model.model_fields[name].description for model in (EvalOptions, SignificanceOptions)] == [base.description] * 2


def test_families_get_their_options_and_unknown_ones_are_kept_for_the_look_up_to_refuse():
    options = ScoringOptions(metric_options={"propensity": {"a": 0.5}, "oops": {}})
    assert options.choose_families(["f1", "propensity"]) == [
        Choice(name="f1"),
        Choice(name="propensity", options={"a": 0.5}),
        Choice(name="oops"),
    ]


def test_too_few_resamples_are_refused():
    for few in (1, 19):
        with pytest.raises(ValidationError, match="0, or 20 and more"):
            ScoringOptions(bootstrap=few)
    assert ScoringOptions(bootstrap=0).bootstrap == 0
