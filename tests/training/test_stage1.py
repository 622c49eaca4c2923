"""Stage 1 for real, on a small network and a small made-up clinic."""

from __future__ import annotations

import json

import pytest
import torch
from clinic import Clinic, weights

from plant_cli.api import ComponentError


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


def test_a_loss_of_the_other_stage_is_refused(trained: Clinic) -> None:
    trained.run("mig")
    with pytest.raises(ComponentError, match="stage 2, not for stage 1"):
        trained.run("pretrain-attn", "pretrain-attn.loss=bce")
