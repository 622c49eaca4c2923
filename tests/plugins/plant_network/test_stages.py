"""Both stages for real, on a small network and a small made-up clinic."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
import torch
from builders import record_again
from clinic import Clinic, Interrupting, weights
from plant_network import stage1, stage2
from plant_network.assembly import Network
from plant_network.prototypes import SHARPNESSES

from plant_cli.api import ComponentError, Interrupted, SilentReporter, TrainingError, UsageError
from plant_cli.runs.folder import VALIDATION_FILE
from plant_cli.scoring.models import has_network
from plant_cli.scoring.scorer_files import SCORERS_FILE
from plant_cli.training.judging import Gain, Judge


def test_stage_two_learns_and_keeps_a_threshold_from_validation(trained: Clinic) -> None:
    result = trained.planted().run("finetune", "finetune.epochs=6", "finetune.patience=6")
    history = [
        json.loads(line)
        for line in (trained.path / "finetune" / "history.jsonl").read_text().splitlines()
    ]
    assert [row["epoch"] for row in history[:3]] == [0, 1, 2]
    assert history[-1]["loss"] < history[1]["loss"]
    assert "nDCG@1000" in history[0]
    threshold = json.loads((trained.path / "finetune" / "thresholds.json").read_text())
    assert 0 < threshold["value"] < 1
    assert result.summary["threshold"] == threshold["value"]
    assert any(
        f"threshold {threshold['value']:.3g} tuned on validation" in note
        for note in result.tables[0].notes
    )
    trained.run("predict")
    predictions = pl.read_parquet(trained.path / "predict" / "predictions.parquet")
    assert predictions["scores"].list.len().to_list() == [12] * len(predictions)
    assert all(row == sorted(row, reverse=True) for row in predictions["scores"].to_list())


def test_thresholds_per_label_are_tuned_kept_and_used(trained: Clinic) -> None:
    trained.planted().run("finetune", "finetune.epochs=1", "finetune.tune=per-label")
    found = json.loads((trained.path / "finetune" / "thresholds.json").read_text())["value"]
    assert len(found) == pl.read_parquet(trained.path / "corpus" / "labels.parquet").height
    assert len(set(found)) > 1
    trained.run("eval")
    assert "threshold per label" in json.dumps(
        json.loads((trained.path / "eval" / "metrics.json").read_text())
    )


def test_a_planted_start_competes_with_the_epochs_and_a_plain_start_does_not(
    trained: Clinic,
) -> None:
    planted = trained.planted().run("finetune", "finetune.epochs=1").summary
    plain = trained.run(
        "finetune",
        "finetune.epochs=1",
        "finetune.head=random",
        "finetune.scorers=none",
        tag="plain",
    ).summary
    first, only = (
        [
            json.loads(line)
            for line in (trained.path / stage / "history.jsonl").read_text().splitlines()
        ]
        for stage in ("finetune", "finetune-plain")
    )
    assert [row["epoch"] for row in first] == [0, 1]
    assert [row["epoch"] for row in only] == [1]
    assert first[0]["sharpness"] == planted["sharpness"]
    assert planted["MAP"] == max(row["MAP"] for row in first)
    assert planted["sharpness"] in SHARPNESSES
    assert plain["scorers"] == []
    assert not (trained.path / "finetune-plain" / "scorers").exists()
    assert json.loads((trained.path / "finetune-plain" / SCORERS_FILE).read_text())["scorers"] == []


def test_small_gains_do_not_keep_training_going(trained: Clinic) -> None:
    trained.planted()
    assert (
        trained.run("finetune", "finetune.epochs=6", "finetune.least_gain=1").summary["epochs"] == 2
    )
    plain = ["finetune.head=random", "finetune.scorers=none"]
    assert trained.run("finetune", "finetune.epochs=4", *plain, tag="plain").summary["epochs"] == 4


def test_the_scorers_together_are_judged_as_a_run_without_a_network_judges_them(
    trained: Clinic,
) -> None:
    beside = trained.planted().run("finetune", "finetune.epochs=1").tables[1].rows[-2]
    alone = trained.run("finetune", "finetune.network=false", tag="alone").tables[0].rows[-1]
    assert beside[1:] == alone[1:]


def test_prediction_adds_the_scorers_with_the_weights_that_were_kept(trained: Clinic) -> None:
    reporter = SilentReporter()
    result = trained.planted().run("finetune", "finetune.epochs=1", reporter=reporter)
    summary, parts = result.summary, result.tables[1]
    assert summary["scorers"] == ["words", "titles", "neighbours", "linear"]
    assert summary["MAP"] > summary["MAP of the network"]
    assert [row[0] for row in parts.rows] == [
        "network",
        *summary["scorers"],
        "scorers together",
        "all together",
    ]
    assert parts.rows[-1][1] == summary["MAP"]
    gain = summary["gain_of_network"]
    assert any(
        note.startswith(
            "before training, the network changes what the scorers reach on validation by MAP"
        )
        for note in reporter.notes
    )
    assert gain["difference"] == pytest.approx(parts.rows[-1][1] - parts.rows[-2][1])
    assert gain["low"] < gain["difference"] < gain["high"]
    folder = trained.path / "finetune"
    with_scorers = trained.run("predict") and pl.read_parquet(
        trained.path / "predict" / "predictions.parquet"
    )
    assert sorted(path.stem for path in (trained.path / "predict" / "parts").iterdir()) == sorted(
        ["network", *summary["scorers"]]
    )
    content = json.loads((folder / SCORERS_FILE).read_text())
    content["calibration"]["weights"][1] = [0.0] * len(content["calibration"]["knots"])
    (folder / SCORERS_FILE).write_text(json.dumps(content))
    record_again(folder)
    without = trained.run("predict", force=True) and pl.read_parquet(
        trained.path / "predict" / "predictions.parquet"
    )
    assert (with_scorers["scores"].list.sum() != without["scores"].list.sum()).any()


def test_a_shortlist_proposes_and_its_recall_is_told(trained: Clinic) -> None:
    chosen = "{name: words, size: 4, frequent: 2}"
    result = trained.planted().run("finetune", "finetune.epochs=1", f"finetune.shortlist={chosen}")
    recall = result.summary["shortlist recall@4"]
    assert 0.3 < recall <= 1
    assert trained.record("finetune")["summary"]["shortlist recall@4"] == recall
    rows = [
        json.loads(line)
        for line in (trained.path / "finetune" / "history.jsonl").read_text().splitlines()
    ]
    assert all(0 <= row["shortlist recall@4"] <= 1 for row in rows)
    assert "shortlist recall@4" in [column.name for column in result.tables[0].columns]
    exact = trained.run("predict", "predict.top_k=3").summary
    assert not [name for name in exact if name.startswith("shortlist")]
    short = trained.run("predict", "predict.top_k=3", f"predict.shortlist={chosen}", force=True)
    assert 0.3 < short.summary["shortlist recall@3"] <= 1
    assert "shortlist" in short.tables[0].notes[0]
    found = pl.read_parquet(trained.path / "predict" / "predictions.parquet")
    assert found["labels"].list.len().unique().to_list() == [3]


def test_the_anchor_adds_the_ranking_loss(trained: Clinic) -> None:
    trained.planted()
    trained.run("finetune", "finetune.epochs=1")
    trained.run("finetune", "finetune.epochs=1", "finetune.anchor=1.0", tag="anchored")
    plain, anchored = (
        json.loads((trained.path / stage / "history.jsonl").read_text().splitlines()[1])["loss"]
        for stage in ("finetune", "finetune-anchored")
    )
    assert anchored > plain


def test_a_model_that_assigns_everything_is_stopped(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained.planted()
    from plant_decoders.label_attention import LabelAttention

    right, calls = LabelAttention.forward, []

    def forward(self: LabelAttention, *given: Any) -> Any:
        """At first as it should be: what begins like that has not collapsed."""
        calls.append(given)
        return right(self, *given) + (0.0 if len(calls) == 1 else 20.0)

    monkeypatch.setattr(LabelAttention, "forward", forward)
    with pytest.raises(TrainingError, match="collapsed") as caught:
        trained.run("finetune")
    assert "recall" in caught.value.what
    assert caught.value.exit_code == 7


def test_a_resumed_training_remembers_that_few_labels_were_assigned(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder without a prior bias assigns half of all labels at first: what it assigned
    later tells a collapse, also after a pause.
    """
    from plant_decoders.label_attention import LabelAttention

    monkeypatch.setattr(stage2, "starts_sparse", lambda *given: False)
    options = (
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.epochs=3",
    )
    with pytest.raises(Interrupted):
        trained.run("finetune", *options, reporter=Interrupting("epoch 2", 1))
    right = LabelAttention.forward
    monkeypatch.setattr(LabelAttention, "forward", lambda *given: right(*given) + 20.0)
    with pytest.raises(TrainingError, match="collapsed"):
        trained.run("finetune", *options, resume=True)


def test_a_sharpness_is_refused_where_the_decoder_plants_no_tables(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained.planted()
    monkeypatch.setattr(stage2, "PlantableDecoder", str)  # which no decoder is
    with pytest.raises(UsageError, match="has no classifiers that train could start"):
        trained.run("finetune", "finetune.sharpness=0.5")


@pytest.mark.parametrize("low", [-0.01, 0.01])
def test_a_network_that_adds_nothing_is_left_out_where_that_is_asked_for(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch, low: float
) -> None:
    monkeypatch.setattr(
        Judge, "gain", lambda judge, top, other: Gain(difference=0.02, low=low, high=0.03)
    )
    result = trained.planted().run("finetune", "finetune.only_if_better=true")
    left_out = low <= 0
    assert result.summary["network_left_out"] == left_out
    assert has_network(trained.path / "finetune") != left_out
    assert (
        any("the model has the scorers alone" in note for note in result.tables[0].notes)
        == left_out
    )
    trained.run("predict")
    if not left_out:
        return
    trained.run("finetune", "finetune.network=false", tag="alone")
    trained.run("predict", tag="alone")
    with_network, alone = (
        pl.read_parquet(trained.path / name / "predictions.parquet")
        for name in ("predict", "predict-alone")
    )
    assert with_network.equals(alone)
    thresholds = [
        json.loads((trained.path / name / "thresholds.json").read_text())
        for name in ("finetune", "finetune-alone")
    ]
    assert thresholds[0] == thresholds[1]


def test_only_if_better_says_that_it_needs_scorers(trained: Clinic) -> None:
    reporter = SilentReporter()
    trained.run(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.only_if_better=true",
        "finetune.epochs=1",
        reporter=reporter,
    )
    assert any(
        "--only-if-better changes nothing: there are no scorers" in warning
        for warning in reporter.warnings
    )


NARROW = "finetune.shortlist={name: words, size: 4, frequent: 2}"


def history(trained: Clinic, stage: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (trained.path / stage / "history.jsonl").read_text().splitlines()
    ]


def has_recall(trained: Clinic, stage: str) -> bool:
    return any(name.startswith("shortlist") for name in history(trained, stage)[-1])


def test_by_default_it_is_used_where_labels_are_many(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained.planted().run("finetune", "finetune.epochs=1")
    assert not has_recall(trained, "finetune")
    monkeypatch.setattr(stage2, "SHORTLIST_FROM", 12)
    trained.run("finetune", "finetune.epochs=1", tag="many")
    assert has_recall(trained, "finetune-many")
    trained.run(
        "finetune", "finetune.epochs=1", "finetune.scorers=none", tag="alone"
    )  # labels that are not proposed would learn little
    assert not has_recall(trained, "finetune-alone")
    trained.run("finetune", "finetune.epochs=1", "finetune.shortlist=none", tag="none")
    assert not has_recall(trained, "finetune-none")
    trained.run(
        "finetune", "finetune.epochs=1", "finetune.loss=bce", tag="every"
    )  # which looks at all labels
    assert not has_recall(trained, "finetune-every")


def test_epochs_are_judged_by_candidates_and_the_model_by_all_labels(trained: Clinic) -> None:
    """Two labels of each document are scored after an epoch; figures, threshold and kept
    predictions of the model are of all twelve.
    """
    narrow = "finetune.shortlist={name: words, size: 1, frequent: 1}"
    result = trained.planted().run(
        "finetune", "finetune.epochs=1", "finetune.scorers=none", "machine.seed=2", narrow
    )
    judged = [row["MAP"] for row in history(trained, "finetune")]
    assert all(abs(result.summary["MAP"] - value) > 1e-3 for value in judged)
    assert result.summary["shortlist recall@4"] <= 0.5
    kept = pl.read_parquet(trained.path / "finetune" / VALIDATION_FILE)
    assert kept["scores"].list.min().min() > 0
    assert kept["labels"].list.len().unique().to_list() == [12]


def test_it_is_refused_where_every_label_counts(trained: Clinic) -> None:
    with pytest.raises(UsageError, match="of no use"):
        trained.planted().run("finetune", "finetune.loss={name: bce}", NARROW)
    trained.run(
        "finetune", "finetune.loss={name: bce}", "finetune.epochs=1", "finetune.shortlist=none"
    )


@pytest.mark.parametrize("start", ["random", "regression"])
def test_planting_moves_only_the_attention_and_ranks_relevant_words_higher(
    trained: Clinic, start: str
) -> None:
    trained.run("mig")
    trained.run(
        "pretrain-attn",
        "pretrain-attn.epochs=8",
        "pretrain-attn.rate_attention=1e-2",
        f"pretrain-attn.start={start}",
    )
    history = [
        json.loads(line)
        for line in (trained.path / "pretrain-attn" / "history.jsonl").read_text().splitlines()
    ]
    name = next(key for key in history[0] if key.startswith("nDCG"))
    assert max(row[name] for row in history) > history[0][f"random {name}"] + 0.03
    trained.run(
        "finetune",
        "finetune.epochs=1",
        "finetune.rate_head=1e-12",
        "finetune.rate_boost=1e-12",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        tag="fresh",
    )
    planted, fresh = weights(trained, "pretrain-attn"), weights(trained, "finetune-fresh")
    moved = {n for n in planted if not torch.allclose(planted[n], fresh[n], atol=1e-6)}
    assert moved
    assert all(n.startswith(("queries", "norm", "to_query", "to_key")) for n in moved)
    assert not (trained.path / "pretrain-attn" / "backbone.safetensors").exists()


def test_a_loss_of_the_other_stage_is_refused(trained: Clinic) -> None:
    trained.run("mig")
    with pytest.raises(ComponentError, match="stage 2, not for stage 1"):
        trained.run("pretrain-attn", "pretrain-attn.loss=bce")


def test_a_regression_alone_ranks_relevant_words_higher_and_competes_as_the_start(
    trained: Clinic,
) -> None:
    trained.run("mig")
    result = trained.run(
        "pretrain-attn", "pretrain-attn.epochs=1", "pretrain-attn.rate_attention=1e-12"
    )
    start, epoch = (
        json.loads(line)
        for line in (trained.path / "pretrain-attn" / "history.jsonl").read_text().splitlines()
    )
    assert (start["epoch"], start["loss"]) == (0, None)
    name = next(key for key in start if key.startswith("nDCG"))
    assert start[name] > start[f"random {name}"] + 0.03
    assert start[name] == pytest.approx(epoch[name], abs=1e-6)
    assert result.tables[0].rows[0][:2] == ["start", None]


def test_queries_that_are_drawn_have_no_start_to_compete_with(trained: Clinic) -> None:
    trained.run("mig")
    result = trained.run("pretrain-attn", "pretrain-attn.start=random")
    assert [row[0] for row in result.tables[0].rows] == ["1", "2"]


def test_without_an_epoch_queries_stay_as_they_are_drawn(trained: Clinic) -> None:
    trained.run("mig")
    result = trained.run("pretrain-attn", "pretrain-attn.start=random", "pretrain-attn.epochs=0")
    assert [row[0] for row in result.tables[0].rows] == ["start"]


def test_a_decoder_without_queries_starts_as_it_is_drawn_unless_a_regression_is_asked_for(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage1, "QueryDecoder", str)  # which no decoder is
    trained.run("mig")
    assert [row[0] for row in trained.run("pretrain-attn").tables[0].rows] == ["1", "2"]
    with pytest.raises(ComponentError, match="cannot start from a regression") as caught:
        trained.run("pretrain-attn", "pretrain-attn.start=regression", tag="other")
    assert "--start random" in caught.value.todo


@pytest.mark.parametrize("frozen", [True, False])
def test_a_backbone_that_has_nothing_to_train_is_told(
    trained: Clinic, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    trained.run("mig")
    if frozen:
        monkeypatch.setattr(Network, "backbone_is_frozen", True)
    reporter = SilentReporter()
    trained.run("pretrain-attn", "pretrain-attn.freeze_backbone=false", reporter=reporter)
    assert (
        sum("has nothing that can be trained" in warning for warning in reporter.warnings) == frozen
    )
