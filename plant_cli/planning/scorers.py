"""What scorers without a network take: fitted on a sample of the training documents and on half of it, to see what grows, and how."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log2
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Corpus, Options, Reporter, ScorerSpec, Split
from plant_cli.artefacts.scorers import share_tensors
from plant_cli.base.memory import resident_memory
from plant_cli.inference.scorers import fit_scorers
from plant_cli.planning.estimates import Estimate

SAMPLE = 500
"""Documents that scorers are fitted on; half of them, too, to see what grows."""


def plan_scorers(corpus: Corpus, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter) -> Estimate:
    """Plan a stage `finetune` without a network.

    Args:
        corpus: the documents.
        chosen: scorers and their options.
        reporter: where notes go.
    """
    train = corpus.split("train")
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLE])
    (half, _, less), (whole, seconds, stored) = (_trace(corpus, train.take(part), chosen, reporter) for part in (rows[::2], rows))
    scale = len(train) / max(1, len(rows))
    grown = whole + max(0, whole - half) * 2 * (scale - 1)
    most = max((spec.memory(options, len(train)) for spec, options in chosen if spec.memory is not None), default=0)
    return Estimate(
        memory={"process and texts": resident_memory(), "scorers": int(max(grown, most))},
        disk={"result": int(sum(size * scale ** _order(less.get(name, 0), size) for name, size in stored.items()))},
        work={"documents": len(train), "labels": len(corpus.labels)},
        seconds=seconds * scale,
        measured=True,
    )


def _trace(
    corpus: Corpus, train: Split, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter
) -> tuple[int, float, Mapping[str, int]]:
    """Bytes at most, seconds, and bytes of each tensor that is kept of one fit."""
    tracemalloc.start()
    started = perf_counter()
    try:
        fitted = fit_scorers(chosen, train, corpus.labels, corpus.analyser, reporter, seed=0)
        peak, seconds = tracemalloc.get_traced_memory()[1], perf_counter() - started
    finally:
        tracemalloc.stop()
    return peak, seconds, {} if fitted is None else _measure({one.name: one.scorer.tensors() for one in fitted.scorers.scorers})


def _measure(tensors: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Mapping[str, int]:
    """Bytes of each tensor of each scorer; one that several have counts once."""
    _, places = share_tensors(list(tensors.values()))
    owners = Counter(key for names in places for key in names.values())
    return {
        f"{scorer} {name}": tensor.nbytes // owners[names[name]] if name in names else tensor.nbytes
        for (scorer, own), names in zip(tensors.items(), places, strict=True)
        for name, tensor in own.items()
    }


def _order(half: int, whole: int) -> float:
    """The power of the number of documents with which a size grows, from that of half the documents: 0 to 2."""
    return min(2.0, max(0.0, log2(whole / half))) if half and whole else 1.0
