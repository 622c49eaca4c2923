"""Checks of shortlists: distinct labels of the index, the same for a document whatever others
are asked for with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import ShortlistInput, ShortlistSpec, promises
from plant_cli.testing.checklist import check, default_options

SHORTLIST_WORDS = ("fever", "cough", "fracture", "arm", "leg", "pain")
SHORTLIST_TEXTS = (
    "fever fever cough",
    "fracture of the arm",
    "",
    "no word that is known",
    "leg pain arm",
)
SHORTLIST_LABELS = 9


def sample_shortlist_input() -> ShortlistInput:
    """An invented relevance table; the last label has no relevant word."""
    generator = np.random.default_rng(0)
    relevance = generator.random((SHORTLIST_LABELS, len(SHORTLIST_WORDS))) * (
        generator.random((SHORTLIST_LABELS, len(SHORTLIST_WORDS))) < 0.4
    )
    relevance[-1] = 0
    return ShortlistInput(
        words=SHORTLIST_WORDS,
        relevance=csr_array(relevance.astype(np.float32)),
        docs_with_word=np.array([9, 8, 5, 4, 3, 1]),
        train_counts=np.arange(SHORTLIST_LABELS, 0, -1),
        documents=20,
    )


@check(ShortlistSpec)
def labels_are_distinct_and_of_the_index(spec: ShortlistSpec) -> None:
    """For each document an int64 array of label indices, each once, no more than `most` says;
    also for a text without any known word.
    """
    lists = _propose(spec, range(len(SHORTLIST_TEXTS)))
    assert len(lists) == len(SHORTLIST_TEXTS), (
        f"{len(lists)} lists for {len(SHORTLIST_TEXTS)} documents"
    )
    for text, labels in zip(SHORTLIST_TEXTS, lists, strict=True):
        assert labels.dtype == np.int64, f"labels of {text!r} are {labels.dtype}"
        assert len(np.unique(labels)) == len(labels), f"a label is proposed twice for {text!r}"
        most = (
            SHORTLIST_LABELS
            if spec.most is None
            else spec.most(default_options(spec), SHORTLIST_LABELS)
        )
        assert len(labels) <= most, (
            f"{len(labels)} labels for {text!r}, and at most {most} were foretold"
        )
        assert not len(labels) or (labels.min() >= 0 and labels.max() < SHORTLIST_LABELS), (
            f"a label outside the index for {text!r}"
        )


@check(ShortlistSpec)
def documents_stand_alone(spec: ShortlistSpec) -> None:
    """What is proposed for a document does not depend on its neighbours."""
    together = _propose(spec, range(len(SHORTLIST_TEXTS)))
    for row in range(len(SHORTLIST_TEXTS)):
        (alone,) = _propose(spec, [row])
        assert sorted(alone) == sorted(together[row]), (
            f"other labels for {SHORTLIST_TEXTS[row]!r} alone than beside others"
        )


@check(ShortlistSpec)
def input_is_left_as_it_was(spec: ShortlistSpec) -> None:
    """The counts are read, not changed: others read them too."""
    counts, untouched = _counts(range(len(SHORTLIST_TEXTS))), _counts(range(len(SHORTLIST_TEXTS)))
    spec.build(default_options(spec), sample_shortlist_input()).propose(SHORTLIST_TEXTS, counts)
    assert bool((counts.toarray() == untouched.toarray()).all()), "the counts were changed"


def _propose(spec: ShortlistSpec, rows: range | list[int]) -> list[npt.NDArray[np.int64]]:
    proposals = spec.build(default_options(spec), sample_shortlist_input()).propose(
        [SHORTLIST_TEXTS[row] for row in rows], _counts(rows)
    )
    promises.PROPOSALS.require(proposals, who=f"shortlist '{spec.name}'", what="propose")
    return list(proposals)


def _counts(rows: range | list[int]) -> csr_array:
    return csr_array(
        np.array(
            [
                [float(SHORTLIST_TEXTS[row].split().count(word)) for word in SHORTLIST_WORDS]
                for row in rows
            ]
        )
    )
