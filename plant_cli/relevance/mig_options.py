"""The options of `plant mig`."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from plant_cli.api import Choice, Options, choice, option
from plant_cli.api.options import SIZE_PATTERN, everyday
from plant_cli.data.shares import SHARE_PATTERN, require_share


class MigOptions(Options):
    """Options of `mig`."""

    k: int = everyday(1000, "Words kept for each label, at most.", ge=1)
    min_df: int = option(2, "Words in fewer training documents than this are left out.", ge=1)
    sign: Literal["positive", "any"] = option(
        "positive", "Which words count: those more often with the label, or any that tell of it."
    )
    norm: Literal["label-max", "global-max", "none", "rank", "grades", "jaccard"] = option(
        "label-max",
        "How values become relevance in [0, 1]. none: values are only clipped to [0, 1]; "
        "global-max: divided by the largest value of all "
        "labels (reads the counts twice); grades: the rank in 101 steps; jaccard: needs the "
        "signal mig.",
    )
    signal: Choice = choice(
        "signal",
        "mig",
        "The signal that measures how strongly a word indicates a label.",
        was="score",
    )
    label_text_weight: float = option(
        0.0,
        "Relevance added to the words of a label's title; the rarest word gets most. Words below "
        "--min-df count, too. 0: none. "
        "0.25 helped labels with few documents on all corpora it was tried on.",
        ge=0,
        le=1,
    )
    allow_leakage: bool = option(
        False,
        "Count validation and test documents as well, as the authors' code does: figures are too "
        "good.",
    )
    memory: str = option(
        "2GB", "Memory for the blocks of labels under way, such as 500MB.", pattern=SIZE_PATTERN
    )
    jobs: int | None = option(
        None, "Threads that count (default: --threads, else all cores).", ge=1
    )
    shard: str | None = option(
        None,
        "Only count, and only this share of train, such as 2/4; see --merge.",
        pattern=SHARE_PATTERN,
    )
    merge: tuple[str, ...] = option(
        (),
        "Add up what --shard wrote: a folder, or a pattern such as 'shards/*/mig' (repeatable).",
        path=True,
    )

    _is_a_share = field_validator("shard")(require_share)

    @model_validator(mode="after")
    def _jaccard_is_for_mig(self) -> MigOptions:
        if self.norm == "jaccard" and self.signal.name != "mig":
            raise ValueError(
                "norm jaccard divides by the joint entropy: it needs the signal mig, not "
                f"{self.signal.name}"
            )
        return self

    @model_validator(mode="after")
    def _a_shard_is_counted_or_merged(self) -> MigOptions:
        if self.shard is not None and self.merge:
            raise ValueError("a shard is either counted (--shard) or merged (--merge)")
        if self.allow_leakage and (self.shard is not None or self.merge):
            raise ValueError(
                "shards are of train alone: --allow-leakage needs to count all documents at once"
            )
        return self
