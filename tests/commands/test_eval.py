"""`plant eval` through the runner, on predictions whose metrics are known."""

import json
import math

import numpy as np
import polars as pl
import pytest
from builders import run_at

from plant_cli.api import DataError, GateFailed, UsageError


def read(tmp_path, folder="eval"):
    return json.loads((tmp_path / "run" / folder / "metrics.json").read_text())


def test_all_files_and_tables(played, tmp_path):
    result = played("eval", bootstrap=50)
    content = read(tmp_path)
    assert content == result.data
    assert content["documents"] == 24
    assert content["metrics"]["P@1"] == {
        "value": 1.0,
        "low": pytest.approx(24 / (24 + 1.96**2), abs=1e-4),
        "high": 1.0,
    }  # as Wilson
    assert content["metrics"]["micro-F1"]["value"] == 1.0
    assert content["threshold"] == "threshold 0.5 tuned on validation micro-F1"
    assert [table.title for table in result.tables] == [
        "Metrics on test",
        "By training documents of the label",
    ]
    assert {p.name for p in (tmp_path / "run" / "eval").iterdir()} == {
        "metrics.json",
        "intervals.json",
        "per_label.tsv",
        "per_document.parquet",
        "stage.json",
    }
    assert pl.read_parquet(tmp_path / "run" / "eval" / "per_document.parquet").height == 24
    assert "plant significance finetune finetune-baseline" in result.next_step


def test_pairs_that_the_corpus_excludes_are_taken_out_unasked(played, tmp_path):
    """Document 37 is the first of test; its first label is right, and is not judged."""
    assert "removed_pairs" not in played("eval", bootstrap=0).data
    pl.DataFrame({"doc_id": ["37"], "label": ["label 0"]}).write_csv(tmp_path / "data.excluded.csv")
    played("finetune", run="other")
    found = played("eval", run="other", bootstrap=0)
    assert found.data["metrics"]["micro-F1"]["value"] == pytest.approx(2 * 47 / (47 + 48))
    assert found.data["removed_pairs"] == 1
    assert any(
        "1 pairs of document and label do not count" in note for note in found.tables[0].notes
    )


def test_groups_of_documents(played, tmp_path):
    """The test documents 37 to 48, and those after them, by columns that only the corpus has."""
    path = tmp_path / "data.parquet"
    place = pl.int_range(pl.len())
    pl.read_parquet(path).with_columns(
        language=pl.when(place < 49).then(pl.lit("de")).otherwise(pl.lit("en")),
        year=pl.when(place != 60).then(2000 + place % 2),
    ).write_parquet(path)
    played("finetune", run="other")
    whole = played("eval", run="other", bootstrap=50, by=["language", "language, year"])
    by = whole.data["by"]
    assert list(by) == ["language", "language, year"]
    groups = by["language"]["groups"]
    assert {name: one["documents"] for name, one in groups.items()} == {"de": 12, "en": 12}
    assert set(groups["de"]) == {"documents", "P@5", "R@5", "F1@5", "nDCG@10"}
    for name, mean in by["language"]["mean"].items():
        values = [groups[one][name]["value"] for one in ("de", "en")]
        assert mean == pytest.approx(sum(values) / 2)
        assert mean == pytest.approx(whole.data["metrics"][name]["value"])  # groups of one size
        assert groups["de"][name]["low"] <= values[0] <= groups["de"][name]["high"]
    assert set(by["language, year"]["groups"]) == {
        "de, 2000",
        "de, 2001",
        "en, 2000",
        "en, 2001",
        "en, unknown",
    }
    table = next(table for table in whole.tables if table.title == "By language")
    assert [row[0] for row in table.rows] == ["de", "en", "mean of groups"]
    chosen = played("eval", run="other", force=True, bootstrap=0, by=["year"], metric=["P@1"])
    assert set(chosen.data["by"]["year"]["groups"]["2000"]) == {"documents", "P@1"}


def test_groups_need_a_column_of_few_values(played, tmp_path):
    with pytest.raises(UsageError, match="no column 'language'") as caught:
        played("eval", by=["language"])
    assert "beside id, text and labels" in caught.value.expected
    pl.read_parquet(tmp_path / "data.parquet").with_columns(
        number=pl.int_range(pl.len()) + 1000
    ).write_parquet(tmp_path / "data.parquet")
    played("finetune", run="other")
    with pytest.raises(UsageError, match="no column 'year'") as caught:
        played("eval", run="other", by=["year"])
    assert caught.value.expected == "one of its columns: number"


def test_a_tag_evaluates_its_own_system(played, tmp_path):
    played("eval", tag="baseline", bootstrap=50, metric=["P@1", "P@2"])
    content = read(tmp_path, "eval-baseline")
    assert list(content["metrics"]) == ["P@1", "P@2"]
    assert content["metrics"]["P@1"]["value"] == 0.5
    assert content["metrics"]["P@2"]["value"] == 0.75
    assert content["metrics"]["P@1"]["low"] < 0.5 < content["metrics"]["P@1"]["high"]


def test_a_tag_of_no_system_judges_the_one_without_a_tag_again(played, tmp_path):
    first = played("eval", bootstrap=0)
    second = played("eval", tag="gate", bootstrap=0, threshold=0.85)
    assert second.data["metrics"]["P@1"] == first.data["metrics"]["P@1"]
    assert second.data["threshold"] == "threshold 0.85 given"
    record = json.loads((tmp_path / "run" / "eval-gate" / "stage.json").read_text())
    assert sorted(record["inputs"]) == ["finetune", "predict"]
    assert not (tmp_path / "run" / "predict-gate").exists()


def test_a_second_judgement_of_a_seed_is_of_that_seed(played, tmp_path):
    played("finetune", tag="seed2")
    played("eval", tag="gate-seed2", bootstrap=0)
    record = json.loads((tmp_path / "run" / "eval-gate-seed2" / "stage.json").read_text())
    assert sorted(record["inputs"]) == ["finetune-seed2", "predict-seed2"]


def test_what_to_do_next_compares_systems_that_there_are(played, tmp_path):
    assert played("eval", bootstrap=0).next_step == "plant significance finetune finetune-baseline"
    assert (
        played("eval", tag="baseline", bootstrap=0).next_step
        == "plant significance finetune finetune-baseline"
    )
    path = str(tmp_path / "run" / "predict" / "predictions.parquet")
    assert (
        played("eval", tag="tool", predictions=path, bootstrap=0).next_step
        == f"plant significance finetune {path}"
    )
    played("finetune", run="alone")
    assert played("eval", run="alone", bootstrap=0).next_step.startswith(
        "plant finetune --init random --tag baseline"
    )


def test_another_tools_file_with_a_threshold(played, tmp_path):
    played("predict")
    path = tmp_path / "run" / "predict" / "predictions.parquet"
    result = played("eval", tag="tool", predictions=str(path), threshold=0.85, bootstrap=0)
    assert result.data["threshold"] == "threshold 0.85 given"
    assert result.data["metrics"]["micro-F1"]["value"] == pytest.approx(2 / 3)


def test_constants_of_the_propensity_model_can_be_set(played, tmp_path):
    """Against the formula, with the training documents of the played corpus: label i has 2 i +
    1.
    """
    constants = {"propensity": {"a": 0.5, "b": 0.4}}
    result = played("eval", tag="baseline", bootstrap=0, metric=["PSP@1"], metric_options=constants)
    plain = played("eval", tag="baseline", bootstrap=0, metric=["PSP@1"], force=True)
    counts = np.arange(1, 12, 2)
    expected = []
    for a, b in ((0.5, 0.4), (0.55, 1.5)):
        weights = 1 + (math.log(counts.sum()) - 1) * (b + 1) ** a * (counts + b) ** -a
        gold = [(number % 6, (number + 1 + number // 6) % 6) for number in range(24)]
        hits = sum(weights[first] for number, (first, _) in enumerate(gold) if number % 2 == 0)
        expected.append(hits / sum(max(weights[first], weights[second]) for first, second in gold))
    assert result.data["metrics"]["PSP@1"]["value"] == pytest.approx(expected[0])
    assert plain.data["metrics"]["PSP@1"]["value"] == pytest.approx(expected[1])
    assert result.data["metric_options"] == constants
    assert "options of propensity: a 0.5, b 0.4" in result.tables[0].notes
    compared = played(
        "significance",
        systems=["finetune", "baseline"],
        metric=["PSP@1"],
        metric_options={"propensity": {"a": 0.5, "b": 0.4}},
    )
    assert compared.data["comparisons"][0]["value_b"] == pytest.approx(expected[0])


def test_cut_offs_of_a_family_can_be_set(played):
    result = played(
        "eval", bootstrap=0, metric_options={"precision": {"k": [2, 4]}, "coverage": {"k": [1]}}
    )
    assert [name for name in result.data["metrics"] if name.startswith(("P@", "coverage@"))] == [
        "coverage@1",
        "P@2",
        "P@4",
    ]
    assert result.data["metric_options"]["precision"] == {"k": [2, 4]}


def test_labels_with_parents_have_hierarchical_metrics(played, tmp_path):
    """Labels 0 to 2 stand under one parent, 3 to 5 under another."""
    rows = [(f"label {i}", "low" if i < 3 else "high") for i in range(6)]
    pl.DataFrame(rows, schema=["label", "parent"], orient="row").write_csv(tmp_path / "parents.csv")
    result = played("eval", tag="baseline", bootstrap=20, hierarchy=str(tmp_path / "parents.csv"))
    metrics = result.data["metrics"]
    assert metrics["micro-F1[level 2]"] == metrics["micro-F1"]  # all labels are leaves
    assert (
        metrics["micro-F1[level 1]"]["value"]
        > metrics["hierarchical-F1"]["value"]
        > metrics["micro-F1"]["value"]
    )
    assert metrics["micro-F1[level 1]"]["low"] is not None


def test_every_assumption_is_printed_and_recorded(played):
    result = played("eval", bootstrap=20, convention="annif")
    assert result.data["assumptions"][0] == "P@k divides by the labels predicted, at most k"
    notes = " ".join(result.tables[0].notes)
    assert all(assumption in notes for assumption in result.data["assumptions"])
    assert result.data["labels_never"] == {"counted": 6, "assigned": 0, "listed": 0}


def test_the_same_seed_gives_the_same_intervals(played):
    first, second = played("eval", bootstrap=20), played("eval", bootstrap=20, force=True)
    assert first.data == second.data


def test_a_gate_that_fails_leaves_the_results(played, tmp_path):
    with pytest.raises(GateFailed):
        played("eval", tag="baseline", bootstrap=0, require=["P@1>=0.9", "P@2>=0.7"])
    assert read(tmp_path, "eval-baseline")["metrics"]["P@1"]["value"] == 0.5
    assert list(
        played("eval", bootstrap=0, metric=["MAP"], require=["P@1>=0.9"]).data["metrics"]
    ) == ["MAP", "P@1"]


def evaluate(tmp_path, test, predicted, train=("l0", "l1", "l2"), **options):
    """Predictions of another tool on a corpus of its own, read by the command."""
    rows = [("train", f"{label} {i}", [label], f"t{label}{i}") for label in train for i in range(3)]
    rows += [("test", name, labels, name) for name, labels in test.items()]
    columns = {
        "split": pl.String,
        "text": pl.String,
        "labels": pl.List(pl.String),
        "doc_id": pl.String,
    }
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(tmp_path / "corpus.parquet")
    lists = [(name, list(scores), list(scores.values())) for name, scores in predicted.items()]
    schema = {"doc_id": pl.String, "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
    pl.DataFrame(lists, schema=schema, orient="row").write_parquet(tmp_path / "tool.parquet")
    given = {"predictions": str(tmp_path / "tool.parquet"), "bootstrap": 20, **options}
    flags = {"data": {"path": str(tmp_path / "corpus.parquet")}, "eval": given}
    return {
        name: found["value"]
        for name, found in run_at(tmp_path / "run", "eval", tag="tool", flags=flags, force=True)
        .data["metrics"]
        .items()
    }


TEST = {"a": ["l0"], "b": ["l1", "new"], "c": []}


def test_the_edges_are_defined(tmp_path):
    """Each as `docs/using.md` says."""
    nothing = evaluate(tmp_path, TEST, {"a": {}, "b": {}, "c": {}})
    assert nothing.pop("Hamming-loss") == pytest.approx(
        (1 / 4 + 2 / 4) / 2
    )  # three labels of train and a new one
    assert {
        value for name, value in nothing.items() if not name.startswith(("macro-AUC", "micro-AUC"))
    } == {0.0}
    tied = evaluate(
        tmp_path, TEST, {"a": {"l2": 0.5, "l1": 0.5, "l0": 0.5}, "b": {"l1": 0.5}, "c": {"l0": 0.9}}
    )
    assert (tied["P@1"], tied["R@5"]) == (
        1.0,
        0.75,
    )  # ties by label index; the unseen gold label is missed; c is left out
    unknown = evaluate(
        tmp_path, TEST, {"a": {"nowhere": 0.9, "l0": 0.8}, "b": {"l1": 0.5}, "c": {}}
    )
    assert (unknown["P@1"], unknown["MAP"]) == (0.5, 0.5)  # it keeps its rank and is wrong
    empty = evaluate(
        tmp_path, TEST, {"a": {"l0": 0.9}, "b": {"l1": 0.9}, "c": {"l0": 0.9}}, convention="xmlrepo"
    )
    assert empty["P@1"] == pytest.approx(2 / 3)  # c counts as 0


def test_one_label_and_one_document(tmp_path):
    found = evaluate(tmp_path, {"a": ["l0"]}, {"a": {"l0": 0.9}}, train=("l0",))
    assert {
        found[name] for name in ("P@1", "R@5", "nDCG@5", "MAP", "micro-F1", "macro-F1", "PSP@1")
    } == {1.0}


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        ({"a": {"l0": float("nan")}, "b": {}, "c": {}}, "not a number"),
        ({"a": {"l0": float("inf")}, "b": {}, "c": {}}, "not a number"),
        ({"a": {"nowhere": 0.9}, "b": {}, "c": {}}, "none of the 1 predicted labels is known"),
        ({"a": {"l0": 0.9}, "b": {}}, "without predictions: c"),
    ],
)
def test_what_is_no_prediction_is_refused(tmp_path, predicted, said):
    with pytest.raises(DataError, match=said):
        evaluate(tmp_path, TEST, predicted)


def test_a_split_without_any_gold(tmp_path):
    with pytest.raises(DataError, match="no document of the test split has a gold label"):
        evaluate(tmp_path, {"a": []}, {"a": {"l0": 0.9}})
