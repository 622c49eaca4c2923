"""Stage 1 for real, on a small network and a small made-up clinic."""

from __future__ import annotations

import json

import pytest
import torch
from clinic import Clinic, weights

from plant_cli.api import ComponentError, SilentReporter
from plant_cli.network.assembly import Network
from plant_cli.training import stage1


@pytest.mark.parametrize("start", ["random", "regression"])
def test_planting_moves_only_the_attention_and_ranks_relevant_words_higher(trained: Clinic, start: str) -> None:
    trained.run("mig")
    trained.run("pretrain-attn", "pretrain-attn.epochs=8", "pretrain-attn.rate_attention=1e-2", f"pretrain-attn.start={start}")
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


def test_a_loss_of_the_other_stage_is_refused(trained: Clinic) -> None:
    trained.run("mig")
    with pytest.raises(ComponentError, match="stage 2, not for stage 1"):
        trained.run("pretrain-attn", "pretrain-attn.loss=bce")


def test_a_regression_alone_ranks_relevant_words_higher_and_competes_as_the_start(trained: Clinic) -> None:
    trained.run("mig")
    result = trained.run("pretrain-attn", "pretrain-attn.epochs=1", "pretrain-attn.rate_attention=1e-12")
    start, epoch = (json.loads(line) for line in (trained.path / "pretrain-attn" / "history.jsonl").read_text().splitlines())
    assert (start["epoch"], start["loss"]) == (0, None)
    name = next(key for key in start if key.startswith("nDCG"))
    assert start[name] > start[f"random {name}"] + 0.03
    assert start[name] == pytest.approx(epoch[name], abs=1e-6)
    assert result.tables[0].rows[0][:2] == ["start", None]


def test_queries_that_are_drawn_have_no_start_to_compete_with(trained: Clinic) -> None:
    trained.run("mig")
    result = trained.run("pretrain-attn", "pretrain-attn.start=random")
    assert [row[0] for row in result.tables[0].rows] == ["1", "2"]


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
def test_a_backbone_that_has_nothing_to_train_is_told(trained: Clinic, monkeypatch: pytest.MonkeyPatch, frozen: bool) -> None:
    trained.run("mig")
    if frozen:
        monkeypatch.setattr(Network, "backbone_is_frozen", True)
    reporter = SilentReporter()
    trained.run("pretrain-attn", "pretrain-attn.freeze_backbone=false", reporter=reporter)
    assert sum("has nothing that can be trained" in warning for warning in reporter.warnings) == frozen
