"""Options that both training stages have; imports no torch."""

from __future__ import annotations

from plant_cli.api import Options, option


class TrainingOptions(Options):
    """How long and how fast to train."""

    epochs: int = option(10, "Passes over train at most.", ge=1)
    patience: int | None = option(2, "Epochs without a better validation value before training stops.", ge=1)
    batch: int = option(32, "Documents of one optimiser step.", ge=1)
    micro_batch: int = option(8, "Documents in memory at once; lower it when memory runs out.", ge=1)
    rate_attention: float = option(1e-3, "Peak learning rate of label queries and attention maps.", gt=0)
    rate_backbone: float = option(5e-5, "Peak learning rate of the backbone, when it is trained.", gt=0)
    weight_decay: float = option(0.01, "AdamW's weight decay.", ge=0)
    warmup: float = option(0.05, "Share of steps over which rates rise.", ge=0, lt=1)
    sparse_updates: bool | None = option(
        None,
        "Leave the rows of label tables that no document of a step touched as they are, moments and weight decay too: less memory, "
        "another optimiser than AdamW on whole tables. Default: from 30,000 labels on.",
    )
    clip: float = option(1.0, "Largest norm of a gradient.", gt=0)
    cache_limit: float = option(8.0, "Disk for cached hidden states of one split, in GB (frozen backbones only).", ge=0)
    tracker: str | None = option(
        None, "Send loss and validation figures to a tracker, too: tensorboard, wandb, mlflow, … as accelerate names them."
    )
    curves: bool = option(False, "Draw loss and validation figure as lines in the terminal after every epoch.")
    checkpoint_minutes: float = option(10.0, "Minutes between checkpoints within an epoch.", gt=0)
