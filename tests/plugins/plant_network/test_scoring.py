"""Scorers without a network, from the command to the last stage: trained in seconds, predicted,
evaluated, explained, exported.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from clinic import Clinic, Interrupting
from plant_scorers.word_relevance import WordScorer

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    Documents,
    Interrupted,
    Request,
    SilentReporter,
    UsageError,
)
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage
from plant_cli.scoring.calibration import calibrate
from plant_cli.scoring.opened_models import open_model
from plant_cli.scoring.scorer_files import SCORERS_FILE
from plant_cli.scoring.scorer_fitting import DOCUMENTS_LEFT_OUT

ALONE = "finetune.network=false"
THREE = (ALONE, "finetune.scorers=[words, titles, neighbours]")


def test_a_run_without_a_network_goes_through_all_stages(trained: Clinic, tmp_path: Path) -> None:
    result = trained.run("finetune", ALONE)
    assert [row[0] for row in result.tables[0].rows] == [
        "words",
        "titles",
        "neighbours",
        "linear",
        "all together",
    ]
    assert result.summary["MAP"] > 0.4
    assert not (trained.path / "mig").exists()
    trained.run("predict")
    parts = {path.stem for path in (trained.path / "predict" / "parts").iterdir()}
    assert parts == {"words", "titles", "neighbours", "linear"}
    evaluated = trained.run("eval", "eval.bootstrap=20")
    content = json.loads((trained.path / "eval" / "metrics.json").read_text())
    assert set(content["parts"]) == parts
    assert content["parts"]["words"]["P@1"]["low"] <= content["parts"]["words"]["P@1"]["value"]
    assert 0 <= content["calibration"]["ECE"] <= 1
    alone = next(table for table in evaluated.tables if table.title == "Each part alone")
    assert alone.rows[-1][0] == "all together"
    assert trained.run("verify").failure is None
    trained.run("export", f"export.folder={tmp_path / 'exported'}")
    assert (tmp_path / "exported" / "finetune" / "scorers" / "linear.safetensors").exists()
    assert json.loads((tmp_path / "exported" / "export.json").read_text())["what"].endswith(
        "scorers. Trained with plant (PLANT)."
    )


def test_saved_and_loaded_scorers_say_the_same_and_why(trained: Clinic) -> None:
    trained.run("finetune", ALONE)
    model = open_model(trained.path)
    text = pl.read_parquet(trained.path / "corpus" / "labels.parquet")
    title = text["title"][0]
    [found] = model.suggest([f"{title} {title}"], k=3)
    assert title in [suggestion.title for suggestion in found]
    shown = trained.run("suggest", f"suggest.text={title}", "suggest.why=true", "suggest.top_k=3")
    reasons = [row[-1] for row in shown.tables[0].rows]
    assert any("titles +" in reason for reason in reasons)


def test_why_needs_scorers(trained: Clinic) -> None:
    trained.run(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.epochs=1",
    )
    with pytest.raises(UsageError, match="has no scorers"):
        trained.run("suggest", "suggest.text=fever", "suggest.why=true")


def test_a_scorer_alone_and_options_of_a_scorer(trained: Clinic) -> None:
    result = trained.run("finetune", ALONE, "finetune.scorers=[{name: words, min_df: 1}, titles]")
    assert result.summary["scorers"] == ["words", "titles"]
    stored = json.loads((trained.path / "finetune" / "scorers.json").read_text())
    assert stored["scorers"][0]["options"]["min_df"] == 1
    with pytest.raises(ComponentError, match="wrods"):
        trained.run("finetune", ALONE, "finetune.scorers=[wrods]", force=True)


@pytest.mark.parametrize(
    ("begins", "after", "kept"),
    [
        ("reading train", 1, 0),
        ("words of train", 1, 0),
        ("words", 3, 0),
        ("titles", 1, 1),
        ("vectors of train", 1, 2),
        ("scorers: validation", 1, 3),
    ],
)
def test_ctrl_c_leaves_the_fitted_scorers_and_resume_fits_the_others(
    trained: Clinic, begins: str, after: int, kept: int
) -> None:
    with pytest.raises(Interrupted, match="stopped while"):
        trained.run("finetune", *THREE, reporter=Interrupting(begins, after))
    checkpoints = trained.path / "finetune" / "checkpoints"
    assert len(list(checkpoints.glob("scorer-*/DONE"))) == kept
    told = SilentReporter()
    trained.run("finetune", *THREE, reporter=told, resume=True)
    assert (
        len([note for note in told.notes if note.endswith("as it was fitted before the stop")])
        == kept
    )
    assert not checkpoints.exists()
    resumed = trained.record("finetune")["outputs"]
    trained.run("finetune", *THREE, force=True)
    assert resumed == trained.record("finetune")["outputs"]


def test_a_kept_scorer_of_other_options_or_with_damage_is_fitted_again(trained: Clinic) -> None:
    with pytest.raises(Interrupted):
        trained.run("finetune", *THREE, reporter=Interrupting("scorers: validation", 1))
    checkpoints = trained.path / "finetune" / "checkpoints"
    half = checkpoints / "scorer-words" / "fitted.safetensors"
    half.write_bytes(half.read_bytes()[:1000])  # cut off
    other = checkpoints / "scorer-titles"
    shutil.rmtree(other)
    shutil.copytree(checkpoints / "scorer-neighbours", other)  # whole, and of another scorer
    told = SilentReporter()
    trained.run("finetune", *THREE, reporter=told, resume=True)
    assert [note for note in told.notes if "before the stop" in note] == [
        "scorer neighbours: as it was fitted before the stop"
    ]
    assert any(
        "the scorer 'words' as it was fitted" in warning and "made again" in warning
        for warning in told.warnings
    )


def test_damaged_and_missing_files_are_told(trained: Clinic) -> None:
    trained.run("finetune", ALONE, "finetune.scorers=[words]")
    path = trained.path / "finetune" / "scorers" / "words.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 2
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=r"words.safetensors"):
        trained.run("predict")


def test_no_scorer_that_could_say_anything_is_refused(clinic: Any, tmp_path: Path) -> None:
    path = tmp_path / "untitled.parquet"
    rows = [("train", f"fever {i}", ["a"]) for i in range(5)] + [
        ("validation", "fever", ["a"]),
        ("test", "fever", ["a"]),
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    with pytest.raises(DataError, match="no scorer is left"):
        clinic(
            "finetune",
            f"data.path={path}",
            "data.dataset=files",
            ALONE,
            "finetune.scorers=[titles]",
        )
    done = clinic("finetune", f"data.path={path}", "data.dataset=files", ALONE, force=True)
    assert done.summary["scorers"] == ["words", "neighbours", "linear"]


@pytest.mark.parametrize("sample", [2, DOCUMENTS_LEFT_OUT], ids=["a part of train", "all of train"])
def test_without_validation_left_out_scores_of_train_stand_in(
    clinic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: int
) -> None:
    """Labels count a left-out document less when scores are calibrated, as when weights are
    learned.
    """
    left_out: list[bool] = []

    def record(*given: Any, **how: Any) -> Any:
        left_out.append(how["left_out"])
        return calibrate(*given, **how)

    monkeypatch.setattr("plant_cli.training.scorers_alone.calibrate", record)
    monkeypatch.setattr("plant_cli.scoring.scorer_fitting.DOCUMENTS_LEFT_OUT", sample)
    path = tmp_path / "small.parquet"
    rows = [
        ("train", "fever and cough", ["a"]),
        ("train", "broken leg", ["b"]),
        ("train", "fever", ["a"]),
        ("test", "leg", ["b"]),
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    done = clinic("finetune", f"data.path={path}", "data.dataset=files", ALONE)
    assert left_out == [True]
    notes = done.tables[0].notes
    assert any("no validation split" in note for note in notes)
    assert not any("tuned on validation" in note for note in notes)
    assert (
        json.loads((clinic.path / "finetune" / "thresholds.json").read_text())["split"] == "train"
    )
    source = [f"data.path={path}", "data.dataset=files"]
    clinic("predict", *source)
    judged = clinic("eval", *source)
    suggested = clinic("suggest", "suggest.text=fever", *source)
    assert f"{done.summary['threshold']:.3g} tuned on left-out scores of train for micro-F1" in str(
        judged.data
    )
    assert any(
        "chosen on left-out scores of train; scores are" in note
        for note in suggested.tables[0].notes
    )


def test_labels_that_no_scorer_lists_fill_the_lists_of_validation(trained: Clinic) -> None:
    trained.run("finetune", ALONE, "finetune.scorers=[{name: neighbours, neighbours: 1, lead: 0}]")
    labels = pl.read_parquet(trained.path / "corpus" / "labels.parquet").height
    kept = pl.read_parquet(trained.path / "finetune" / "validation.parquet")
    assert kept["labels"].list.n_unique().unique().to_list() == [labels]
    assert kept["scores"].explode().is_finite().all()


def test_one_training_document_teaches_no_weights_and_measures_no_calibration(
    clinic: Any, tmp_path: Path
) -> None:
    path = tmp_path / "one.parquet"
    rows = [("train", "fever and cough", ["a", "b"]), ("test", "leg", ["b"])]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    told = SilentReporter()
    done = clinic("finetune", f"data.path={path}", "data.dataset=files", ALONE, reporter=told)
    assert any("could not be learned, so all count alike" in warning for warning in told.warnings)
    assert any(
        "the error of probabilities is not measured" in note for note in done.tables[0].notes
    )
    assert done.summary["ECE"] is None


def test_a_poisoned_test_split_changes_nothing(clinic: Any, tmp_path: Path) -> None:
    flags = {
        "dataset": "synthetic-clinic",
        "documents": 160,
        "labels": 16,
        "seed": 3,
        "output": str(tmp_path / "one.parquet"),
    }
    run_stage(
        Request(
            registry=installed(),
            run_path=tmp_path / "nowhere",
            flags={"data make": flags},
            reporter=SilentReporter(),
        ),
        "data make",
    )
    frame = pl.read_parquet(tmp_path / "one.parquet")
    is_test = pl.col("split") == "test"
    text = (
        pl.when(is_test)
        .then(pl.lit("wholly other words zebra ") + pl.col("doc_id"))
        .otherwise(pl.col("text"))
    )
    labels = pl.when(is_test).then(pl.lit(["Z99"])).otherwise(pl.col("labels"))
    frame.with_columns(text.alias("text"), labels.alias("labels")).write_parquet(
        tmp_path / "other.parquet"
    )
    folders, titles = [], next(path for path in tmp_path.glob("*labels*") if path.is_file())
    for name in ("one", "other"):
        run = Clinic(clinic, tmp_path / f"run-{name}")
        source = [
            f"data.path={tmp_path / f'{name}.parquet'}",
            "data.dataset=files",
            f"data.titles={titles}",
        ]
        run.run("finetune", ALONE, *source)
        folders.append(run.path / "finetune")
    one, other = (
        {str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in folders
    )
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name] and name != "stage.json"] == []


def test_no_torch_is_imported() -> None:
    code = (
        "import sys, plant_cli.training.scorers_alone, plant_cli.scoring.models; "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("allowed", [False, True])
def test_a_scorer_that_fails_on_validation_is_left_out_where_that_is_allowed(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """Left-out scores of train are there already: `score` is first asked for validation."""

    def fail(scorer: WordScorer, documents: Documents) -> Any:
        raise ValueError("no luck")

    monkeypatch.setattr(WordScorer, "score", fail)
    sets = (
        "finetune.network=false",
        "finetune.scorers=[words, neighbours]",
        f"finetune.allow_missing={str(allowed).lower()}",
    )
    if not allowed:
        with pytest.raises(ComponentError, match="the scorer 'words' fails: ValueError: no luck"):
            trained.run("finetune", *sets)
        return
    trained.run("finetune", *sets)
    stored = json.loads((trained.path / "finetune" / SCORERS_FILE).read_text())
    assert [scorer["name"] for scorer in stored["scorers"]] == ["neighbours"]
    assert "no luck" in json.dumps(stored["figures"]["missing"]["words"])


def test_a_scorer_that_cannot_be_saved_is_named(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WordScorer, "tensors", lambda scorer: {}["nothing"])
    with pytest.raises(ComponentError, match="the scorer 'words' cannot be saved: KeyError"):
        trained.run("finetune", "finetune.network=false", "finetune.scorers=[words]")
