"""Differences of two systems: signs, corrections, how they are printed, and seeds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from scipy.stats import wilcoxon

from plant_cli.api import DataError, MetricValue, SilentReporter, UsageError, WeightedMetric
from plant_cli.evaluation.bootstrap import averages_labels, randomise, resample
from plant_cli.evaluation.comparison import (
    compare_metrics,
    compare_seeds,
    compare_systems,
    make_difference_tables,
    make_overview,
    make_seed_tables,
    measure_gates,
    needed_documents,
    print_text,
    summarise_seeds,
)
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import (
    average_present_f1,
    compute_value,
    mean_of_documents,
    ratio_of_sums,
)
from plant_cli.evaluation.measurement import (
    Measure,
    Measurement,
    average_seeds,
    keep_shared,
    measure_system,
)
from plant_cli.evaluation.systems import file_system


def metrics(shift):
    base = np.random.default_rng(0).random(80) / 2 + 0.2
    return [mean_of_documents("P@5", base + shift), mean_of_documents("MAP", base)]


def quick(*systems, seed=1, **changes):
    given = {
        "replicates": 200,
        "permutations": 9,
        "level": 0.95,
        "generator": np.random.default_rng(seed),
    }
    return compare_metrics(list(zip("abc", systems, strict=False)), **{**given, **changes})


def compare_three():
    rng = np.random.default_rng(2).normal(0, 0.01, 80)
    return quick(metrics(0.1 + rng), metrics(0.0), metrics(0.3), permutations=499)


def test_a_positive_difference_means_that_the_first_is_better():
    better, same, worse, _ = compare_three()
    assert (better["metric"], better["a"], better["b"]) == ("P@5", "a", "b")
    assert better["difference"] == pytest.approx(better["value_a"] - better["value_b"])
    assert 0.09 < better["low"] < better["difference"] < better["high"]
    assert "▲" in better["text"]
    assert worse["difference"] < 0
    assert "▼" in worse["text"]
    assert (same["difference"], same["p"], same["wilcoxon_p"], same["published"]["p"]) == (
        0,
        1.0,
        1.0,
        1.0,
    )
    assert same["text"] == same["text_paper"] == f"{100 * same['value_a']:.1f} (+0.0, [0.0, 0.0])"
    assert [same[name] for name in ("better", "worse", "effect", "documents_for_a_point")] == [
        0,
        0,
        None,
        None,
    ]


def test_of_a_loss_the_lower_is_better():
    def lose(shift):
        return [replace(metric, lower_is_better=True) for metric in metrics(shift)]

    rng = np.random.default_rng(2).normal(0, 0.01, 80)
    worse, _, better, _ = quick(lose(0.1 + rng), lose(0.0), lose(0.3), permutations=499)
    assert (worse["difference"] > 0, better["difference"] < 0) == (True, True)
    assert ("▼" in worse["text"], "▲" in better["text"]) == (True, True)
    assert (worse["better"], better["worse"], better["better"]) == (0, 0, 80)
    reached = measure_gates([worse, better], paper=False)
    assert (reached["p[P@5]"], reached["difference[P@5]"]) == (1.0, worse["difference"])
    assert measure_gates([better], paper=False)["p"] < 0.05


def test_holm_is_over_all_metrics_and_systems():
    assert [c["p"] for c in compare_three()] == pytest.approx([1 / 500, 1, 1 / 500, 1])
    assert [c["p_holm"] for c in compare_three()] == pytest.approx([4 / 500, 1, 4 / 500, 1])


def test_as_the_paper_prints_it():
    assert print_text(0.23, 0.03, 0.021, 0.039, 0.01) == "23.0▲ (+3.0, [2.1, 3.9])"
    assert print_text(0.23, 0.03, 0.021, 0.039, 0.2) == "23.0 (+3.0, [2.1, 3.9])"
    assert print_text(0.23, 0.03, -0.001, 0.039, 0.01) == "23.0 (+3.0, [-0.1, 3.9])"


def test_tables():
    given = {
        "names": {"a": "A.parquet", "b": "b", "c": "c"},
        "notes": ["n"],
        "level": 0.95,
        "resamples": "200 resamples",
    }
    table, other = make_difference_tables(compare_three(), paper=False, **given)
    assert [c.name for c in table.columns][:4] == ["metric", "A A.parquet", "B b", "A - B"]
    assert (other.title, [row[0] for row in other.rows]) == ("A.parquet against c", ["P@5", "MAP"])
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.notes[-1] == "n"
    published = make_difference_tables(compare_three(), paper=True, **given)[0]
    assert [c.name for c in published.columns][3:8] == ["gain", "low", "high", "p", "Wilcoxon over"]


def test_one_table_of_all_systems_marks_those_that_differ_from_the_first():
    rows = compare_three()
    names = {"a": "full", "b": "no boost", "c": "twice"}
    table = make_overview(rows, names, ["n"], paper=False)
    value = {(row["b"], row["metric"]): f"{100 * row['value_b']:.1f}" for row in rows}
    assert [column.name for column in table.columns] == ["system", "P@5", "MAP"]
    assert table.rows == [
        ["full", f"{100 * rows[0]['value_a']:.1f}", f"{100 * rows[1]['value_a']:.1f}"],
        ["no boost", value["b", "P@5"] + "▼", value["b", "MAP"]],
        ["twice", value["c", "P@5"] + "▲", value["c", "MAP"]],
    ]
    assert table.notes[-1] == "n"
    assert not any("same figures" in note for note in table.notes)
    spread = [{"system": "b", "metric": "MAP", "spread": 0.012}]
    assert (
        make_overview(rows, names, [], paper=False, spreads=spread).rows[1][2]
        == value["b", "MAP"] + " ±1.2"
    )
    same = make_overview([row for row in rows if row["metric"] == "MAP"], names, [], paper=False)
    assert [note for note in same.notes if "same figures" in note] == [
        f"{name} has the same figures as full in every metric" for name in ("no boost", "twice")
    ]


def test_metrics_that_nothing_defines_are_left_out():
    nothing = ratio_of_sums("R@10[0]", np.zeros(80), np.zeros(80))
    assert [c["metric"] for c in quick([*metrics(0.1), nothing], [*metrics(0.0), nothing])] == [
        "P@5",
        "MAP",
    ]
    with pytest.raises(DataError, match="none of the metrics"):
        quick([nothing], [nothing])


def test_the_same_seed_gives_the_same_result():
    assert compare_three() == compare_three()


def test_resamples_that_define_no_difference_are_left_out():
    """Only the first of three documents has gold of the bin: a third of the resamples do not
    draw it.
    """
    gold = np.array([1.0, 0.0, 0.0])
    [found] = quick(
        [ratio_of_sums("R@10[1-5]", gold, gold)], [ratio_of_sums("R@10[1-5]", 0 * gold, gold)]
    )
    assert (found["low"], found["high"]) == (1.0, 1.0)


def test_the_published_rule():
    """Per-document metrics by their documents, others by replicates, all with plain percentiles
    and the mean over replicates.
    """
    rng = np.random.default_rng(3)
    counters = [csr_array((rng.random((80, 30)) < share).astype(float)) for share in (0.3, 0.2)]
    a, b = (
        MetricValue(name="macro-F1", contributions=c, combine=lambda sums: (sums > 20).mean(axis=1))
        for c in counters
    )
    first, second = (
        [metrics(shift)[0], f1] for shift, f1 in ((rng.normal(0.02, 0.05, 80), a), (0.0, b))
    )
    precision, f1 = quick(first, second, replicates=300, level=0.9, seed=4)
    published = f1["published"]
    assert (precision["published"]["over"], published["over"]) == ("documents", "replicates")
    by_scipy = wilcoxon(first[0].per_document - second[0].per_document).pvalue
    assert precision["published"]["p"] == precision["wilcoxon_p"] == pytest.approx(by_scipy)
    drawn = resample([*first, *second], 300, np.random.default_rng(4))
    moved = drawn[1] - drawn[3]
    assert published["gain"] == pytest.approx(moved.mean())
    assert (published["low"], published["high"]) == pytest.approx(
        tuple(np.quantile(moved, [0.05, 0.95]))
    )
    assert published["p"] == pytest.approx(wilcoxon(moved, method="approx").pvalue)
    assert published["gain"] != pytest.approx(
        f1["difference"]
    )  # our interval alone takes out the bias of an average over labels
    assert "▲" in f1["text_paper"]


def test_more_replicates_shrink_the_published_p_of_f1_and_no_other():
    rng = np.random.default_rng(5)
    systems = [
        [mean_of_documents("P@5", x), replace(mean_of_documents("F1", x), per_document=None)]
        for x in rng.random((2, 60))
    ]
    few, many = (
        [c["published"]["p"] for c in quick(*systems, replicates=count, seed=0)]
        for count in (50, 5000)
    )
    assert few[0] == many[0] > 0.05
    assert many[1] < 1e-100 < few[1]


def test_a_metric_of_pairs_is_compared_as_any_other():
    """A WeightedMetric that is a mean over documents: the interval of that mean, and about its
    p.
    """
    rng = np.random.default_rng(6)
    values = rng.random(60) / 4, rng.random(60) / 4 + 0.01

    def weighted(x):
        return WeightedMetric(
            name="micro-AUC", documents=len(x), compute=lambda w: w @ x / w.sum(axis=1)
        )

    systems, joined = (
        [[mean_of_documents("P@1", x), weighted(x)] for x in values],
        {("b", "micro-AUC"): weighted(np.concatenate(values))},
    )
    mean, auc = quick(*systems, joined=joined, replicates=199, permutations=5000)
    assert (auc["low"], auc["high"]) == pytest.approx((mean["low"], mean["high"]))
    assert 0.01 < mean["p"] < 0.2
    assert auc["p"] == pytest.approx(mean["p"], abs=0.03)
    assert (auc["wilcoxon_p"], auc["effect"], auc["published"]["over"]) == (
        None,
        None,
        "replicates",
    )


def test_effect_and_power():
    rng = np.random.default_rng(7)
    noise = rng.normal(0.05, 0.1, 100)
    [found] = quick(
        *([mean_of_documents("P@5", x)] for x in (0.3 + noise, np.full(100, 0.3))), replicates=2000
    )
    assert found["effect"] == pytest.approx(noise.mean() / noise.std(ddof=1))
    assert (found["better"], found["worse"]) == ((noise > 0).sum(), (noise < 0).sum())
    assert found["documents_for_a_point"] == pytest.approx(
        ((1.96 + 0.8416) * noise.std() / 0.01) ** 2, rel=0.1
    )


def test_the_power_note_holds_by_simulation():
    """With as many documents as it names, a true difference of one point is significant in four
    of five test sets.
    """
    rng = np.random.default_rng(8)
    documents = needed_documents(100, 0.1 / np.sqrt(100))
    found = rng.normal(0.01, 0.1, (2000, documents))
    assert (stats.ttest_1samp(found, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(
        0.8, abs=0.03
    )
    assert needed_documents(100, 0.0) is None


DOCUMENTS, LABELS = 12, 3


def draw_seed(seed):
    """A mean with an undefined document, and two averages of F1 over labels that share their
    counters.
    """
    rng = np.random.default_rng(seed)
    values = rng.random(DOCUMENTS)
    values[3] = np.nan
    gold = np.random.default_rng(99).integers(0, 2, (DOCUMENTS, LABELS))
    assigned = rng.integers(0, 2, (DOCUMENTS, LABELS))
    counters = csr_array(np.hstack([gold & assigned, assigned, gold]).astype(float))
    f1 = [
        MetricValue(name=name, contributions=counters, combine=average_present_f1)
        for name in ("macro-F1", "macro-F1-present")
    ]
    return [mean_of_documents("P@5", values), *f1]


def test_the_average_is_the_mean_of_the_seeds_on_every_resample():
    seeds = [draw_seed(seed) for seed in range(3)]
    averaged = average_seeds(seeds)
    assert [compute_value(m) for m in averaged] == pytest.approx(
        np.mean([[compute_value(m) for m in seed] for seed in seeds], axis=0)
    )
    drawn = resample(averaged, 20, np.random.default_rng(1))
    alone = [resample(seed, 20, np.random.default_rng(1)) for seed in seeds]
    assert np.allclose(drawn, np.mean(alone, axis=0), equal_nan=True)


def test_what_metrics_share_stays_shared_and_keeps_its_kind():
    averaged = average_seeds([draw_seed(0), draw_seed(1)])
    assert averaged[1].contributions is averaged[2].contributions
    assert [averages_labels(m) for m in averaged] == [False, True, True]


def test_means_over_documents_are_those_of_averaged_documents():
    a, b = ([draw_seed(seed) for seed in seeds] for seeds in ((0, 1), (5, 6)))
    averaged = [
        mean_of_documents("P@5", np.mean([seed[0].per_document for seed in system], axis=0))
        for system in (a, b)
    ]
    p = randomise([(average_seeds(a)[0], average_seeds(b)[0])], 200, np.random.default_rng(0))
    assert p == pytest.approx(
        randomise([(averaged[0], averaged[1])], 200, np.random.default_rng(0))
    )
    assert np.allclose(average_seeds(a)[0].per_document, averaged[0].per_document, equal_nan=True)


def constant(*values):
    return [
        Measurement(metrics=[mean_of_documents("P@1", np.full(4, value))], data=None)
        for value in values
    ]


def test_spreads_and_differences_by_hand():
    spreads = summarise_seeds([("a", constant(0.2, 0.4, 0.6)), ("b", constant(0.1, 0.4, 0.4))])
    assert [(s["system"], s["lowest"], s["highest"]) for s in spreads] == [
        ("a", 0.2, 0.6),
        ("b", 0.1, 0.4),
    ]
    assert [s["mean"] for s in spreads] == pytest.approx([0.4, 0.3])
    assert [s["spread"] for s in spreads] == pytest.approx([0.2, 0.03**0.5])
    (difference,) = compare_seeds(spreads, 0.95)
    expected = stats.ttest_1samp([0.1, 0.0, 0.2], 0).confidence_interval(0.95)
    assert difference["differences"] == pytest.approx([0.1, 0.0, 0.2])
    assert (difference["low"], difference["high"]) == pytest.approx((expected.low, expected.high))
    shown, table = make_seed_tables(
        spreads, [difference], {"a": "a", "b": "short"}, [4, 5, 6], 0.95, "of three documents"
    )
    assert (table.title, table.rows[0][-1]) == ("a against short, seed by seed", "2 of 3")
    assert (
        "95% t interval of the mean difference over 3 seeds (2 degrees of freedom)"
        in table.notes[0]
    )
    assert "4, 5, 6" in shown.notes[0]
    assert all(len(row) == len(shown.columns) for row in shown.rows)


def test_metrics_that_nothing_defines_have_no_spread():
    nothing = Measurement(metrics=[ratio_of_sums("R@10[0]", np.zeros(4), np.zeros(4))], data=None)
    assert summarise_seeds([("a", [nothing, nothing])]) == []


@pytest.fixture
def measure(families):
    return lambda wanted=(): Measure(
        families=families, convention=CONVENTIONS["plant"], wanted=wanted, memory=10**6
    )


def test_default_metrics_are_those_that_there_are(gold, save, good, measure):
    found = measure_system(file_system(save(good)), gold, measure(), SilentReporter())
    names = [metric.name for metric in found.metrics]
    assert "P@5" in names
    assert "R@10[1-5]" in names
    assert "macro-AUC" not in names  # needs every score
    chosen = measure_system(file_system(save(good)), gold, measure(["P@1"]), SilentReporter())
    assert [(m.name, compute_value(m)) for m in chosen.metrics] == [("P@1", pytest.approx(0.75))]
    with pytest.raises(UsageError, match="no metric named"):
        measure_system(file_system(save(good)), gold, measure(["P@x"]), SilentReporter())


def test_equal_seeds_compare_equally(gold, save, good, bad, measure, families):
    systems = keep_shared(
        [
            (
                name,
                [
                    measure_system(
                        file_system(save(given, f"{name}.parquet")),
                        gold,
                        measure(["P@1"]),
                        SilentReporter(),
                    )
                ],
            )
            for name, given in (("a", good), ("b", bad))
        ]
    )
    options = {
        "replicates": 50,
        "permutations": 99,
        "level": 0.95,
        "seed": 3,
        "reporter": SilentReporter(),
    }
    [first], [second] = (compare_systems(systems, families, **options) for _ in range(2))
    assert first == second
    assert first["difference"] == pytest.approx(0.75)
