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


class ClassifierOptions(Options):
    """Options of the decoders that others published."""

    prior_bias: bool = option(
        False, "Start the bias of each label at the log-odds of its share of the training documents (published: at 0)."
    )
    elements: int | None = option(None, "Numbers (labels x hidden size) that attention holds at a time (default: by device).", ge=1)


class CamlOptions(ClassifierOptions):
    """Options of the decoder `caml`."""

    filters: int = option(50, "Filters of the convolution: the size of what labels attend to.", ge=1)
    width: int = option(10, "Tokens that a filter spans.", ge=1)
    dropout: float = option(0.2, "Share of the hidden states' values zeroed in training.", ge=0, lt=1)


class LaatOptions(ClassifierOptions):
    """Options of the decoder `laat`."""

    lstm: int = option(512, "Units, in each direction, of the LSTM between backbone and attention; 0: none.", ge=0)
    inner: int = option(512, "Size of the hidden layer that label queries are compared with.", ge=1)
    dropout: float = option(0.3, "Share of the backbone's values zeroed in training.", ge=0, lt=1)


class JointLaatOptions(LaatOptions):
    """Options of the decoder `joint-laat`."""

    prefix: int | None = option(
        None, "Group labels by this many first characters of their ids, 3 for the categories of ICD. Default: by their parents.", ge=1
    )
    context: int = option(128, "Size of what the scores of the groups are mapped to before each label sees it.", ge=1)


class PlmIcdOptions(ClassifierOptions):
    """Options of the decoder `plm-icd`."""

    dropout: float = option(0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1)


class PlmCaOptions(Options):
    """Options of the decoder `plm-ca`."""

    dropout: float = option(0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1)
    elements: int | None = option(None, "Numbers (labels x hidden size) that attention holds at a time (default: by device).", ge=1)
