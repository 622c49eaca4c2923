"""The kinds of components: one row for each. Hooks, look-ups, `plant plugins`, conformance checks and docs all follow from this table."""

from __future__ import annotations

from dataclasses import dataclass

from plant_cli.api.components import Spec
from plant_cli.api.specs import (
    BackboneSpec,
    DatasetSpec,
    DecoderSpec,
    LossSpec,
    MetricSpec,
    ScorerSpec,
    ShortlistSpec,
    SignalSpec,
    StageSpec,
)


@dataclass(frozen=True)
class Kind:
    """A kind of component.

    Args:
        name: the singular, as messages and `choice(...)` write it.
        plural: as the hook `plant_register_<plural>` and the module of checks `plant_cli.testing.<plural>` are called.
        spec: the class of its specs.
        summary: what these components are, in one sentence.
    """

    name: str
    plural: str
    spec: type[Spec]
    summary: str

    @property
    def hook(self) -> str:
        """The name of the function that registers components of this kind."""
        return f"plant_register_{self.plural}"

    @property
    def checks(self) -> str:
        """The module that holds the conformance checks of this kind, as `CHECKS`."""
        return f"plant_cli.testing.{self.plural}"


TABLE = (
    Kind("stage", "stages", StageSpec, "Stages and actions: each becomes a subcommand with flags, a recipe section and a docs page."),
    Kind("backbone", "backbones", BackboneSpec, "Networks that turn text into hidden states."),
    Kind("decoder", "decoders", DecoderSpec, "Networks that turn hidden states into label scores and rank words for a label."),
    Kind("loss", "losses", LossSpec, "Losses of stage 1 (`rank`) and stage 2 (`label`)."),
    Kind("signal", "signals", SignalSpec, "Relevance signals: pure functions of the count table."),
    Kind("dataset", "datasets", DatasetSpec, "Corpora and readers of corpora."),
    Kind("metric", "metrics", MetricSpec, "Metrics of evaluation."),
    Kind("shortlist", "shortlists", ShortlistSpec, "Proposals of the labels worth scoring where there are too many to score them all."),
    Kind("scorer", "scorers", ScorerSpec, "What scores labels besides the network: words, titles, neighbours, linear weights."),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in TABLE}


def kind_of(spec: type[Spec]) -> Kind:
    """The kind that a class of specs stands for.

    Args:
        spec: the class of a row of `KINDS`, or a class derived from one.

    Raises:
        TypeError: no kind has such specs.
    """
    for kind in TABLE:
        if issubclass(spec, kind.spec):
            return kind
    raise TypeError(f"{spec.__name__} is not the spec of any kind of component: {', '.join(kind.spec.__name__ for kind in TABLE)}")
