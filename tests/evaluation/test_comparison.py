"""Signs, corrections and the way a difference is printed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_1samp, wilcoxon

from plant_cli.api import DataError, MetricValue, WeightedMetric
from plant_cli.evaluation.bootstrap import resample
from plant_cli.evaluation.comparison import compare, make_difference_tables, needed_documents, print_text
from plant_cli.evaluation.counters import mean_of_documents, ratio_of_sums


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
    assert (better["metric"], better["a"], better["b"]) == ("P@5", "a", "b")
    assert better["difference"] == pytest.approx(better["value_a"] - better["value_b"])
    assert 0.09 < better["low"] < better["difference"] < better["high"]
    assert "▲" in better["text"]
    assert worse["difference"] < 0
    assert "▼" in worse["text"]
    assert (same["difference"], same["p"], same["wilcoxon_p"], same["published"]["p"]) == (0, 1.0, 1.0, 1.0)
    assert same["text"] == same["text_paper"] == f"{100 * same['value_a']:.1f} (+0.0, [0.0, 0.0])"
    assert [same[name] for name in ("better", "worse", "effect", "documents_for_a_point")] == [0, 0, None, None]


def test_holm_is_over_all_metrics_and_systems():
    assert [c["p"] for c in compare_three()] == pytest.approx([1 / 500, 1, 1 / 500, 1])
    assert [c["p_holm"] for c in compare_three()] == pytest.approx([4 / 500, 1, 4 / 500, 1])


def test_as_the_paper_prints_it():
    assert print_text(0.23, 0.03, 0.021, 0.039, 0.01) == "23.0▲ (+3.0, [2.1, 3.9])"
    assert print_text(0.23, 0.03, 0.021, 0.039, 0.2) == "23.0 (+3.0, [2.1, 3.9])"
    assert print_text(0.23, 0.03, -0.001, 0.039, 0.01) == "23.0 (+3.0, [-0.1, 3.9])"


def test_tables():
    given = {"names": {"a": "A.parquet", "b": "b", "c": "c"}, "notes": ["n"], "level": 0.95, "resamples": "200 resamples"}
    table, other = make_difference_tables(compare_three(), paper=False, **given)
    assert [c.name for c in table.columns][:4] == ["metric", "A A.parquet", "B b", "A - B"]
    assert (other.title, [row[0] for row in other.rows]) == ("A.parquet against c", ["P@5", "MAP"])
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.notes[-1] == "n"
    published = make_difference_tables(compare_three(), paper=True, **given)[0]
    assert [c.name for c in published.columns][3:8] == ["gain", "low", "high", "p", "Wilcoxon over"]


def test_metrics_that_nothing_defines_are_left_out():
    nothing = ratio_of_sums("R@10[0]", np.zeros(80), np.zeros(80))
    systems = [("a", [*metrics(0.1), nothing]), ("b", [*metrics(0.0), nothing])]
    options = {"replicates": 9, "permutations": 9, "level": 0.95, "generator": np.random.default_rng(0)}
    assert [c["metric"] for c in compare(systems, **options)] == ["P@5", "MAP"]
    with pytest.raises(DataError, match="none of the metrics"):
        compare([("a", [nothing]), ("b", [nothing])], **options)


def test_the_same_seed_gives_the_same_result():
    assert compare_three() == compare_three(generator=np.random.default_rng(1))


def test_resamples_that_define_no_difference_are_left_out():
    """Only the first of three documents has gold of the bin: a third of the resamples do not draw it."""
    gold = np.array([1.0, 0.0, 0.0])
    systems = [("a", [ratio_of_sums("R@10[1-5]", gold, gold)]), ("b", [ratio_of_sums("R@10[1-5]", 0 * gold, gold)])]
    [found] = compare(systems, replicates=200, permutations=9, level=0.95, generator=np.random.default_rng(0))
    assert (found["low"], found["high"]) == (1.0, 1.0)


def test_the_published_rule():
    """Per-document metrics by their documents, others by replicates, all with plain percentiles and the mean over replicates."""
    rng = np.random.default_rng(3)
    counters = [csr_array((rng.random((80, 30)) < share).astype(float)) for share in (0.3, 0.2)]
    a, b = (MetricValue(name="macro-F1", contributions=c, combine=lambda sums: (sums > 20).mean(axis=1)) for c in counters)
    first, second = ([metrics(shift)[0], f1] for shift, f1 in ((rng.normal(0.02, 0.05, 80), a), (0.0, b)))
    options = {"replicates": 300, "permutations": 9, "level": 0.9, "generator": np.random.default_rng(4)}
    precision, f1 = compare([("a", first), ("b", second)], **options)
    assert (precision["published"]["over"], f1["published"]["over"]) == ("documents", "replicates")
    assert (
        precision["published"]["p"]
        == precision["wilcoxon_p"]
        == pytest.approx(wilcoxon(first[0].per_document - second[0].per_document).pvalue)
    )
    drawn = resample([*first, *second], 300, np.random.default_rng(4))
    moved = drawn[1] - drawn[3]
    assert f1["published"]["gain"] == pytest.approx(moved.mean())
    assert (f1["published"]["low"], f1["published"]["high"]) == pytest.approx(tuple(np.quantile(moved, [0.05, 0.95])))
    assert f1["published"]["p"] == pytest.approx(wilcoxon(moved, method="approx").pvalue)
    assert f1["published"]["gain"] != pytest.approx(
        f1["difference"]
    )  # the bias of an average over labels, which only our interval takes out
    assert "▲" in f1["text_paper"]


def test_more_replicates_shrink_the_published_p_of_f1_and_no_other():
    def published(replicates):
        return [c["published"]["p"] for c in compare_both(replicates)]

    def compare_both(replicates):
        rng = np.random.default_rng(5)
        base, other = rng.random(60), rng.random(60)
        systems = [
            (n, [mean_of_documents("P@5", x), replace(mean_of_documents("F1", x), per_document=None)])
            for n, x in (("a", base), ("b", other))
        ]
        return compare(systems, replicates=replicates, permutations=9, level=0.95, generator=np.random.default_rng(0))

    few, many = published(50), published(5000)
    assert few[0] == many[0] > 0.05
    assert many[1] < 1e-100 < few[1]


def test_a_metric_of_pairs_is_compared_as_any_other():
    """A WeightedMetric that is a mean over documents: the interval of that mean, and about its p."""
    rng = np.random.default_rng(6)
    values = rng.random(60) / 4, rng.random(60) / 4 + 0.01

    def weighted(x):
        return WeightedMetric(name="micro-AUC", documents=len(x), compute=lambda w: w @ x / w.sum(axis=1))

    systems = [(n, [mean_of_documents("P@1", x), weighted(x)]) for n, x in zip("ab", values, strict=True)]
    options = {"replicates": 199, "permutations": 5000, "level": 0.95, "generator": np.random.default_rng(1)}
    mean, auc = compare(systems, joined={("b", "micro-AUC"): weighted(np.concatenate(values))}, **options)
    assert (auc["low"], auc["high"]) == pytest.approx((mean["low"], mean["high"]))
    assert 0.01 < mean["p"] < 0.2
    assert auc["p"] == pytest.approx(mean["p"], abs=0.03)
    assert (auc["wilcoxon_p"], auc["effect"], auc["published"]["over"]) == (None, None, "replicates")


def test_effect_and_power():
    rng = np.random.default_rng(7)
    noise = rng.normal(0.05, 0.1, 100)
    systems = [(n, [mean_of_documents("P@5", x)]) for n, x in (("a", 0.3 + noise), ("b", np.full(100, 0.3)))]
    [found] = compare(systems, replicates=2000, permutations=9, level=0.95, generator=np.random.default_rng(1))
    assert found["effect"] == pytest.approx(noise.mean() / noise.std(ddof=1))
    assert (found["better"], found["worse"]) == ((noise > 0).sum(), (noise < 0).sum())
    assert found["documents_for_a_point"] == pytest.approx(((1.96 + 0.8416) * noise.std() / 0.01) ** 2, rel=0.1)


def test_the_power_note_holds_by_simulation():
    """With as many documents as it names, a true difference of one point is significant in four of five test sets."""
    rng = np.random.default_rng(8)
    documents = needed_documents(100, 0.1 / np.sqrt(100))
    found = rng.normal(0.01, 0.1, (2000, documents))
    assert (ttest_1samp(found, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)
    assert needed_documents(100, 0.0) is None
