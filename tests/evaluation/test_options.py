"""Options of eval and significance: one declaration, and options of metric families by name."""

import pytest
from pydantic import ValidationError

from plant_cli.commands.command_options import EvalOptions, SignificanceOptions
from plant_cli.evaluation.results import ScoringOptions


@pytest.mark.parametrize("name", ["metric_options", "convention", "level", "split"])
def test_both_stages_take_what_is_declared_once(name):
    base = ScoringOptions.model_fields[name]
    assert [model.model_fields[name].description for model in (EvalOptions, SignificanceOptions)] == [base.description] * 2


def test_too_few_resamples_are_refused():
    for few in (1, 19):
        with pytest.raises(ValidationError, match="0, or 20 and more"):
            ScoringOptions(bootstrap=few)
    assert ScoringOptions(bootstrap=0).bootstrap == 0
