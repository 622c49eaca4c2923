"""`plant thresholds` through the runner, on real scorers and on predictions of another tool."""

import json

import polars as pl
import pytest
from builders import record_again
from plant_formats.synthetic_clinic import generate

from plant_cli.api import DataError, UsageError

ALONE = "finetune.network=false"


@pytest.fixture
def decided(prepared):
    """Chooses thresholds in a run of scorers: `decided(*sets, **request)`."""
    clinic = prepared("scorers")
    return lambda *sets, **request: clinic(
        "thresholds", "thresholds.bootstrap=20", *(f"thresholds.{one}" for one in sets), **request
    )


def test_decisions_are_written_shown_and_used_by_other_commands(clinic, decided, tmp_path):
    result = decided("target=[precision=0.3]", "measure=test")
    assert [table.title for table in result.tables] == [
        "Decisions on validation: precision=0.3",
        "Decisions on test: precision=0.3",
        "Thresholds",
    ]
    assert json.loads((clinic.path / "thresholds" / "decisions.json").read_text()) == result.data
    stored = json.loads((clinic.path / "thresholds" / "thresholds.json").read_text())
    assert len(stored["value"]) == len(stored["review"]) == 12
    evaluated = clinic("eval", "eval.thresholds=thresholds", "eval.bootstrap=0", tag=None)
    assert evaluated.data["threshold"] == "thresholds for precision=0.3, chosen on validation"
    measured = result.data["splits"]["test"]["assign"]
    assert evaluated.data["metrics"]["micro-precision"]["value"] == pytest.approx(
        measured["precision"]["value"]
    )
    assert evaluated.data["metrics"]["micro-recall"]["value"] == pytest.approx(
        measured["recall"]["value"]
    )
    clinic("predict", "predict.thresholds=thresholds", force=True)
    frame = pl.read_parquet(clinic.path / "predict" / "predictions.parquet")
    said = frame["decisions"].explode().value_counts().to_dicts()
    assert {one["decisions"]: one["count"] for one in said}["assign"] == round(
        measured["labels"]["value"] * len(frame)
    )
    output = tmp_path / "s.parquet"
    clinic(
        "suggest",
        "suggest.text=fever and cough",
        "suggest.thresholds=thresholds",
        f"suggest.output={output}",
    )
    assert set(pl.read_parquet(output)["bands"][0]) <= {"assign", "review", "reject"}
    assert clinic("verify").failure is None


def test_targets_side_by_side(clinic, decided):
    strict = decided("system=finetune", "target=[precision=0.3]", tag="strict")
    loose = decided("system=finetune", "target=[recall=0.9]", tag="loose")
    assert strict.data["target"] == "precision=0.3"
    many, few = (
        found.data["splits"]["validation"]["assign"]["labels"]["value"] for found in (loose, strict)
    )
    assert many > few
    for name in ("loose", "thresholds-loose", clinic.path / "thresholds-loose" / "thresholds.json"):
        assert clinic("suggest", "suggest.text=fever", f"suggest.thresholds={name}").tables


def test_a_tag_is_no_path_where_a_folder_is_called_so(clinic, decided, monkeypatch):
    """`cd plant-run && plant eval --run . --thresholds thresholds`: the folders of the run lie
    in the working directory.
    """
    monkeypatch.chdir(clinic.path)
    decided("system=finetune", "target=[f1]", tag="strict")
    (clinic.path / "strict").mkdir()
    assert clinic("suggest", "suggest.text=fever", "suggest.thresholds=strict").tables
    assert clinic("suggest", "suggest.text=fever", "suggest.thresholds=thresholds-strict").tables
    clinic("predict", "predict.thresholds=strict")
    assert (
        clinic("eval", "eval.thresholds=thresholds-strict", "eval.bootstrap=0")
        .data["threshold"]
        .startswith("thresholds for f1")
    )


def test_a_label_that_is_never_assigned_says_so(clinic, decided):
    decided("target=[f1]")
    path = clinic.path / "thresholds" / "thresholds.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"value": [None] * len(content["value"])}))
    record_again(path.parent)
    text = generate(documents=120, labels=12, seed=3).splits["test"].collect()["text"][0]
    table = clinic("suggest", flags={"suggest": {"text": text, "thresholds": "thresholds"}}).tables[
        0
    ]
    assert {row[4] for row in table.rows} == {"never"}
    assert any(note.startswith("never: ") for note in table.notes)


def test_a_tag_of_no_system_is_another_target_of_the_one_without_a_tag(clinic, decided):
    assert decided("target=[f1]", tag="loose").data["system"] == "finetune"


def test_what_to_do_next_is_for_the_same_system(clinic, decided):
    """As it stands it can be typed: no command is named that would judge, or load, another one."""
    assert (
        clinic("finetune", ALONE, tag="baseline").next_step
        == "plant eval --tag baseline --bootstrap 1000"
    )
    assert (
        clinic("predict", tag="baseline").next_step == "plant eval --tag baseline --bootstrap 1000"
    )
    own = (
        "plant suggest new.csv --thresholds thresholds, or plant eval --thresholds thresholds "
        "--tag decided"
    )
    assert decided("target=[f1]").next_step == own
    assert (
        clinic("eval", "eval.thresholds=thresholds", "eval.bootstrap=0", tag="decided")
        .data["threshold"]
        .startswith("thresholds for")
    )
    theirs = "plant suggest new.csv --tag baseline --thresholds thresholds-baseline"
    assert decided("target=[f1]", tag="baseline").next_step == theirs


@pytest.mark.parametrize("target", ["f1", "macro-f1", "recall=0.8"])
def test_other_targets(decided, target):
    result = decided(f"target=[{target}]")
    bands = result.data["splits"]["validation"]
    assert bands["assign"]["labels"]["value"] > 0
    assert sum(
        bands[name]["recall"]["value"] for name in ("assign", "review", "reject")
    ) == pytest.approx(1)


def test_a_test_split_changes_no_threshold(clinic, decided):
    plain = decided("target=[f1]")
    measured = decided("target=[f1]", "measure=test", force=True)
    assert plain.data["thresholds"] == measured.data["thresholds"]
    assert plain.data["splits"]["validation"] == measured.data["splits"]["validation"]


def test_another_tools_predictions(clinic, decided, tmp_path):
    kept = pl.read_parquet(clinic.path / "finetune" / "validation.parquet").select(
        "doc_id", "labels", "scores"
    )
    kept.write_parquet(tmp_path / "tool.parquet")
    ours = decided("target=[precision=0.3]", force=True)
    theirs = decided(f"system={tmp_path / 'tool.parquet'}", "target=[precision=0.3]", force=True)
    assert theirs.data["thresholds"] == ours.data["thresholds"]
    with pytest.raises(UsageError, match="predictions of test are not named"):
        decided(f"system={tmp_path / 'tool.parquet'}", "target=[f1]", "measure=test", force=True)
    clinic("predict")
    other = clinic.path / "predict" / "predictions.parquet"
    measured = decided(
        f"system={tmp_path / 'tool.parquet'}",
        "target=[f1]",
        "measure=test",
        f"measure_predictions={other}",
        force=True,
    )
    assert "test" in measured.data["splits"]


def test_scores_that_are_no_probabilities(clinic, decided, tmp_path):
    kept = pl.read_parquet(clinic.path / "finetune" / "validation.parquet").select(
        "doc_id", "labels", "scores"
    )
    kept.with_columns(pl.col("scores").list.eval(10 * pl.element() - 5)).write_parquet(
        tmp_path / "tool.parquet"
    )
    found = decided(f"system={tmp_path / 'tool.parquet'}", "target=[precision=0.3]")
    assert found.data["splits"]["validation"]["assign"]["expected_precision"] is None
    assert (
        decided(f"system={tmp_path / 'tool.parquet'}", "target=[macro-f1]", force=True).data[
            "calibrated"
        ]
        is False
    )


def test_bad_input(clinic, decided, tmp_path):
    with pytest.raises(DataError, match=r"precision=0\.99 cannot be reached: the best threshold"):
        decided("target=[precision=0.99]", force=True)
    frame = pl.read_parquet(clinic.path / "finetune" / "validation.parquet").select(
        "doc_id", "labels", "scores"
    )
    frame.with_columns(pl.col("scores").list.eval(pl.element() * float("nan"))).write_parquet(
        tmp_path / "nan.parquet"
    )
    with pytest.raises(DataError, match="not a number"):
        decided(f"system={tmp_path / 'nan.parquet'}", "target=[f1]", force=True)


def test_a_corpus_without_validation(clinic, tmp_path):
    path = tmp_path / "small.parquet"
    rows = [
        ("train", "fever and cough", ["a"]),
        ("train", "broken leg", ["b"]),
        ("train", "fever", ["a"]),
        ("test", "leg", ["b"]),
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    source = (f"data.path={path}", "data.dataset=files")
    clinic("finetune", *source, ALONE)
    with pytest.raises(DataError, match="no validation split"):
        clinic("thresholds", *source, "thresholds.target=[f1]")


def test_one_label_and_a_label_without_validation_documents(clinic, tmp_path):
    path = tmp_path / "small.parquet"
    rows = [("train", f"fever and cough {i}", ["a"]) for i in range(6)] + [
        ("train", f"broken leg {i}", ["a", "rare"]) for i in range(2)
    ]
    rows += [("validation", f"cough {i}", ["a"]) for i in range(3)] + [("test", "leg", ["a"])]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    source = (f"data.path={path}", "data.dataset=files")
    clinic("finetune", *source, ALONE)
    for target in ("f1", "macro-f1", "precision=0.3"):
        found = clinic(
            "thresholds",
            *source,
            f"thresholds.target=[{target}]",
            "thresholds.bootstrap=0",
            force=True,
        )
        assert found.data["splits"]["validation"]["documents"] == 3
