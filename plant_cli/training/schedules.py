"""Schedules that any network can be trained with: when its parts are unfrozen, and how its rate is spread over layers; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LayerRates = Literal["equal", "harmonic", "geometric"]
"""How the rate of the backbone is spread over its layers."""
ULMFIT = 2.6
"""Under `geometric` rates, how many times faster each layer learns than the one below it (Howard and Ruder 2018, section 3.2)."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When parts of the network are unfrozen.

    Args:
        gradual: one part after the other, see `plant_cli.training.unfreezing.gradual`; else all from the beginning.
        attention_factor: on the attention's rate under gradual unfreezing.
        epochs: that pass before the next part is unfrozen.
    """

    gradual: bool = False
    attention_factor: float = 1.0
    epochs: int = 1


EVERYTHING = Schedule()
"""All parts learn from the first epoch on."""


def layer_share(depth: int, rates: LayerRates) -> float:
    """The share of the backbone's rate at which a group of layers learns: discriminative fine-tuning.

    Args:
        depth: 0 for the last layers, 1 for those below, and so on.
        rates: `equal`: 1 for all; `harmonic`: 1, 1/2, 1/3, …; `geometric`: 1, 1/2.6, 1/2.6², … (ULMFiT).
    """
    return {"equal": 1.0, "harmonic": 1 / (depth + 1), "geometric": ULMFIT**-depth}[rates]
