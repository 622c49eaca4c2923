"""What scorers without a network take: they are fitted on a sample of the training documents, and all grows with their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import Corpus, Options, Reporter, ScorerSpec, Split
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
    (half, _, _), (whole, seconds, stored) = (_trace(corpus, _take(train, part), chosen, reporter) for part in (rows[::2], rows))
    scale = len(train) / max(1, len(rows))
    grown = whole + max(0, whole - half) * 2 * (scale - 1)
    kernel = 3 * 4 * min(len(train), 16000) ** 2 if any(spec.name == "linear" for spec, _ in chosen) else 0
    return Estimate(
        memory={"process and texts": resident_memory(), "scorers": int(max(grown, kernel))},
        disk={"result": int(stored * scale)},
        work={"documents": len(train), "labels": len(corpus.labels)},
        seconds=seconds * scale,
        measured=True,
    )


def _trace(corpus: Corpus, train: Split, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter) -> tuple[int, float, int]:
    """Bytes at most, seconds and bytes of what is kept of one fit."""
    tracemalloc.start()
    started = perf_counter()
    try:
        fitted = fit_scorers(chosen, train, corpus.labels, corpus.analyser, reporter, seed=0)
        kept = 0 if fitted is None else sum(a.nbytes for one in fitted.scorers.scorers for a in one.scorer.tensors().values())
        return tracemalloc.get_traced_memory()[1], perf_counter() - started, kept
    finally:
        tracemalloc.stop()


def _take(train: Split, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Split:
    return Split(
        name="train",
        doc_ids=[train.doc_ids[row] for row in rows.tolist()],
        texts=[train.texts[row] for row in rows.tolist()],
        gold=csr_array(train.gold[rows]),
        unseen=csr_array((len(rows), 0), dtype=train.gold.dtype),
    )
