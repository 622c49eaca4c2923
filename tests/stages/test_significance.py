"""`plant significance` through the runner: signs, the rare bins, and systems from elsewhere."""

import json

import polars as pl
import pytest

from plant_cli.api import ArtefactError, DataError, PlantError, UsageError

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
    result = played("significance", systems=["baseline", "finetune"], metric=["P@1", "MAP"], bootstrap=100, permutations=999)
    assert [c["difference"] < 0 for c in result.data["comparisons"]] == [True, True]
    assert result.data["comparisons"][0]["text"].startswith("50.0▼ (-50.0, [")


def test_files_and_several_systems(played, tmp_path):
    played("predict")
    path = str(tmp_path / "run" / "predict" / "predictions.parquet")
    result = played("significance", systems=["finetune", path, "baseline"], metric=["P@1"], **QUICK)
    same, worse = result.data["comparisons"]
    assert (same["b"], same["difference"], same["p"]) == (path, 0.0, 1.0)
    assert worse["p_holm"] == pytest.approx(2 * worse["p"])
    assert len(result.tables) == 2


def test_another_run_of_the_same_corpus(played, tmp_path):
    played("finetune", run="other")
    played("predict", run="other")
    result = played("significance", systems=["baseline", str(tmp_path / "other")], metric=["P@1"], **QUICK)
    assert result.data["comparisons"][0]["difference"] == -0.5


def test_other_documents_are_refused(played, tmp_path):
    played("predict")
    frame = pl.read_parquet(tmp_path / "run" / "predict" / "predictions.parquet")
    frame.head(20).write_parquet(tmp_path / "fewer.parquet")
    with pytest.raises(DataError, match="4 documents of the test split without predictions"):
        played("significance", systems=["finetune", str(tmp_path / "fewer.parquet")], **QUICK)


def test_the_published_rule(played):
    result = played("significance", systems=["finetune", "baseline"], metric=["P@1"], paper=True, **QUICK)
    assert result.data["comparisons"][0]["text_paper"].startswith("100.0▲ (+50.0, [")
    assert "p shrinks" in result.tables[0].notes[1]


def test_bad_operands(played):
    with pytest.raises(UsageError, match="given twice"):
        played("significance", systems=["finetune", "finetune"])
    with pytest.raises(PlantError):
        played("significance", systems=["finetune"])
    with pytest.raises(ArtefactError):
        played("significance", systems=["finetune", "finetune-missing"])
