"""Both training stages for real, on a small network and a small made-up clinic: resume, guards, collapse, NaN, out of memory."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from plant_cli.api import ArtefactError, ComponentError, Interrupted, Request, ResourceError, SilentReporter, TrainingError, UsageError
from plant_cli.artefacts.guard import stamp
from plant_cli.artefacts.lexical import LEXICAL
from plant_cli.base.tensors import write_tensors
from plant_cli.inference.lexical import load_lexicon, save_lexicon
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage
from plant_cli.training.prototypes import SHARPNESSES
from tests.artefacts.conftest import record_again

LONGER = (
    "pretrain-attn.epochs=2",
    "finetune.epochs=3",
    "finetune.loss={name: focal-hnm, hard_negatives: 4, random_negatives: 2}",
)


class Clinic:
    """The small clinic of `conftest.py` in a run folder of its own, trained long enough to be interrupted."""

    def __init__(self, clinic: Any, path: Path) -> None:
        self.fixture, self.path = clinic, path

    def run(self, name: str, *sets: str, **request: Any) -> Any:
        self.fixture.path = self.path
        return self.fixture(name, *LONGER, *sets, **request)

    def planted(self) -> Clinic:
        self.run("mig")
        self.run("pretrain-attn")
        return self

    def record(self, name: str) -> dict[str, Any]:
        return json.loads((self.path / name / "stage.json").read_text())


@pytest.fixture
def trained(clinic: Any, tmp_path: Path) -> Clinic:
    return Clinic(clinic, tmp_path / "run")


class Interrupting(SilentReporter):
    """Sends Ctrl-C to this process after a number of progress steps in bars whose name begins as given."""

    def __init__(self, begins: str, after: int) -> None:
        super().__init__()
        self.begins, self.left = begins, after

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Any:
        yield self if description.startswith(self.begins) else _Nothing()

    def advance(self, amount: float = 1, **figures: float) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


class _Nothing:
    def advance(self, amount: float = 1, **figures: float) -> None:
        return None


def weights(trained: Clinic, stage: str) -> dict[str, torch.Tensor]:
    found = load_file(trained.path / stage / "model.safetensors")
    backbone = trained.path / stage / "backbone.safetensors"
    return {**found, **({f"backbone.{n}": t for n, t in load_file(backbone).items()} if backbone.exists() else {})}


@pytest.mark.parametrize(
    ("stage", "begins", "after", "sets"),
    [
        ("finetune", "epoch 2", 2, ()),
        ("finetune", "epoch 1", 1, ()),
        ("pretrain-attn", "epoch 2", 3, ()),
        ("finetune", "epoch 2", 2, ("finetune.sparse_updates=true",)),
        ("pretrain-attn", "epoch 2", 3, ("pretrain-attn.sparse_updates=true", "pretrain-attn.labels_per_document=2")),
    ],
)
def test_interrupted_and_resumed_equals_uninterrupted_bit_for_bit(
    clinic: Any, tmp_path: Path, stage: str, begins: str, after: int, sets: tuple[str, ...]
) -> None:
    whole, broken = Clinic(clinic, tmp_path / "whole"), Clinic(clinic, tmp_path / "broken")
    for one in (whole, broken):
        one.run("mig")
        if stage == "finetune":
            one.run("pretrain-attn")
    whole.run(stage, *sets)
    with pytest.raises(Interrupted) as caught:
        broken.run(stage, *sets, reporter=Interrupting(begins, after))
    assert caught.value.exit_code == 130
    assert broken.record(stage)["status"] == "interrupted"
    broken.run(stage, *sets, resume=True)
    expected, found = weights(whole, stage), weights(broken, stage)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert (whole.path / stage / "history.jsonl").read_text() == (broken.path / stage / "history.jsonl").read_text()


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(clinic: Any, tmp_path: Path) -> None:
    whole, broken = (Clinic(clinic, tmp_path / name) for name in ("whole", "broken"))
    whole.run("finetune", "finetune.init=random")
    with pytest.raises(Interrupted):
        broken.run("finetune", "finetune.init=random", reporter=Interrupting("epoch 2", 2))
    first, last = sorted((broken.path / "finetune" / "checkpoints").glob("step-*"))
    (last / "weights.safetensors").write_bytes((first / "weights.safetensors").read_bytes()[:100])
    broken.run("finetune", "finetune.init=random", resume=True)
    expected, found = weights(whole, "finetune"), weights(broken, "finetune")
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_planting_moves_only_the_attention_and_ranks_relevant_words_higher(trained: Clinic) -> None:
    trained.run("mig")
    trained.run("pretrain-attn", "pretrain-attn.epochs=8", "pretrain-attn.rate_attention=1e-2")
    history = [json.loads(line) for line in (trained.path / "pretrain-attn" / "history.jsonl").read_text().splitlines()]
    name = next(key for key in history[0] if key.startswith("nDCG"))
    assert max(row[name] for row in history) > history[0][f"random {name}"] + 0.03
    trained.run(
        "finetune", "finetune.epochs=1", "finetune.rate_head=1e-12", "finetune.rate_boost=1e-12", "finetune.init=random", tag="fresh"
    )
    planted, fresh = weights(trained, "pretrain-attn"), weights(trained, "finetune-fresh")
    moved = {n for n in planted if not torch.allclose(planted[n], fresh[n], atol=1e-6)}
    assert moved
    assert all(n.startswith(("queries", "norm", "to_query", "to_key")) for n in moved)
    assert not (trained.path / "pretrain-attn" / "backbone.safetensors").exists()


def test_stage_two_learns_and_keeps_a_threshold_from_validation(trained: Clinic) -> None:
    result = trained.planted().run("finetune", "finetune.epochs=6", "finetune.patience=6")
    history = [json.loads(line) for line in (trained.path / "finetune" / "history.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in history[:3]] == [0, 1, 2]
    assert history[-1]["loss"] < history[1]["loss"]
    assert "nDCG@1000" in history[0]
    threshold = json.loads((trained.path / "finetune" / "thresholds.json").read_text())
    assert 0 < threshold["value"] < 1
    assert result.summary["threshold"] == threshold["value"]
    assert any(f"threshold {threshold['value']:.3g} tuned on validation" in note for note in result.tables[0].notes)
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
    assert "threshold per label" in json.dumps(json.loads((trained.path / "eval" / "metrics.json").read_text()))


def test_a_planted_start_competes_with_the_epochs_and_a_plain_start_does_not(trained: Clinic) -> None:
    planted = trained.planted().run("finetune", "finetune.epochs=1").summary
    plain = trained.run("finetune", "finetune.epochs=1", "finetune.prototypes=false", "finetune.lexical=false", tag="plain").summary
    first, only = (
        [json.loads(line) for line in (trained.path / stage / "history.jsonl").read_text().splitlines()]
        for stage in ("finetune", "finetune-plain")
    )
    assert [row["epoch"] for row in first] == [0, 1]
    assert [row["epoch"] for row in only] == [1]
    assert first[0]["sharpness"] == planted["sharpness"]
    assert planted["MAP"] == max(row["MAP"] for row in first)
    assert planted["sharpness"] in SHARPNESSES
    assert plain["word_weight"] == 0
    assert not (trained.path / "finetune-plain" / LEXICAL).exists()


def test_a_run_interrupted_while_prototypes_are_made_starts_again_and_ends_the_same(clinic: Any, tmp_path: Path) -> None:
    whole, broken = Clinic(clinic, tmp_path / "whole").planted(), Clinic(clinic, tmp_path / "broken").planted()
    whole.run("finetune")
    with pytest.raises(Interrupted):
        broken.run("finetune", reporter=Interrupting("prototypes: labels", 2))
    broken.run("finetune", resume=True)
    expected, found = weights(whole, "finetune"), weights(broken, "finetune")
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_prediction_adds_the_votes_of_words_with_the_weight_that_was_kept(trained: Clinic) -> None:
    summary = trained.planted().run("finetune", "finetune.epochs=1").summary
    label_hash = json.loads((trained.path / "finetune" / "thresholds.json").read_text())["label_hash"]
    lexicon = load_lexicon(trained.path / "finetune", label_hash)
    assert lexicon is not None, "the lexical should help on a corpus whose labels have words of their own"
    assert lexicon.weight == summary["word_weight"] > 0
    assert summary["MAP with words"] > summary["MAP"]
    with_votes = trained.run("predict") and pl.read_parquet(trained.path / "predict" / "predictions.parquet")
    save_lexicon(replace(lexicon, weight=0.0), trained.path / "finetune", label_hash)
    record_again(trained.path / "finetune")
    without = trained.run("predict", force=True) and pl.read_parquet(trained.path / "predict" / "predictions.parquet")
    assert (with_votes["scores"].list.sum() != without["scores"].list.sum()).any()


def test_a_shortlist_proposes_and_its_recall_is_told(trained: Clinic) -> None:
    chosen = "{name: words, size: 4, frequent: 2}"
    result = trained.planted().run("finetune", "finetune.epochs=1", f"finetune.shortlist={chosen}")
    recall = result.summary["shortlist recall@4"]
    assert 0.3 < recall <= 1
    assert trained.record("finetune")["summary"]["shortlist recall@4"] == recall
    rows = [json.loads(line) for line in (trained.path / "finetune" / "history.jsonl").read_text().splitlines()]
    assert all(0 <= row["shortlist recall@4"] <= 1 for row in rows)
    assert "shortlist recall@4" in [column.name for column in result.tables[0].columns]
    exact = trained.run("predict", "predict.top_k=3").summary
    assert not [name for name in exact if name.startswith("shortlist")]
    short = trained.run("predict", "predict.top_k=3", f"predict.shortlist={chosen}", force=True)
    assert 0.3 < short.summary["shortlist recall@3"] <= 1
    assert "shortlist" in short.tables[0].notes[0]
    found = pl.read_parquet(trained.path / "predict" / "predictions.parquet")
    assert found["labels"].list.len().unique().to_list() == [3]


def test_a_shortlist_is_refused_where_every_label_counts(trained: Clinic) -> None:
    with pytest.raises(UsageError, match="of no use"):
        trained.planted().run("finetune", "finetune.loss={name: bce}", "finetune.shortlist=words")


def test_the_anchor_adds_the_ranking_loss(trained: Clinic) -> None:
    trained.planted()
    trained.run("finetune", "finetune.epochs=1")
    trained.run("finetune", "finetune.epochs=1", "finetune.anchor=1.0", tag="anchored")
    plain, anchored = (
        json.loads((trained.path / stage / "history.jsonl").read_text().splitlines()[1])["loss"]
        for stage in ("finetune", "finetune-anchored")
    )
    assert anchored > plain


def test_the_test_split_changes_nothing_that_is_trained(clinic: Any, tmp_path: Path) -> None:
    clinics = []
    for name in ("one", "other"):
        run_stage(
            Request(
                registry=installed(),
                run_path=tmp_path / "nowhere",
                flags={
                    "data make": {
                        "dataset": "synthetic-clinic",
                        "documents": 160,
                        "labels": 16,
                        "seed": 3,
                        "output": str(tmp_path / f"{name}.parquet"),
                    }
                },
                reporter=SilentReporter(),
            ),
            "data make",
        )
    path = tmp_path / "other.parquet"
    frame = pl.read_parquet(path)
    is_test = pl.col("split") == "test"
    text = pl.when(is_test).then(pl.lit("wholly other words zebra ") + pl.col("doc_id")).otherwise(pl.col("text"))
    labels = pl.when(is_test).then(pl.lit(["Z99"])).otherwise(pl.col("labels"))
    frame.with_columns(text.alias("text"), labels.alias("labels")).write_parquet(path)
    for name in ("one", "other"):
        run = Clinic(clinic, tmp_path / f"run-{name}")
        source = [f"data.path={tmp_path / f'{name}.parquet'}", "data.dataset=files"]
        for stage in ("mig", "pretrain-attn", "finetune"):
            run.run(stage, *source)
        clinics.append(run)
    one, other = clinics
    assert all(torch.equal(t, weights(other, "finetune")[n]) for n, t in weights(one, "finetune").items())
    assert (one.path / "finetune" / "thresholds.json").read_text() == (other.path / "finetune" / "thresholds.json").read_text()
    assert pl.read_parquet(one.path / "mig" / "mig.parquet").equals(pl.read_parquet(other.path / "mig" / "mig.parquet"))


def test_a_loss_that_is_no_number_stops_training_and_keeps_the_checkpoint(trained: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.planted()
    from plant_cli.training import finetuning

    right = finetuning.FineTuning.__call__

    def wrong(self: Any, rows: Any, *, epoch: int, seed: int) -> Any:
        loss, weight = right(self, rows, epoch=epoch, seed=seed)
        return (loss * float("nan") if epoch == 1 else loss), weight

    monkeypatch.setattr(finetuning.FineTuning, "__call__", wrong)
    with pytest.raises(TrainingError, match="not a number in epoch 2") as caught:
        trained.run("finetune")
    assert caught.value.exit_code == 7
    assert list((trained.path / "finetune" / "checkpoints").glob("step-*/DONE"))
    monkeypatch.setattr(finetuning.FineTuning, "__call__", right)
    trained.run("finetune", resume=True)
    assert trained.record("finetune")["status"] == "done"


def test_a_model_that_assigns_everything_is_stopped(trained: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.planted()
    from plant_decoders.label_attention import LabelAttention

    right = LabelAttention.forward
    monkeypatch.setattr(LabelAttention, "forward", lambda self, *given: right(self, *given) + 20.0)
    with pytest.raises(TrainingError, match="collapsed") as caught:
        trained.run("finetune")
    assert "recall" in caught.value.what
    assert caught.value.exit_code == 7


def test_memory_that_runs_out_is_told_with_the_knobs(trained: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.planted()
    from plant_decoders.label_attention import LabelAttention

    def refuse(self: Any, *given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(LabelAttention, "forward", refuse)
    with pytest.raises(ResourceError) as caught:
        trained.run("finetune")
    assert caught.value.exit_code == 6
    assert "micro" in caught.value.todo or "batch" in caught.value.todo


def test_a_loss_of_the_other_stage_is_refused(trained: Clinic) -> None:
    trained.run("mig")
    with pytest.raises(ComponentError, match="stage 2, not for stage 1"):
        trained.run("pretrain-attn", "pretrain-attn.loss=bce")


def test_attention_planted_in_another_network_is_refused(trained: Clinic) -> None:
    trained.planted()
    with pytest.raises(ArtefactError, match="another network") as caught:
        trained.run("finetune", "model.decoder.heads=4")
    assert "decoder" in caught.value.where


def test_a_model_of_another_label_order_is_refused(trained: Clinic) -> None:
    trained.planted()
    path = trained.path / "pretrain-attn" / "model.safetensors"
    write_tensors(path, load_file(path), stamp(labels="0" * 64, tokenizer="1" * 64))
    record_again(path.parent)
    with pytest.raises(ArtefactError) as caught:
        trained.run("finetune")
    assert str(trained.path) in caught.value.where


def test_a_missing_stage_says_which_command_makes_it(trained: Clinic) -> None:
    with pytest.raises(ArtefactError) as caught:
        trained.run("pretrain-attn")
    assert "plant mig" in caught.value.todo


def test_a_missing_device_is_told(trained: Clinic) -> None:
    trained.run("mig")
    with pytest.raises(ResourceError, match="cuda:7"):
        trained.run("pretrain-attn", "machine.device=cuda:7")
