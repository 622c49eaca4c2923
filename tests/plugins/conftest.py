"""For tests of model families: the one thing that every family must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import Backbone, BackboneSpec, MachineSection

TEXTS = ["patient fever a b", "cough c"]


def load(spec: BackboneSpec, folder: Path | None, **options: Any) -> Any:
    """A family's backbone on a local model (None: on the model that it reads when none is
    named).
    """
    model = {} if folder is None else {"model": str(folder)}
    return spec.load(
        spec.options(lora_dropout=0.0, **model, **options), MachineSection(device="cpu")
    )


def train(backbone: Any, steps: int) -> Iterator[float]:
    """The loss at each step of pulling all hidden states towards one vector."""
    import torch

    batch = backbone.tokenize(TEXTS)
    trained = [p for p in backbone.module().parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    backbone.module().train()
    for _ in range(steps + 1):
        hidden, mask = backbone.encode(batch)
        loss = ((hidden - torch.linspace(-1.0, 1.0, hidden.shape[-1]))[mask] ** 2).mean()
        yield float(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.fixture
def learns(tmp_path: Path) -> Callable[..., set[str]]:
    """Two training steps, saving and restoring: `learns(spec, folder, quantization="nf4")`;
    returns the names of the adapted maps.
    """

    def check(spec: BackboneSpec, folder: Path | None, **options: Any) -> set[str]:
        import torch
        from safetensors.torch import load_file

        backbone = load(spec, folder, **options)
        assert isinstance(backbone, Backbone)
        losses = list(train(backbone, steps=2))
        assert losses[-1] < losses[0], losses
        backbone.save(tmp_path / "saved")
        weights = load_file(tmp_path / "saved" / "adapter" / "adapter_model.safetensors")
        assert (tmp_path / "saved" / "adapter" / "adapter_config.json").is_file()
        fresh = load(spec, folder, **options)
        batch = backbone.tokenize(TEXTS)
        backbone.module().eval()
        fresh.module().eval()
        with torch.no_grad():
            after, _ = backbone.encode(batch)
            assert after.dtype == torch.float32
            assert not torch.equal(fresh.encode(batch)[0], after)
            fresh.restore(tmp_path / "saved")
            torch.testing.assert_close(fresh.encode(batch)[0], after, rtol=0, atol=0)
        assert all(bool(w.any()) for n, w in weights.items() if "lora_B" in n), (
            "an adapter that no gradient reached"
        )
        return {name.split(".lora_")[0].rsplit(".", 1)[-1] for name in weights if ".lora_" in name}

    return check
