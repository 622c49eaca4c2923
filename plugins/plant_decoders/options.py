"""Options of the decoders."""

from __future__ import annotations

from typing import Literal

from plant_cli.api import Options, option


class LabelAttentionOptions(Options):
    """Options of the decoder `label-attention`."""

    heads: int = option(8, "Attention heads; must divide the backbone's hidden size.", ge=1)
    pool: int = option(128, "Bins to which the boosted attention output is averaged before the shared projection.", ge=1)
    norm: Literal["layer", "none"] = option("layer", "Normalise the hidden states before attention (paper: none).")
    prior_bias: bool = option(True, "A bias per label, starting at the log-odds of its share of the training documents (paper: none).")
    label_rank: int | None = option(None, "Label queries of this low rank instead of free ones, for very many labels.", ge=1)
    dropout: float = option(0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1)
    init_scale: float = option(0.03, "Standard deviation of random label queries.", gt=0)
    elements: int | None = option(
        None, "Numbers (labels x hidden size) that label attention holds at a time (default: by device).", ge=1, was="cells"
    )


class DotAttentionOptions(Options):
    """Options of the decoder `dot-attention`."""

    pool: int = option(128, "Bins to which the boosted attention output is averaged before the shared projection.", ge=1)
    label_rank: int | None = option(None, "Label queries of this low rank instead of free ones, for very many labels.", ge=1)
    dropout: float = option(0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1)
    init_scale: float = option(0.03, "Standard deviation of random label queries.", gt=0)
