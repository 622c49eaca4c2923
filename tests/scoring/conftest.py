"""An invented corpus of texts, with scorers that are fitted on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from drawn_counts import drawn  # noqa: F401  # a fixture
from scipy.sparse import csr_array

from plant_cli.api import Choice, Documents, ScorerSpec, SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.registry import installed
from plant_cli.scoring.scorer_fitting import FusionFit, fit_scorers

NAMES = ("words", "titles", "neighbours", "linear")
SIGNS = {
    "fever": "fever and chills",
    "arm": "fracture of the arm",
    "leg": "fracture of the leg",
    "cough": "cough at night",
}


def clinic(
    documents: int = 40, titles: Sequence[str | None] = tuple(SIGNS), same: bool = False
) -> tuple[Split, LabelTable]:
    """Documents that name their one or two labels."""
    chance = np.random.default_rng(0)
    gold = np.zeros((documents, 4), dtype=np.int64)
    for row in range(documents):
        gold[row, chance.permutation(4)[: 1 + row % 2]] = 1
    if same:
        gold[:] = 1
    signs = list(SIGNS.values())
    texts = [
        f"patient {row} has " + " and ".join(signs[label] for label in np.flatnonzero(own))
        for row, own in enumerate(gold)
    ]
    split = Split(
        name="train",
        doc_ids=[f"d{row}" for row in range(documents)],
        texts=texts,
        gold=csr_array(gold),
        unseen=csr_array((documents, 0), dtype=np.int64),
    )
    return split, LabelTable(
        ids=["a", "b", "c", "d"], titles=list(titles), train_counts=gold.sum(axis=0).tolist()
    )


def split_words(texts: Sequence[str]) -> Documents:
    return number_words(map(PLAIN.spell, texts))


def fit(
    names: Sequence[str] = NAMES,
    *more: ScorerSpec,
    reporter: Any = None,
    allow_missing: bool = False,
    **corpus: Any,
) -> FusionFit:
    split, labels = clinic(**corpus)
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in names]
    chosen += [(spec, spec.options()) for spec in more]
    found = fit_scorers(
        chosen,
        split,
        split_words(split.texts),
        labels,
        PLAIN,
        reporter or SilentReporter(),
        seed=0,
        allow_missing=allow_missing,
    )
    assert found is not None
    return found


def best(fitted: FusionFit, texts: Sequence[str]) -> list[int]:
    scored = fitted.scorers.score(split_words(texts), SilentReporter(), "texts")
    found: list[int] = scored.logits(np.arange(len(texts))).argmax(axis=1).tolist()
    return found
