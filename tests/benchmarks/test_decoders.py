"""The plain form that decoders are timed beside gives their logits."""

from __future__ import annotations

import argparse

import pytest
import torch

from plant_cli.api import Reading
from tests.benchmarks.decoders import DECODERS, build, ours, plain, reference
from tests.benchmarks.training import batch


@pytest.mark.parametrize(("name", "lstm"), [*((name, 0) for name in DECODERS), ("laat", 4), ("joint-laat", 4)])
def test_both_forms_are_one_decoder(name: str, lstm: int) -> None:
    options = argparse.Namespace(decoder=name, lstm=lstm, labels=20, documents=2, positions=24, hidden=16, dtype="float32")
    hidden, mask, _ = batch(options)
    decoder = build(options)
    torch.testing.assert_close(decoder(Reading.of(hidden, mask)), plain(decoder, hidden, mask), rtol=1e-4, atol=1e-5)
    for contender in (ours, reference):
        contender(options)()
