"""`plant significance` through the runner: signs, the rare bins, and systems from elsewhere."""

import json
from shutil import copy

import polars as pl
import pytest
from laboratory import gold_labels

from plant_cli.api import DataError, GateFailed, PlantError, UsageError

QUICK = {"bootstrap": 100, "permutations": 199}


def test_the_better_system_wins_with_an_interval_and_p(played, tmp_path):
    result = played("significance", systems=["finetune", "finetune-baseline"], **QUICK)
    content = json.loads((tmp_path / "run" / "significance" / "significance.json").read_text())
    assert content == result.data
    by_name = {c["metric"]: c for c in content["comparisons"]}
    p1 = by_name["P@1"]
    assert (p1["value_a"], p1["value_b"], p1["difference"]) == (1.0, 0.5, 0.5)
    assert p1["p"] == pytest.approx(1 / 200)
    assert p1["low"] > 0
    assert p1["wilcoxon_documents"] == 12
    assert p1["wilcoxon_p"] == pytest.approx(2 / 2**12)
    assert by_name["micro-F1"]["wilcoxon_p"] is None
    assert {"R@10[1-5]", "R@50[1-5]"} <= set(by_name)
    assert "▲ A is better" in result.tables[0].notes[0]


def test_the_order_of_systems_turns_the_sign(played):
    result = played(
        "significance",
        systems=["baseline", "finetune"],
        metric=["P@1", "MAP"],
        bootstrap=100,
        permutations=999,
    )
    assert [c["difference"] < 0 for c in result.data["comparisons"]] == [True, True]
    assert result.data["comparisons"][0]["text"].startswith("50.0▼ (-50.0, [")


def test_files_and_several_systems(played, tmp_path):
    played("predict")
    path = str(tmp_path / "run" / "predict" / "predictions.parquet")
    result = played("significance", systems=["finetune", path, "baseline"], metric=["P@1"], **QUICK)
    same, worse = result.data["comparisons"]
    assert (same["b"], same["difference"], same["p"]) == (path, 0.0, 1.0)
    assert worse["p_holm"] == pytest.approx(2 * worse["p"])
    assert [row[0] for row in result.tables[0].rows] == [
        "finetune",
        "predictions.parquet",
        "baseline",
    ]
    detailed = played(
        "significance",
        systems=["finetune", path, "baseline"],
        metric=["P@1"],
        details=True,
        **QUICK,
    )
    assert [len(table.rows) for table in detailed.tables] == [3, 1, 1]


def test_another_run_of_the_same_corpus(played, tmp_path):
    played("finetune", run="other")
    played("predict", run="other")
    result = played(
        "significance", systems=["baseline", str(tmp_path / "other")], metric=["P@1"], **QUICK
    )
    assert result.data["comparisons"][0]["difference"] == -0.5


def test_other_documents_are_refused(played, tmp_path):
    played("predict")
    frame = pl.read_parquet(tmp_path / "run" / "predict" / "predictions.parquet")
    frame.head(20).write_parquet(tmp_path / "fewer.parquet")
    with pytest.raises(DataError, match="4 documents of the test split without predictions"):
        played("significance", systems=["finetune", str(tmp_path / "fewer.parquet")], **QUICK)


def test_the_published_rule(played):
    result = played(
        "significance", systems=["finetune", "baseline"], metric=["P@1"], paper=True, **QUICK
    )
    [found] = result.data["comparisons"]
    published = found["published"]
    assert published["over"] == "documents"
    assert (
        found["text_paper"]
        == f"100.0▲ (+{100 * published['gain']:.1f}, [{100 * published['low']:.1f}, "
        f"{100 * published['high']:.1f}])"
    )
    assert result.tables[0].rows[0][-1] == found["text_paper"]
    assert "its p shrinks as --bootstrap grows" in result.tables[0].notes[2]
    assert (
        result.tables[0].notes[-1]
        == "24 documents of test, 0 without gold left out; 6 labels counted; convention plant"
    )


def test_auc_is_compared_where_every_system_kept_every_score(played):
    """The baseline scores a wrong label highest in every second document."""
    missing = played("significance", tag="lists", systems=["finetune", "baseline"], **QUICK)
    assert "micro-AUC" not in {c["metric"] for c in missing.data["comparisons"]}
    for tag in (None, "baseline"):
        played("predict", tag=tag, auc=True, force=True)
    result = played("significance", systems=["finetune", "baseline"], paper=True, **QUICK)
    found = {c["metric"]: c for c in result.data["comparisons"]}
    micro = found["micro-AUC"]
    assert micro["value_a"] == 1.0 > micro["value_b"]
    assert (micro["published"]["over"], micro["wilcoxon_p"]) == ("replicates", None)
    assert micro["p"] < 0.05
    assert "▲" in micro["text_paper"]
    evaluated = played("eval", tag="baseline", metric=["micro-AUC"], bootstrap=0)
    assert micro["value_b"] == evaluated.data["metrics"]["micro-AUC"]["value"]


def test_auc_of_several_seeds_is_their_mean(three_seeds):
    for seed in ("", "-seed1", "-seed2"):
        for system in ("", "baseline"):
            three_seeds(
                "predict",
                tag=f"{system}{seed}".strip("-") or None,
                seed=int(seed[-1:] or 0),
                auc=True,
                force=True,
            )
    result = three_seeds(
        "significance",
        "auc",
        systems=["finetune", "baseline"],
        seeds=3,
        metric=["macro-AUC"],
        **QUICK,
    )
    [found], spreads = result.data["comparisons"], result.data["spreads"]
    assert found["value_b"] == pytest.approx(spreads[1]["mean"])


def test_effect_and_power_are_shown(played):
    result = played(
        "significance", systems=["finetune", "baseline"], metric=["P@1", "micro-F1"], **QUICK
    )
    names = [column.name for column in result.tables[0].columns]
    precision, f1 = (dict(zip(names, row, strict=True)) for row in result.tables[0].rows)
    assert (precision["effect"], f1["effect"]) == (0.98, None)  # 12 of 24 documents differ by 1
    assert precision["documents for 1 point"] > 1000
    assert f1["documents for 1 point"] > 100


@pytest.fixture
def three_seeds(played):
    """Both systems with the seeds 0, 1 and 2; seed n spoils the first n documents."""
    for seed in (1, 2):
        for tag in (f"seed{seed}", f"baseline-seed{seed}"):
            played("finetune", tag, seed=seed)
    return played


def test_several_seeds_give_their_spread_and_differences_at_two_levels(three_seeds, tmp_path):
    result = three_seeds(
        "significance",
        "seeds3",
        systems=["finetune", "baseline"],
        seeds=3,
        metric=["P@1", "micro-F1"],
        **QUICK,
    )
    content = json.loads(
        (tmp_path / "run" / "significance-seeds3" / "significance.json").read_text()
    )
    assert content == result.data
    assert content["seeds"] == [0, 1, 2]
    ours, theirs = (s for s in content["spreads"] if s["metric"] == "P@1")
    assert ours["values"] == pytest.approx([1, 23 / 24, 22 / 24])
    assert (ours["mean"], ours["spread"]) == pytest.approx((23 / 24, 1 / 24))
    assert (ours["lowest"], ours["highest"]) == pytest.approx((22 / 24, 1))
    assert theirs["values"] == pytest.approx([12 / 24, 11 / 24, 11 / 24])
    over = next(d for d in content["over_seeds"] if d["metric"] == "P@1")
    reach = 4.3026527 * (1 / 24 / 3**0.5) / 3**0.5  # t of 2 degrees of freedom
    assert over["differences"] == pytest.approx([12 / 24, 12 / 24, 11 / 24])
    assert (over["difference"], over["low"], over["high"]) == pytest.approx(
        (35 / 72, 35 / 72 - reach, 35 / 72 + reach)
    )
    documents = next(c for c in content["comparisons"] if c["metric"] == "P@1")
    assert (documents["value_a"], documents["difference"]) == pytest.approx((23 / 24, 35 / 72))
    assert documents["p"] == pytest.approx(1 / 200)
    assert documents["wilcoxon_documents"] == 12
    f1 = next(c for c in content["comparisons"] if c["metric"] == "micro-F1")
    assert f1["value_a"] == pytest.approx(
        next(s["mean"] for s in content["spreads"] if s["metric"] == "micro-F1")
    )
    assert [table.title for table in result.tables] == [
        "Over 3 seeds",
        "finetune against baseline, seed by seed",
        "finetune against baseline",
    ]
    assert "2 degrees of freedom" in result.tables[1].notes[0]
    assert "means over 3 seeds" in result.tables[2].notes[-1]


def test_one_system_alone_has_a_spread(three_seeds):
    plain = three_seeds(
        "significance", "plain", systems=["finetune", "baseline"], metric=["P@1"], **QUICK
    )
    assert (plain.data["comparisons"][0]["difference"], "seeds" in plain.data) == (0.5, False), (
        "only the first seed is compared"
    )
    result = three_seeds("significance", systems=["finetune"], seeds=2, metric=["P@1"], **QUICK)
    assert result.data["comparisons"] == result.data["over_seeds"] == []
    assert result.data["spreads"][0]["values"] == pytest.approx([1, 23 / 24])


def test_a_file_is_the_same_with_every_seed(three_seeds, tmp_path):
    three_seeds("predict")
    path = str(tmp_path / "run" / "predict" / "predictions.parquet")
    result = three_seeds(
        "significance", systems=["finetune", path], seeds=3, metric=["P@1"], **QUICK
    )
    assert result.data["over_seeds"][0]["differences"] == pytest.approx([0, -1 / 24, -2 / 24])
    assert result.data["systems"] == ["finetune", path]
    spread, difference, comparison = result.tables
    assert [row[1] for row in spread.rows] == ["finetune", "predictions.parquet"]
    assert difference.title == "finetune against predictions.parquet, seed by seed"
    assert comparison.title == "finetune against predictions.parquet"


def test_files_of_one_name_are_told_by_their_paths(played, tmp_path):
    played("predict")
    paths = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths.append(
            str(copy(tmp_path / "run" / "predict" / "predictions.parquet", tmp_path / folder))
        )
    result = played("significance", systems=["finetune", *paths], metric=["P@1"], **QUICK)
    assert [row[0] for row in result.tables[0].rows] == ["finetune", *paths]


def test_seeds_of_another_run(three_seeds, tmp_path):
    for seed, tag in enumerate((None, "seed1")):
        three_seeds("finetune", tag, run="other", seed=seed)
        three_seeds("predict", tag, run="other")
    for tag, other in ((None, "other"), ("again", "other/finetune")):
        result = three_seeds(
            "significance",
            tag,
            systems=["baseline", str(tmp_path / other)],
            seeds=2,
            metric=["P@1"],
            **QUICK,
        )
        assert result.data["over_seeds"][0]["differences"] == pytest.approx([-12 / 24, -12 / 24])


def test_seeds_that_are_not_there_or_not_in_common(three_seeds, tmp_path):
    three_seeds("finetune", "other", seed=7)
    three_seeds("finetune", "other-seed8", seed=8)
    with pytest.raises(UsageError, match="not trained with the same seeds"):
        three_seeds("significance", systems=["finetune", "other"], seeds=2)
    three_seeds("predict")
    with pytest.raises(UsageError, match="none of the systems"):
        three_seeds(
            "significance",
            systems=[str(tmp_path / "run" / "predict" / "predictions.parquet")],
            seeds=2,
        )


def test_gates_of_significance(played, tmp_path):
    """P counts as 1 where A is not better, so that a worse system never passes."""
    given = {"metric": ["P@1", "MAP"], **QUICK}
    played(
        "significance",
        systems=["finetune", "baseline"],
        require=["p<0.05", "p[P@1]<0.05", "difference[P@1]>=0.4"],
        **given,
    )
    with pytest.raises(GateFailed, match=r"p<0\.05 \(it is 1\.0000\)") as caught:
        played(
            "significance",
            systems=["baseline", "finetune"],
            require=["p<0.05"],
            force=True,
            **given,
        )
    assert caught.value.exit_code == 7
    assert (
        json.loads((tmp_path / "run" / "significance" / "significance.json").read_text())[
            "comparisons"
        ][0]["difference"]
        < 0
    )


@pytest.mark.parametrize(
    "given",
    [
        {"require": ["p[P@1]<0.05"], "metric": ["MAP"]},
        {"require": ["differnce[MAP]>0"]},
        {"metric": ["MAPP"]},
    ],
    ids=str,
)
def test_a_metric_of_no_such_name_is_refused_before_documents_are_resampled(
    given, played, monkeypatch
):
    monkeypatch.setattr(
        "plant_cli.commands.significance.compare_systems", lambda *_, **__: pytest.fail("resampled")
    )
    with pytest.raises(UsageError, match=r"named '(p\[P@1\]|differnce\[MAP\]|MAPP)'"):
        played("significance", systems=["finetune", "baseline"], **given, **QUICK)


def test_every_system_is_found_before_one_is_measured(played, monkeypatch):
    monkeypatch.setattr(
        "plant_cli.commands.significance.measure_system", lambda *_: pytest.fail("measured")
    )
    with pytest.raises(PlantError, match="nowhere"):
        played("significance", systems=["finetune", "nowhere"], **QUICK)


def test_a_file_with_an_order_of_labels(played, tmp_path):
    """Right labels for every document, as XMLRepository sparse text whose numbers count
    backwards.
    """
    order = [f"label {5 - i}" for i in range(6)]
    (tmp_path / "labels.txt").write_text("\n".join(order) + "\n")
    rows = [
        " ".join(f"{order.index(name)}:0.9" for name in gold_labels(number)) for number in range(24)
    ]
    (tmp_path / "sparse.txt").write_text("24 6\n" + "\n".join(rows) + "\n")
    options = {"label_order": str(tmp_path / "labels.txt"), "metric": ["micro-F1"]}
    result = played(
        "significance", systems=["baseline", str(tmp_path / "sparse.txt")], **options, **QUICK
    )
    assert result.data["comparisons"][0]["value_b"] == 1.0
    found = played(
        "eval", tag="tool", predictions=str(tmp_path / "sparse.txt"), bootstrap=0, **options
    )
    assert found.data["metrics"]["micro-F1"]["value"] == 1.0
    (tmp_path / "filter.txt").write_text(f"0 {order.index('label 0')}\n")
    less = played(
        "eval",
        tag="less",
        predictions=str(tmp_path / "sparse.txt"),
        bootstrap=0,
        remove_pairs=str(tmp_path / "filter.txt"),
        **options,
    )
    assert less.data["metrics"]["micro-F1"]["value"] == pytest.approx(2 * 47 / (47 + 48))
    assert less.data["removed_pairs"] == 1
    assert any(
        "1 pairs of document and label do not count" in note for note in less.tables[0].notes
    )
