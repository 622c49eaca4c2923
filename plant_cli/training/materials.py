"""What a training stage works on: splits, their tokens and the readers of their hidden states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plant_cli.api import Split, SplitName, StageContext
from plant_cli.model.cuts import cut_summary, measure_cut
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, tokenize
from plant_cli.training.cache import cached_or_live


@dataclass(frozen=True, kw_only=True)
class Material:
    """A split and how to read it."""

    split: Split
    reader: HiddenReader


def gather(
    context: StageContext, network: Network, hardware: Hardware, names: Sequence[SplitName], cache_limit: float
) -> dict[SplitName, Material]:
    """Tokenise splits and open readers; hidden states of a frozen backbone are cached up to `cache_limit` GB a split."""
    corpus = context.corpus()
    found: dict[SplitName, Material] = {}
    for name in names:
        split = corpus.split(name)
        tokens = tokenize(network, split.texts, context.reporter, name, evidence=split.evidence)
        reader = cached_or_live(network, tokens, hardware, context, name=name, data_hash=corpus.data_hash, limit_gb=cache_limit)
        found[name] = Material(split=split, reader=reader)
    return found


def summarise_cuts(materials: Mapping[SplitName, Material]) -> dict[str, dict[str, Any]]:
    """What of each split was not read, for the stage's record."""
    return cut_summary({name: measure_cut(material.reader.tokens, material.split.evidence) for name, material in materials.items()})
