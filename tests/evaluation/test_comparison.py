"""Signs, corrections and the way a difference is printed."""

from dataclasses import replace

import numpy as np
import pytest

from plant_cli.api import DataError
from plant_cli.evaluation.comparison import as_json, compare, make_table
from plant_cli.kit.metrics import mean_of_documents, ratio_of_sums


def metrics(shift):
    base = np.random.default_rng(0).random(80) / 2 + 0.2
    return [mean_of_documents("P@5", base + shift), mean_of_documents("MAP", base)]


def compare_three(**changes):
    given = {"replicates": 200, "permutations": 499, "level": 0.95, "generator": np.random.default_rng(1)}
    rng = np.random.default_rng(2).normal(0, 0.01, 80)
    systems = [("a", metrics(0.1 + rng)), ("b", metrics(0.0)), ("c", metrics(0.3))]
    return compare(systems, **{**given, **changes})


def test_a_positive_difference_means_that_the_first_is_better():
    better, same, worse, _ = compare_three()
    assert (better.metric, better.a, better.b) == ("P@5", "a", "b")
    assert better.difference == pytest.approx(better.value_a - better.value_b)
    assert better.low < better.difference < better.high
    assert better.low > 0.09
    assert better.marker(better.p_holm) == "▲"
    assert worse.difference < 0
    assert worse.marker(worse.p_holm) == "▼"
    assert same.difference == 0
    assert (same.p, same.wilcoxon_p, same.replicate_p, same.marker(same.p)) == (1.0, 1.0, 1.0, "")


def test_holm_is_over_all_metrics_and_systems():
    assert [c.p for c in compare_three()] == pytest.approx([1 / 500, 1, 1 / 500, 1])
    assert [c.p_holm for c in compare_three()] == pytest.approx([4 / 500, 1, 4 / 500, 1])


def test_as_the_paper_prints_it():
    shown = replace(compare_three()[0], value_a=0.23, difference=0.03, low=0.021, high=0.039)
    assert shown.print_text(0.01) == "23.0▲ (+3.0, [2.1, 3.9])"
    assert shown.print_text(0.2) == "23.0 (+3.0, [2.1, 3.9])"
    assert replace(shown, low=-0.001).print_text(0.01) == "23.0 (+3.0, [-0.1, 3.9])"


def test_table_and_json():
    comparisons = compare_three()
    table = make_table(comparisons[:2], paper=False, notes=["n"])
    assert [c.name for c in table.columns][:4] == ["metric", "A a", "B b", "A - B"]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert [c.name for c in make_table(comparisons[:2], paper=True, notes=[]).columns][-2] == "p (replicates)"
    assert as_json(comparisons)[0]["text"].count("▲") == 1


def test_metrics_that_nothing_defines_are_left_out():
    nothing = ratio_of_sums("R@10[0]", np.zeros(80), np.zeros(80))
    systems = [("a", [*metrics(0.1), nothing]), ("b", [*metrics(0.0), nothing])]
    options = {"replicates": 9, "permutations": 9, "level": 0.95, "generator": np.random.default_rng(0)}
    assert [c.metric for c in compare(systems, **options)] == ["P@5", "MAP"]
    with pytest.raises(DataError, match="none of the metrics"):
        compare([("a", [nothing]), ("b", [nothing])], **options)


def test_the_same_seed_gives_the_same_result():
    assert compare_three() == compare_three(generator=np.random.default_rng(1))


def test_resamples_that_define_no_difference_are_left_out():
    """Only the first of three documents has gold of the bin: a third of the resamples do not draw it."""
    gold = np.array([1.0, 0.0, 0.0])
    systems = [("a", [ratio_of_sums("R@10[1-5]", gold, gold)]), ("b", [ratio_of_sums("R@10[1-5]", 0 * gold, gold)])]
    [found] = compare(systems, replicates=200, permutations=9, level=0.95, generator=np.random.default_rng(0))
    assert (found.low, found.high) == (1.0, 1.0)
