"""A batch in double precision, and decoders whose parameters are away from their neutral start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from plant_cli.api import Choice, DecoderShape, DecoderSpec, Reading
from plant_cli.registry import Registry

HIDDEN, LABELS = 6, 5


@pytest.fixture
def reading() -> Reading:
    """Three documents of 7, 4 and 1 tokens; numbers stand behind their ends, too."""
    hidden = torch.randn(
        3, 7, HIDDEN, generator=torch.Generator().manual_seed(9), dtype=torch.float64
    )
    return Reading.of(hidden, torch.arange(7) < torch.tensor([7, 4, 1])[:, None])


@pytest.fixture
def build() -> Callable[..., Any]:
    """Builds a decoder by name, as the registry does: `build("laat", lstm=3)`; stirred, in
    double precision, without dropout.
    """

    def _build(
        name: str, shape: DecoderShape | None = None, *, stir: bool = True, **options: Any
    ) -> Any:
        import plant_decoders as plugin

        registry = Registry()
        registry.register(plugin, name="decoders")
        spec, given = registry.resolve(DecoderSpec, Choice(name=name, options=options))
        torch.manual_seed(0)
        decoder: Any = spec.build(given, shape or DecoderShape(hidden=HIDDEN, labels=LABELS))
        if stir:
            with torch.no_grad():
                for parameter in decoder.parameters():
                    parameter += 0.5 * torch.randn_like(parameter)
        return decoder.double().eval()

    return _build


@pytest.fixture
def tokens(reading: Reading) -> list[list[torch.Tensor]]:
    """The hidden states of the real tokens of each document."""
    return [list(hidden[mask]) for hidden, mask in zip(reading.hidden, reading.mask, strict=True)]
