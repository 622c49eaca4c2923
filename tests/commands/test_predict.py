"""Predictions of a trained network, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from plant_formats.synthetic_clinic import generate
from plant_network.reading import LiveReader
from sklearn.metrics import roc_auc_score
from transformers import BertConfig

from plant_cli.api import ArtefactError, DataError, ResourceError, SilentReporter, UsageError
from plant_cli.data.files import read_json


@pytest.fixture
def trained(prepared: Any) -> Any:
    return prepared("random")


def read(clinic: Any, name: str = "predict") -> pl.DataFrame:
    return pl.read_parquet(clinic.path / name / "predictions.parquet")


def test_every_document_gets_its_best_labels_by_name_best_first(trained: Any) -> None:
    result = trained("predict", "predict.top_k=5")
    found, path = read(trained), trained.path / "predict" / "predictions.parquet"
    labels = set(pl.read_parquet(trained.path / "corpus" / "labels.parquet")["label"])
    assert found.columns == ["doc_id", "labels", "scores", "label_indices"]
    assert (
        found["labels"].list.len().unique().to_list()
        == found["scores"].list.len().unique().to_list()
        == [5]
    )
    assert set(found["labels"].explode()) <= labels
    assert all(len(set(row)) == 5 for row in found["labels"])
    scores = np.array(found["scores"].to_list())
    assert ((scores > 0) & (scores < 1)).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    metadata = pl.read_parquet_metadata(path)
    assert (metadata["split"], metadata["label_hash"]) == (
        "test",
        read_json(trained.path / "run.json", "the header")["label_hash"],
    )
    evidence = {"spans": 56, "lost": 0, "in_part": 0, "labels": 44, "labels_lost": 0}
    nothing = {
        "documents_cut": {"test": 0.0},
        "tokens_dropped": {"test": 0.0},
        "evidence_cut": {"test": evidence},
    }
    assert result.summary == {"documents": len(found), "labels_kept": 5, **nothing}
    titles = dict(
        pl.read_parquet(trained.path / "corpus" / "labels.parquet")
        .select("label", "title")
        .iter_rows()
    )
    best = zip(found["labels"][0], found["scores"][0], strict=True)
    assert result.tables[0].rows[0][1] == "; ".join(
        f"{label} {titles[label]} ({score:.3g})" for label, score in best
    )
    trained("predict", "predict.micro_batch=1", "predict.top_k=5", force=True)
    assert read(trained)["labels"].to_list() == found["labels"].to_list()
    assert np.allclose(read(trained)["scores"].to_list(), scores, atol=1e-6)


@pytest.mark.parametrize(
    "systems", [(), ("predict.systems=[finetune, finetune-b]", "predict.average=true")]
)
def test_a_missing_system_is_refused_before_texts_are_read(
    prepared: Any, systems: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic = prepared("counted")
    monkeypatch.setattr(
        "plant_cli.data.store.StoredCorpus.split",
        lambda corpus, name: pytest.fail(f"{name} was read"),
    )
    with pytest.raises(ArtefactError, match="the stage 'finetune' has not run"):
        clinic("predict", *systems, tag="both" if systems else None)


def test_another_split_is_scored_when_it_is_asked_for(trained: Any) -> None:
    trained("predict", "predict.split=validation")
    sizes = read_json(trained.path / "corpus" / "splits.json", "the splits")["splits"]
    assert len(read(trained)) == sizes["validation"]["documents"]


def test_every_score_is_kept_on_request_and_gives_auc(trained: Any) -> None:
    trained("predict", "predict.top_k=5")
    trained("predict", "predict.top_k=5", "predict.auc=true", "predict.auc_disk=1MB", force=True)
    folder = trained.path / "predict"
    scores, found = np.fromfile(folder / "scores.bin", dtype="<f4"), read(trained)
    labels = pl.read_parquet(trained.path / "corpus" / "labels.parquet")["label"].to_list()
    logits = scores.reshape(len(found), len(labels))
    best = [[labels[i] for i in np.argsort(-row, kind="stable")[:5]] for row in logits]
    assert best == found["labels"].to_list()
    assert np.allclose(
        1 / (1 + np.exp(np.sort(-logits, axis=1)[:, :5].astype(float))), found["scores"].to_list()
    )
    metrics = trained("eval", "eval.bootstrap=20", force=True).data
    assert metrics["not_available"] == {}
    assert metrics["labels_averaged"]["macro-AUC"] <= len(labels)
    for name in ("macro-AUC", "micro-AUC"):
        assert (
            0
            < metrics["metrics"][name]["low"]
            < metrics["metrics"][name]["value"]
            < metrics["metrics"][name]["high"]
            <= 1
        )
    gold = [
        set(row)
        for row in generate(documents=120, labels=12, seed=3)
        .splits["test"]
        .collect()["labels"]
        .to_list()
    ]
    flat = np.array([[label in row for label in labels] for row in gold])
    assert metrics["metrics"]["micro-AUC"]["value"] == pytest.approx(
        roc_auc_score(flat.ravel(), logits.ravel()), abs=1e-12
    )


def test_scores_that_do_not_fit_are_refused_before_the_work(trained: Any) -> None:
    with pytest.raises(ResourceError, match=r"the limit is 0\.1 KB") as caught:
        trained("predict", "predict.auc=true", "predict.auc_disk=0.1KB")
    assert "12 labels" in caught.value.what
    assert not (trained.path / "predict" / "predictions.parquet").exists()


def test_damaged_weights_are_refused_and_earlier_predictions_stay(trained: Any) -> None:
    trained("predict")
    before = read(trained)
    (trained.path / "finetune" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ArtefactError, match="is damaged"):
        trained("predict", force=True)
    assert read(trained).equals(before)


def test_what_is_cut_is_told_by_every_stage_that_reads(clinic: Any) -> None:
    limit, sizes = (
        "model.backbone.max_tokens=20",
        ({"train", "validation"}, {"train", "validation"}, {"test"}),
    )
    results, reporter = [], SilentReporter()
    clinic("mig", limit)
    for stage in ("pretrain-attn", "finetune", "predict"):
        results.append(clinic(stage, limit, reporter=reporter))
    for result, splits in zip(results, sizes, strict=True):
        assert (
            result.summary["documents_cut"].keys()
            == result.summary["tokens_dropped"].keys()
            == splits
        )
        assert all(
            0 < share <= 1
            for name in ("documents_cut", "tokens_dropped")
            for share in result.summary[name].values()
        )
        counts = result.summary["evidence_cut"]
        assert counts.keys() == splits
        assert all(
            0 < found["lost"] < found["spans"] and found["labels_lost"] <= found["labels"]
            for found in counts.values()
        )
    assert [warning.split(":")[0] for warning in reporter.warnings] == [
        "train",
        "validation",
        "train",
        "validation",
        "test",
    ]
    clinic(
        "suggest", flags={"suggest": {"text": "word " * 30}}, reporter=(alone := SilentReporter())
    )
    assert any(
        warning.startswith("1 of 1 texts are longer than the network reads")
        for warning in alone.warnings
    )
    evaluated = clinic("eval", limit, "eval.bootstrap=0")
    assert evaluated.data["tokens_dropped"] == results[-1].summary["tokens_dropped"]["test"]
    assert evaluated.data["documents_cut"] == results[-1].summary["documents_cut"]["test"]
    counts = evaluated.data["evidence_cut"]
    assert counts == results[-1].summary["evidence_cut"]["test"]
    note = next(
        note for note in evaluated.tables[0].notes if "longer than the model's limit" in note
    )
    assert f"{counts['lost']} of {counts['spans']} gold evidence spans lie beyond" in note
    assert all("gold evidence spans" in warning for warning in reporter.warnings)


@pytest.fixture
def pair(prepared: Any) -> Any:
    return prepared("pair")


def average(
    clinic: Any,
    *sets: str,
    systems: tuple[str, ...] = ("finetune", "finetune-other"),
    tag: str | None = "both",
) -> Any:
    return clinic(
        "predict", f"predict.systems={list(systems)}", "predict.average=true", *sets, tag=tag
    )


def all_scores(clinic: Any, name: str) -> Any:
    count = pl.read_parquet(clinic.path / name / "predictions.parquet").height
    return (
        np.fromfile(clinic.path / name / "scores.bin", dtype="<f4").reshape(count, -1).astype(float)
    )


@pytest.mark.parametrize("mean", ["probabilities", "logits"])
def test_an_average_is_that_of_every_score_of_its_members(pair: Any, mean: str) -> None:
    for tag in (None, "other"):
        pair("predict", "predict.auc=true", "predict.top_k=3", tag=tag)
    result = average(pair, f"predict.mean={mean}", "predict.auc=true", "predict.top_k=4")
    one, other = (all_scores(pair, name) for name in ("predict", "predict-other"))
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    expected = (
        (sigmoid(one) + sigmoid(other)) / 2
        if mean == "probabilities"
        else sigmoid((one + other) / 2)
    )
    np.testing.assert_allclose(
        sigmoid(all_scores(pair, "predict-both")), expected, rtol=1e-4, atol=1e-6
    )
    found = read(pair, "predict-both")
    np.testing.assert_allclose(
        found["scores"].to_list(), -np.sort(-expected, axis=1)[:, :4], rtol=1e-4, atol=1e-6
    )
    assert set(result.summary["average"]) == {"finetune", "finetune-other"}
    assert f"mean {mean} of finetune, finetune-other" in result.tables[0].notes[-1]


def test_an_average_is_a_system_with_a_threshold_of_validation(pair: Any) -> None:
    average(pair)
    decided = pair(
        "thresholds", "thresholds.system=both", "thresholds.target=[f1]", "thresholds.bootstrap=0"
    )  # an ensemble has decisions, too
    assert decided.data["splits"]["validation"]["assign"]["labels"]["value"] > 0
    assert sorted(path.name for path in (pair.path / "predict-both").iterdir()) == [
        "predictions.parquet",
        "stage.json",
        "thresholds.json",
        "validation.parquet",
    ]
    threshold = read_json(pair.path / "predict-both" / "thresholds.json", "it")["value"]
    assert 0 < threshold < 1
    judged = pair("eval", tag="both")
    assert f"threshold {threshold:.3g} tuned on validation" in str(judged.data)
    tested = pair(
        "significance",
        "significance.systems=[both, finetune]",
        "significance.bootstrap=20",
        "significance.permutations=10",
    )
    assert tested.summary


def test_a_run_elsewhere_may_be_a_member(pair: Any, tmp_path: Path) -> None:
    elsewhere = pair.path.rename(tmp_path / "elsewhere")
    pair("mig")
    pair(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "machine.seed=9",
    )
    average(pair, systems=("finetune", str(elsewhere), str(elsewhere / "finetune-other")))
    assert (
        len(read_json(pair.path / "predict-both" / "stage.json", "it")["summary"]["average"]) == 3
    )
    with pytest.raises(UsageError, match="are one system"):
        average(pair, systems=(str(elsewhere), str(elsewhere / "finetune")), tag="twice")
    with pytest.raises(ResourceError, match="every score"):
        average(pair, "predict.auc_disk=1KB", systems=("finetune", str(elsewhere)), tag="z")


def test_other_corpora_are_refused(pair: Any, tmp_path: Path) -> None:
    elsewhere = pair.path.rename(tmp_path / "elsewhere")
    for change, what in (
        ("documents: 121, labels: 12", "corpus"),
        ("documents: 120, labels: 11", "label set"),
    ):
        sets = ("data.dataset={name: synthetic-clinic, seed: 3, " + change + "}",)
        pair("mig", *sets, force=True) if what == "corpus" else None
        if what == "label set":
            pair.path = tmp_path / "labels"
            pair("mig", *sets)
        pair(
            "finetune",
            "finetune.init=random",
            "finetune.head=random",
            "finetune.scorers=none",
            *sets,
        )
        with pytest.raises(DataError, match=f"trained on another {what}"):
            average(pair, *sets, systems=("finetune", str(elsewhere)))


def test_an_average_needs_a_validation_split(clinic: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    rows = [
        ("train", "fever and cough", ["a"]),
        ("train", "broken leg", ["b"]),
        ("train", "fever", ["a"]),
        ("test", "leg", ["b"]),
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    source = (
        f"data.path={path}",
        "data.dataset=files",
        "finetune.network=false",
        "finetune.scorers=[words]",
    )
    for tag in (None, "other"):
        clinic("finetune", *source, tag=tag)
    with pytest.raises(
        DataError, match="no validation split, on which the threshold of an average is tuned"
    ):
        average(clinic, *source)


def test_systems_with_one_frozen_backbone_read_the_documents_once(
    clinic: Any, small_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = (
        f"model.backbone={{name: hf-encoder, model: {small_model(BertConfig)}, max_tokens: "
        f"16, adapter: none}}"
    )
    clinic("mig")
    for tag, rate in ((None, 0.001), ("other", 0.01)):
        clinic(
            "finetune",
            backbone,
            "finetune.init=random",
            "finetune.head=random",
            "finetune.scorers=none",
            "finetune.epochs=1",
            f"finetune.rate_head={rate}",
            tag=tag,
        )
    clinic("predict", "predict.cache_limit=0")
    live = read(clinic)
    clinic("predict", force=True)
    assert read(clinic).equals(live)
    monkeypatch.setattr(LiveReader, "read", lambda *given: pytest.fail("read again"))
    clinic("predict", tag="other")
    clinic("predict", force=True)
    assert read(clinic).equals(live)
    assert not read(clinic, "predict-other").equals(live)
