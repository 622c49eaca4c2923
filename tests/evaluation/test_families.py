"""Families at extra cut-offs, choosing by name, and a stranger's family that fails."""

import pytest

from plant_cli.api import DataError, MetricSpec, PluginError, UsageError
from plant_cli.evaluation.families import choose, compute_families


def test_a_wanted_cut_off_is_computed_beside_the_others(make_random, specs):
    names = [m.name for m in compute_families(specs, make_random(0), ["P@7", "R@10[1-5]"])]
    assert {"P@5", "P@7", "R@7", "MAP"} <= set(names)
    assert len(names) == len(set(names))


def test_values_are_chosen_in_the_order_asked_for(make_random, specs):
    values = compute_families(specs, make_random(0))
    assert [m.name for m in choose(values, ["MAP", "P@1", "MAP"])] == ["MAP", "P@1"]


def test_a_misspelt_metric_gets_a_near_name(make_random, specs):
    with pytest.raises(UsageError) as caught:
        choose(compute_families(specs, make_random(0)), ["micro_F1"])
    assert "did you mean 'micro-F1'" in caught.value.expected


def test_auc_says_why_it_is_missing(make_random, specs):
    with pytest.raises(UsageError, match="not available") as caught:
        choose(compute_families(specs, make_random(0)), ["macro-AUC"])
    assert "score of every label" in caught.value.expected


def test_a_family_that_fails_is_named(make_random):
    def fail(data, options):
        raise ZeroDivisionError("oops")

    with pytest.raises(PluginError, match="'odd' failed: ZeroDivisionError: oops") as caught:
        compute_families([MetricSpec(name="odd", summary="fails", compute=fail)], make_random(0))
    assert caught.value.exit_code == 5
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_in_four_parts_passes_through(make_random):
    def refuse(data, options):
        raise DataError("no", where="here", expected="yes", todo="go")

    with pytest.raises(DataError):
        compute_families([MetricSpec(name="odd", summary="refuses", compute=refuse)], make_random(0))
