"""For all tests: nothing reaches the network, and the slow ones come last."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

LOOPBACK = {"localhost", "127.0.0.1", "::1"}

os.environ["HF_HUB_OFFLINE"] = "1"  # for this process and those that tests start


@pytest.fixture(autouse=True, scope="session")
def _offline() -> Any:
    """Refuse every connection but those to this machine itself."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise PermissionError(f"a test tried to reach {address[0]}: tests run offline")
        return connect(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded)
    yield
    patch.undo()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests last; otherwise the order stays."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture
def small_network() -> Callable[..., Any]:
    """Builds a network on the backbone `tiny` without dropout; equal arguments give equal weights: `small_network(seed=0, labels=4)`."""

    def build(seed: int = 0, labels: int = 4, **backbone: Any) -> Any:
        import torch
        from plant_decoders.label_attention import LabelAttention
        from plant_decoders.options import LabelAttentionOptions
        from plant_tiny.network import TinyBackbone
        from plant_tiny.plugin import TinyOptions

        from plant_cli.api import DecoderShape, ModelSection
        from plant_cli.corpus.labels import LabelTable
        from plant_cli.model.network import Network

        torch.manual_seed(seed)
        options = TinyOptions(
            **{"hidden": 16, "heads": 2, "layers": 1, "buckets": 64, "dropout": 0.0, "window": 8, "overlap": 2} | backbone
        )
        decoder = LabelAttention(LabelAttentionOptions(heads=2, pool=8, init_scale=0.5), DecoderShape(hidden=16, labels=labels))
        names = [f"label {i}" for i in range(labels)]
        index = LabelTable(ids=names, titles=[None] * labels, train_counts=[1] * labels)
        return Network(TinyBackbone(options), decoder, ModelSection(backbone="tiny"), index)

    return build
