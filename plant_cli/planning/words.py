"""What the stage `mig` takes: it is run on a sample of the training documents, and all grows with their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from plant_cli.api import LabelIndex, Split
from plant_cli.artefacts.relevance import MIG, write_relevance
from plant_cli.base.memory import peak_memory_gb, resident_memory
from plant_cli.measuring.clock import Clock
from plant_cli.planning.estimates import Estimate
from plant_cli.relevance.counting import SparseCounting
from plant_cli.relevance.engine import Selection, keep_words
from plant_cli.relevance.signal import Signal
from plant_cli.relevance.terms import Terms

SAMPLE = 2000
"""Documents that are counted; half of them are counted, too, to see what grows."""


def plan_words(
    train: Split, labels: LabelIndex, count: Callable[[Sequence[str]], Terms], signal: Signal, selection: Selection, *, occurrences: bool
) -> Estimate:
    """Plan a stage `mig` whose corpus this process has just read.

    Args:
        train: the training documents.
        labels: the label index.
        count: counts the words of texts.
        signal: what is computed from the counts.
        selection: what is kept, and in which blocks of labels.
        occurrences: whether the signal needs to know how often words occur.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLE])
    read, resident = int(peak_memory_gb() * 1e9), resident_memory()

    def run(rows: np.ndarray[tuple[int], np.dtype[np.int64]], folder: str) -> int:
        counting = SparseCounting(count([train.texts[row] for row in rows.tolist()]), train.gold[rows], with_occurrences=occurrences)
        blocks = keep_words(counting, signal, selection)
        return int(write_relevance(Path(folder), ((kept, np.maximum(kept.values, 0.0)) for kept in blocks), counting.margins, labels).sum())

    def trace(rows: np.ndarray[tuple[int], np.dtype[np.int64]], folder: str) -> int:
        tracemalloc.start()
        try:
            run(rows, folder)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with TemporaryDirectory() as folder:
        clock = Clock(torch.device("cpu"))
        kept = run(rows, folder)
        seconds, size = clock.lap(), (Path(folder) / MIG).stat().st_size
        half, whole = trace(rows[::2], folder), trace(rows, folder)
    more = len(train) - len(rows)
    counting = whole + max(0, whole - half) * more * 2 // len(rows)
    scale = len(train) / len(rows)
    rows_at_most = min(kept * scale, selection.k * len(labels))
    return Estimate(
        memory={"process and texts": resident, "counting": max(counting, read - resident)},
        disk={"result": int(size * rows_at_most / max(1, kept))},
        work={"documents": len(train), "labels": len(labels), "kept words": rows_at_most},
        seconds=seconds * scale,
        measured=True,
    )
