"""Checks of scorers. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import Documents, FittedScorer, NoOptions, Reason, ScorerInput, ScorerSpec
from plant_cli.testing import scorer_checks as scorers
from plant_cli.testing.checklist import checks_of


class Lengths:
    """Scores the first labels by the length of a document; `fault` breaks one promise."""

    def __init__(self, labels: int, fault: str) -> None:
        self.labels, self.fault = labels, fault

    def score(self, documents: Documents) -> list[csr_array]:
        values = np.zeros((len(documents), self.labels), dtype=np.float32)
        values[:, 0] = np.diff(documents.ends)
        if self.fault == "neighbours":
            values[:, 1] = len(documents)
        if self.fault == "infinite":
            values[0, 0] = np.inf
        if self.fault == "long":
            values[:] = 1
        return [csr_array(values if self.fault != "shape" else values[:, :2])]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        words = {"foreign": ("elsewhere",), "batch": tuple(document.vocabulary)}.get(self.fault, ())
        return [Reason(text="its length", words=words)] * (1 if self.fault == "reasons" else len(labels))

    def tensors(self) -> Mapping[str, Any]:
        return {"labels": np.array([self.labels]), **({"words": np.array(["a"])} if self.fault == "text" else {})}


def _scorer(fault: str = "") -> ScorerSpec:
    def fit(options: NoOptions, given: ScorerInput) -> FittedScorer:
        left_out = [csr_array((1, 1), dtype=np.float32)] if fault == "left out" else None
        return FittedScorer(scorer=Lengths(given.gold.shape[1], fault), left_out=left_out)

    def load(options: NoOptions, tensors: Mapping[str, Any]) -> Lengths:
        return Lengths(int(tensors["labels"][0]), "neighbours" if fault == "load" else fault)

    memory = {"bytes": lambda options, documents: documents / 2, "negative": lambda options, documents: -documents}.get(fault)
    return ScorerSpec(name="s", summary="S.", fit=fit, load=load, memory=memory)


def test_scorers(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in checks_of(ScorerSpec):
        check(_scorer())
    stopped(scorers.scores_are_top_lists, _scorer("shape"), "not documents x labels")
    stopped(scorers.scores_are_top_lists, _scorer("infinite"), "not finite")
    stopped(scorers.lists_stay_short, _scorer("long"), "300 labels are listed")
    stopped(scorers.what_was_learned_is_arrays, _scorer("text"), "words holds <U1, not numbers")
    stopped(scorers.documents_stand_alone, _scorer("neighbours"), "beside others")
    stopped(scorers.what_was_learned_is_arrays, _scorer("load"), "after loading")
    stopped(scorers.left_out_scores_have_the_same_form, _scorer("left out"), "left-out scores are")
    stopped(scorers.reasons_are_one_for_each_label, _scorer("reasons"), "reasons for 2 labels")
    stopped(scorers.reasons_are_one_for_each_label, _scorer("foreign"), "words that the document does not have")
    stopped(scorers.reasons_stand_alone, _scorer("batch"), "other reasons")
    stopped(scorers.memory_is_foretold, _scorer("bytes"), "no whole number")
    stopped(scorers.memory_is_foretold, _scorer("negative"), "memory for 1 documents is -1")
