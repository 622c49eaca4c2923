"""Ensembles: the scores of several trained networks for every label of every document, averaged.

The networks score one after the other, so that only one is in memory; what they have in common so far lies on disk. No list of best
labels is averaged: a label that one network left out of its list has a score there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

from plant_cli.api import LabelIndex, Split, SplitName
from plant_cli.artefacts.scores import writing_scores
from plant_cli.inference.scoring import add_logits
from plant_cli.inference.top import Keep, TopCollector, TopLabels
from plant_cli.model.truncation import Cut

Mean = Literal["probabilities", "logits"]
from plant_cli.model.reading import Rows
Logits = npt.NDArray[np.float32]
NUMBERS = 1 << 22
"""Scores that are in memory at a time when the best labels are looked for."""


class ScoreFile(Protocol):
    """Logits of documents, by row."""

    def write(self, rows: Rows, logits: Logits) -> None:
        """Keep logits [B, L] of the documents of these rows [B]."""
        ...

    def read(self, rows: Rows) -> Logits:
        """What was kept of these documents [B, L]."""
        ...


Score = Callable[[SplitName, Keep], Cut]
"""Scores every document of a split and hands rows [B] and logits [B, L] of each batch on; says what was not read."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One system of an ensemble.

    Args:
        name: as the user wrote it.
        load: loads the network.
    """

    name: str
    load: Callable[[], Score]


def average_splits(
    members: Sequence[Member],
    splits: Mapping[SplitName, Split],
    labels: LabelIndex,
    folders: Mapping[SplitName, Path],
    mean: Mean,
    k: int,
) -> dict[SplitName, TopLabels]:
    """The k best labels of each document under the mean of the members' scores, by split.

    Args:
        members: at least one.
        splits: to be scored.
        labels: the label index.
        folders: where the mean scores of each split are left (`plant_cli.artefacts.scores`); made if they are not there.
        mean: of probabilities, or of logits.
        k: labels kept of each document.
    """
    with ExitStack() as stack:
        kept: dict[SplitName, ScoreFile] = {}
        for name, split in splits.items():
            folders[name].mkdir(exist_ok=True)
            kept[name] = stack.enter_context(writing_scores(folders[name], split.doc_ids, len(labels), labels.hash))
        cuts = average_members(members, kept, mean)
        found = {name: best_labels(kept[name], len(split), len(labels), k) for name, split in splits.items()}
    return {name: replace(top, cut=cuts[name]) for name, top in found.items()}


def average_members(members: Sequence[Member], kept: Mapping[SplitName, ScoreFile], mean: Mean) -> dict[SplitName, Cut]:
    """Leave the mean scores of the members in files, as logits; each member is loaded once, after the one before it is gone.

    Args:
        members: at least one.
        kept: the file of each split that is scored.
        mean: of probabilities, or of logits.

    Returns:
        Of each split, the most that a member did not read.
    """
    cuts = {name: Cut() for name in kept}
    for count, member in enumerate(members):
        score = member.load()
        for name, file in kept.items():
            cut = score(name, partial(_add, file, count, mean))
            cuts[name] = max(cuts[name], cut, key=lambda cut: cut.tokens) if count else cut
        del score
    return cuts


def _add(kept: ScoreFile, count: int, mean: Mean, rows: Rows, logits: Logits) -> None:
    kept.write(rows, join_mean(kept.read(rows), logits, count, mean) if count else logits)


def join_mean(before: Logits, logits: Logits, count: int, mean: Mean) -> Logits:
    """The logit of the mean of `count` members, of which `before` is the logit, and one more.

    Probabilities are averaged as logarithms in double precision, so that none becomes 0 or 1.
    """
    old, new = before.astype(np.float64), logits.astype(np.float64)
    if mean == "logits":
        return (old + (new - old) / (count + 1)).astype(np.float32)
    yes = np.logaddexp(np.log(count) - np.logaddexp(0.0, -old), -np.logaddexp(0.0, -new))
    no = np.logaddexp(np.log(count) - np.logaddexp(0.0, old), -np.logaddexp(0.0, new))
    joined: Logits = (yes - no).astype(np.float32)
    return joined


def best_labels(kept: ScoreFile, documents: int, labels: int, k: int) -> TopLabels:
    """The k best labels of each document, ties by index."""
    collected, step = TopCollector(documents, min(k, labels)), max(1, NUMBERS // labels)
    for start in range(0, documents, step):
        rows = np.arange(start, min(start + step, documents))
        add_logits(collected, rows, torch.from_numpy(kept.read(rows)))
    return collected.done()
