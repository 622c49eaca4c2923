"""A plugin that does right, but for one function at a time, which `MISBEHAVE` names with what
it does instead.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api import (
    Dataset,
    DatasetSpec,
    FittedScorer,
    LossSpec,
    MetricSpec,
    MetricValue,
    Reason,
    Result,
    ScorerSpec,
    SignalSpec,
    StageSpec,
    hookimpl,
)

MISBEHAVE: dict[str, Any] = {}
"""By function: `exit`, `raise`, `print`, `write` and other ways in `act`, or `("give", value)`."""


def act(name: str, right: Any, *given: Any) -> Any:
    """What a function gives: the right value, unless it is to misbehave. `given` are arrays
    that it may write into.
    """
    how = MISBEHAVE.get(name)
    if how == "exit":
        sys.exit(0)
    if how == "raise":
        raise KeyError("strange")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "leave":
        os._exit(3)
    if how == "close":
        sys.stderr.close()
        os.close(2)
        raise KeyError("strange")
    if how == "descriptor":
        os.write(1, b"noise of a plugin\n")
    if how == "print":
        print("noise of a plugin")
    if how == "write":
        for array in given:
            array[:] = 0
    return how[1] if isinstance(how, tuple) else right


class Counter:
    """Scores labels by how often they occur in train."""

    def __init__(self, counts: Any) -> None:
        self.counts = counts.astype(np.float32)

    def score(self, documents: Any) -> Any:
        right = csr_array(np.tile(self.counts, (len(documents), 1)))
        return act("score", [right], documents.numbers, documents.ends, documents.counts.data)

    def explain(self, document: Any, labels: Any) -> Any:
        return act("explain", [Reason(text="often") for _ in labels], document.numbers)

    def tensors(self) -> Any:
        return act("tensors", {"counts": self.counts})


def fit(options: Any, given: Any) -> Any:
    arrays = (
        given.gold.data,
        given.gold.indices,
        given.documents.numbers,
        given.names.numbers,
        given.label_of,
        given.rows,
    )
    return act("fit", FittedScorer(scorer=Counter(given.gold.sum(axis=0))), *arrays)


def load(options: Any, tensors: Any) -> Any:
    return act("load", Counter(tensors["counts"]), tensors["counts"])


def compute(given: Any, options: Any) -> Any:
    hits = np.ones((len(given.top), 2))
    value = MetricValue(
        name="strangeness",
        contributions=hits,
        combine=lambda sums: act("combine", sums[:, 0] / sums[:, 1], sums),
    )
    return act("compute", [value], given.top, given.scores, given.gold.data, given.train_counts)


def score_pairs(counts: Any, options: Any) -> Any:
    right = np.asarray(counts.docs_with_both, dtype=np.float64)
    return act("signal", right, counts.docs_with_word, counts.docs_with_both)


class Loss:
    """The squared scores of the chosen pairs."""

    hard_negatives, random_negatives = 3, 1

    def __call__(self, logits: Any, targets: Any, selected: Any) -> Any:
        loss = (logits * selected).square().mean()
        if MISBEHAVE.get("loss") == "steep":  # only its gradient is no number
            loss = loss + 0.0 * (logits - logits.detach()).abs().sqrt().sum()
        return act("loss", loss)

    def select(self, logits: Any, targets: Any, generator: Any = None) -> Any:
        return act("select", logits == logits)


def recognise(data: Any) -> Any:
    return act("recognise", None)


def load_documents(data: Any, options: Any) -> Any:
    rows = {
        "doc_id": ["a", "b"],
        "text": ["fever and cough", "fever and pain"],
        "labels": [["F"], ["A"]],
    }
    return act("dataset", Dataset(splits={"train": pl.LazyFrame(rows)}))


def run(context: Any, options: Any) -> Any:
    return act("run", Result(data={"answer": 1}))


@hookimpl
def plant_register_scorers() -> list[ScorerSpec]:
    return [ScorerSpec(name="strange", summary="Counts.", fit=fit, load=load)]


@hookimpl
def plant_register_losses() -> list[LossSpec]:
    return [LossSpec(name="strange", summary="Squares.", stage="label", build=lambda _: Loss())]


@hookimpl
def plant_register_metrics() -> list[MetricSpec]:
    return [MetricSpec(name="strange", summary="Is 1.", compute=compute)]


@hookimpl
def plant_register_signals() -> list[SignalSpec]:
    return [SignalSpec(name="strange", summary="Counts.", score=score_pairs)]


@hookimpl
def plant_register_datasets() -> list[DatasetSpec]:
    return [
        DatasetSpec(
            name="strange", summary="Two documents.", load=load_documents, recognise=recognise
        )
    ]


@hookimpl
def plant_register_stages() -> list[StageSpec]:
    return [StageSpec(name="strange", summary="Answers.", run=run, writes=False, needs_run=False)]
