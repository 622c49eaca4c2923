"""Averages of several trained models: the best labels under the mean of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from plant_cli.api import LabelIndex, Split, SplitName
from plant_cli.data.blocks import top_k
from plant_cli.scoring.cuts import Cut
from plant_cli.scoring.predictions import ScoreWriter, writing_scores
from plant_cli.scoring.sparse_scores import cut_rows
from plant_cli.scoring.top_labels import Keep, Logits, Rows, TopLabels, distinct_probabilities

Mean = Literal["probabilities", "logits"]
NUMBERS_AVERAGED = 1 << 22
"""Scores that are in memory at a time when the best labels are looked for."""
Score = Callable[[SplitName, Keep], Cut]
"""Scores every document of a split and hands rows [B] and logits [B, L] of each batch on; gives
what was not read.
"""


def average_splits(
    members: Sequence[Callable[[], Score]],
    splits: Mapping[SplitName, Split],
    labels: LabelIndex,
    folders: Mapping[SplitName, Path],
    mean: Mean,
    k: int,
) -> dict[SplitName, TopLabels]:
    """The k best labels of each document under the mean of the members' scores, by split."""
    with ExitStack() as stack:
        kept: dict[SplitName, ScoreWriter] = {}
        for name, split in splits.items():
            folders[name].mkdir(exist_ok=True)
            kept[name] = stack.enter_context(
                writing_scores(folders[name], split.doc_ids, len(labels), labels.hash)
            )
        cuts = average_members(members, kept, mean)
        best = {
            name: find_best(kept[name], len(split), len(labels), k)
            for name, split in splits.items()
        }
    return {name: replace(top, cut=cuts[name]) for name, top in best.items()}


def average_members(
    members: Sequence[Callable[[], Score]], kept: Mapping[SplitName, ScoreWriter], mean: Mean
) -> dict[SplitName, Cut]:
    """Leave the mean scores of the members in files, as logits; each member is loaded once,
    after the one before it is gone.
    """
    cuts = {name: Cut() for name in kept}
    for count, load in enumerate(members):
        score = load()
        for name, file in kept.items():
            cut = score(name, partial(_add, file, count, mean))
            cuts[name] = max(cuts[name], cut, key=lambda cut: cut.tokens) if count else cut
        del score
    return cuts


def _add(kept: ScoreWriter, count: int, mean: Mean, rows: Rows, logits: Logits) -> None:
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


def find_best(kept: ScoreWriter, documents: int, labels: int, k: int) -> TopLabels:
    """The k best labels of each document, ties by index."""
    width, above = min(k, labels), 0
    top, best = np.zeros((documents, width), dtype=np.int64), np.zeros((documents, width))
    for block in cut_rows(documents, labels, NUMBERS_AVERAGED):
        rows = np.arange(block.start, block.stop)
        for row, logits in zip(rows.tolist(), kept.read(rows), strict=True):
            chosen = top_k(logits, width)
            top[row] = chosen[np.argsort(-logits[chosen], kind="stable")]
            best[row] = logits[top[row]]
            above += int(np.count_nonzero(logits >= 0))
    return TopLabels(
        labels=top,
        scores=distinct_probabilities(best),
        assigned_share=above / max(1, documents * labels),
    )
