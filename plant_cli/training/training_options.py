"""Options of fine-tuning, and those that any network is trained with; no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import field_validator, model_validator

from plant_cli.api import Choice, Options, UsageError, choice, option
from plant_cli.evaluation.targets import DEFAULT_TARGET, TARGET_HELP, parse_targets

LayerRates = Literal["equal", "harmonic", "geometric"]
"""How the rate of the backbone is spread over its layers."""
ULMFIT = 2.6
"""Under `geometric` rates, how many times faster each layer learns than the one below it
(Howard and Ruder 2018, section 3.2).
"""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When parts of the network are unfrozen."""

    # one part after the other, see `plant_network.optimiser.gradual`; else all from the
    # beginning
    gradual: bool = False
    attention_factor: float = 1.0  # on the attention's rate under gradual unfreezing
    epochs: int = 1  # that pass before the next part is unfrozen


EVERYTHING = Schedule()
"""All parts learn from the first epoch on."""


def layer_share(depth: int, rates: LayerRates) -> float:
    """The share of the backbone's rate at which a group of layers learns: discriminative
    fine-tuning.
    """
    return {"equal": 1.0, "harmonic": 1 / (depth + 1), "geometric": ULMFIT**-depth}[rates]


Value = TypeVar("Value")
ROLES = frozenset({"attention", "value", "boost", "head", "backbone"})
"""Parts of the network that stage 2 trains."""
MICRO_BATCH = 8
"""Documents in memory at once, unless memory decides."""
SPARSE_FROM = 30_000
"""Labels from which updates are sparse unless the user says otherwise: below, one dense pass is
faster and memory is no matter.
"""
SHORTLIST_FROM = 2000
"""Labels from which a shortlist is used unless the user says otherwise: below, scoring all of
them costs little.
"""


class TrainingOptions(Options):
    """How long and how fast to train."""

    patience: int | None = option(
        2, "Epochs without a better validation value before training stops.", ge=1
    )
    batch: int = option(
        32,
        "Documents of one optimiser step; the last step of an epoch has what is left over.",
        ge=1,
    )
    micro_batch: int | Literal["auto"] | None = option(
        None,
        "Documents in memory at once, at most; a step is cut evenly. Lower it when memory runs "
        "out. auto: documents of like length, as "
        f"many as memory holds. Default: auto on a graphics card, {MICRO_BATCH} elsewhere and "
        "with several processes.",
        level="everyday",
        value="N",
    )
    rate_backbone: float = option(
        5e-5, "Peak learning rate of the backbone, when it is trained.", gt=0
    )
    layer_rates: LayerRates = option(
        "equal",
        "How fast the backbone's layers learn, the last ones first. equal: all at its rate; "
        "harmonic: 1, 1/2, 1/3, … of it; "
        f"geometric: each 1/{ULMFIT:g} of the one above (ULMFiT).",
    )
    weight_decay: float = option(0.01, "AdamW's weight decay.", ge=0)
    warmup: float = option(0.05, "Share of steps over which rates rise.", ge=0, lt=1)
    sparse_updates: bool | None = option(
        None,
        f"Update only the label rows used in a step: less memory. Default: from {SPARSE_FROM:,} "
        "labels on.",
    )
    clip: float = option(1.0, "Largest norm of a gradient.", gt=0)
    cache_limit: float = option(
        8.0, "Disk for cached hidden states of one split, in GB (frozen backbones only).", ge=0
    )
    tracker: str | None = option(
        None,
        "Also send loss and validation figures to a tracker of accelerate: tensorboard, wandb, "
        "mlflow, …",
    )
    curves: bool = option(
        False, "Draw loss and validation figure as lines in the terminal after every epoch."
    )
    checkpoint_minutes: float = option(10.0, "Minutes between checkpoints within an epoch.", gt=0)

    @field_validator("micro_batch", mode="before")
    @classmethod
    def _is_a_number_or_auto(cls, value: Any) -> Any:
        if value is None or value == "auto":
            return value
        if not re.fullmatch("[1-9][0-9]{0,8}", str(value)):
            raise ValueError("a whole number of documents, from 1 to 999999999, or auto")
        return int(value)

    def fills_memory(self, device: str, processes: int) -> bool:
        """Whether a micro-batch is as large as memory allows, on a type of device ("cuda",
        "cpu").
        """
        return processes == 1 and (
            self.micro_batch == "auto" or (self.micro_batch is None and device == "cuda")
        )

    @property
    def documents(self) -> int:
        """Documents of a micro-batch, at most, where memory does not decide."""
        return self.micro_batch if isinstance(self.micro_batch, int) else MICRO_BATCH


@dataclass(frozen=True, kw_only=True)
class ByStart(Generic[Value]):
    """A default that depends on how the label tables start.

    Tables that are planted can lose something, so they learn more slowly; a start from nothing
    makes no progress at first, so it is given all its epochs.
    """

    planted: Value  # with tables that start from prototypes
    plain: Value  # without

    @property
    def help(self) -> str:
        """The sentence that a help text ends with."""
        planted, plain = (
            "all epochs" if value is None else f"{value:g}" for value in (self.planted, self.plain)
        )
        return f"Default: {planted} with planted label tables, {plain} without."

    def choose(self, given: Value | None, *, planted: bool) -> Value:
        """What the user gave, else the default."""
        if given is not None:
            return given
        return self.planted if planted else self.plain


OF_SCORERS = {
    *("network", "scorers", "relevance", "exclude", "tune", "target", "allow_missing", "data"),
}
"""Options that count without a network, too."""
DEFAULT_SCORERS = ("words", "titles", "neighbours", "linear")
RATE_HEAD = ByStart(planted=3e-4, plain=1e-3)
RATE_BOOST = ByStart(planted=3e-3, plain=3e-2)
PATIENCE: ByStart[int | None] = ByStart(planted=2, plain=None)
LEAST_GAIN = ByStart(planted=0.002, plain=0.0)


class FinetuneOptions(TrainingOptions):
    """Options of `finetune`."""

    init: Literal["planted", "random"] = option(
        "planted",
        "What attention starts from: planted, or queries as they are drawn, which is uniform "
        "attention.",
        level="everyday",
    )
    relevance: str | None = option(
        None,
        "Tag of the `plant mig` whose relevance scorers and shortlists use (default: without a "
        "tag).",
    )
    planted: str | None = option(
        None,
        "Tag of the `plant pretrain-attn` to start from, such as control (default: without a tag).",
    )
    head: Literal["ridge", "prototypes", "random"] | None = option(
        None,
        "What the labels' classifiers start from. ridge: regression in closed form on what "
        "attention gathers in train; prototypes: "
        "the mean of a label's documents against any others; random: nothing (paper). Default: "
        "prototypes.",
        level="everyday",
    )
    sharpness: float | None = option(
        None,
        "Factor on the scores that attention has learned, when classifiers are started; not with "
        "--head random. "
        "0: none of them. Default: chosen on validation among 0, 1/8, 1/4, 1/2 and 1; a larger "
        "factor must be clearly better. "
        "With --head ridge: 0 or 1/4, by likelihood.",
        ge=0,
    )
    scorers: list[Choice] | None = choice(
        "scorer",
        None,
        "Scorers that judge labels besides the network, comma-separated, or none; weights are "
        "learned from train and validation. "
        f"Default: {', '.join(DEFAULT_SCORERS)} (paper: none).",
        was="lexical",
    )
    epochs: int = option(
        10,
        "Passes over train at most. 0: none, for a network that --head starts.",
        level="everyday",
        ge=0,
    )
    rate_attention: float = option(
        1e-3, "Peak learning rate of label queries and attention maps.", gt=0
    )
    network: bool = option(
        True,
        "Train a network, not only scorers. Without one the model is ready in seconds.",
        level="everyday",
    )
    only_new: bool = option(
        False,
        "Give new labels rows in the network, as `plant labels apply` asks for, and train nothing.",
    )
    only_if_better: bool = option(
        False,
        "Keep the network only if it adds: gain in MAP on validation above 0 (95%).",
        level="everyday",
    )
    allow_missing: bool = option(
        False, "Leave a scorer out that fails, with a warning, instead of stopping."
    )
    patience: int | None = option(
        None,
        f"Epochs without a better validation value before training stops. {PATIENCE.help}",
        ge=1,
    )
    least_gain: float | None = option(
        None,
        "Least gain of an epoch that counts as better: in the validation figure, when training "
        f"decides whether to stop. {LEAST_GAIN.help}",
        ge=0,
    )
    loss: Choice = choice("loss", "focal-hnm", "The loss over labels.")
    rate_head: float | None = option(
        None,
        f"Peak learning rate of what labels share: value path and head. {RATE_HEAD.help}",
        gt=0,
    )
    rate_boost: float | None = option(
        None, f"Peak learning rate of the tables of each label (boost). {RATE_BOOST.help}", gt=0
    )
    unfreeze: Literal["gradual", "all"] = option(
        "gradual", "Order of unfreezing. gradual: value path and head, attention, backbone."
    )
    unfreeze_epochs: int = option(
        1, "Epochs that pass before gradual unfreezing goes one step on.", ge=1
    )
    attention_factor: float = option(
        0.3, "Factor on the attention's rate under gradual unfreezing.", gt=0, le=1
    )
    anchor: float = option(
        0.0, "Weight of the stage 1 loss as an auxiliary term that fades out; 0: none.", ge=0
    )
    anchor_epochs: int = option(5, "Epochs over which the anchor fades out.", ge=1)
    anchor_loss: Choice = choice("loss", "lambda", "The ranking loss of the anchor.")
    shortlist: Choice | None = choice(
        "shortlist",
        None,
        "Look for hard negatives only among the labels that this proposes; they and what scorers "
        "list are scored after each epoch. Needs "
        "`plant mig`. The saved model, its calibration and `predict` score every label. "
        f"Default: words from {SHORTLIST_FROM:,} labels on, if there are scorers beside the "
        "network and the run has relevance, else none "
        "(paper: none).",
    )
    monitor: Literal["MAP", "macro-F1", "micro-F1", "P@5"] = option(
        "MAP", "Validation figure that decides which epoch is kept."
    )
    tune: Literal["micro-F1", "macro-F1", "per-label"] = option(
        "micro-F1",
        "What the threshold maximises; it is tuned on validation. per-label: one threshold for "
        "each label, for the label's own F1.",
        level="everyday",
        was="threshold",
    )

    target: list[str] = option([DEFAULT_TARGET], TARGET_HELP, level="everyday")
    exclude: tuple[str, ...] = option(
        (),
        "A label never suggested: its id or title, or a file of them (repeatable).",
        level="everyday",
    )

    @property
    def plants_tables(self) -> bool:
        """Whether label tables start from train, if the decoder can."""
        return self.head != "random"

    @property
    def in_closed_form(self) -> bool:
        """Whether classifiers are set by regression alone, and nothing is trained."""
        return self.head == "ridge" and not self.epochs

    @property
    def starts_planted(self) -> bool:
        """Whether training starts from planted attention."""
        return self.init == "planted" and not self.only_new

    @property
    def schedule(self) -> Schedule:
        """When parts of the network are unfrozen."""
        return Schedule(
            gradual=self.unfreeze == "gradual",
            attention_factor=self.attention_factor,
            epochs=self.unfreeze_epochs,
        )

    @property
    def needs_relevance(self) -> bool:
        """Whether the stage cannot do without the run's relevance table."""
        return self.network and (
            bool(self.anchor) or (self.shortlist is not None and self.shortlist.name != "none")
        )

    @property
    def chosen_scorers(self) -> list[Choice]:
        """The scorers that are used."""
        if self.scorers is not None:
            return self.scorers
        return [Choice(name=name) for name in DEFAULT_SCORERS]

    @field_validator("scorers", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        """Names may stand together, separated by commas; `none` is no scorer."""
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple):
            return given
        parts = [
            part
            for item in given
            for part in (map(str.strip, item.split(",")) if isinstance(item, str) else [item])
        ]
        return [part for part in parts if part not in ("", "none")]

    @model_validator(mode="after")
    def _something_scores(self) -> FinetuneOptions:
        names = [chosen.name for chosen in self.chosen_scorers]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the scorer '{repeated[0]}' is named twice")
        if not self.network and not names:
            raise ValueError(
                "with --no-network at least one scorer is needed: leave --no-network out, or "
                "name --scorers"
            )
        return self

    def ignores(self, name: str) -> bool:
        """See `Options.ignores`."""
        return not self.network and name not in OF_SCORERS

    def reads_stage(self, stage: str) -> bool:
        """See `Options.reads_stage`."""
        return stage != "pretrain-attn" or (self.network and self.init == "planted")

    def check_values(self) -> None:
        """Refuse options that do not go together."""
        parse_targets(self.target)
        if self.sharpness is not None and not self.plants_tables:
            raise UsageError(
                "a sharpness is given, but the labels' classifiers start from nothing",
                where="finetune, option sharpness",
                expected="--head ridge or prototypes, which is the default",
                todo="leave --sharpness out, or add --head ridge",
            )
        if not self.epochs and not self.plants_tables and self.network:
            raise UsageError(
                "a network that starts from nothing is to be trained for no epoch",
                where="finetune, option epochs = 0",
                expected="one epoch or more, or --head ridge",
                todo="add --head ridge, or leave --epochs out",
            )
        if self.planted is not None and self.init != "planted":
            raise UsageError(
                f"pretrain-attn-{self.planted} is named, but training does not start from planted "
                "attention",
                where="finetune, option planted",
                expected="--init planted, which is the default",
                todo="leave --planted out, or --init random",
            )
