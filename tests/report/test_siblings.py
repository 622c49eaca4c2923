"""Siblings that are taken for one another, counted by hand."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import MetricInput
from plant_cli.evaluation.gold import read_gold
from plant_cli.report.compared import lay_beside
from plant_cli.report.labels import SHOWN, Confusion, find_confusions, write_confusions


@dataclass(frozen=True)
class Index:
    parents: tuple = (("P",), ("P",), ("Q",), ())

    def __len__(self):
        return len(self.parents)


# documents 0, 1: label 0 is missed and 1 assigned; document 2: 2 is missed and 3 assigned; document 3: the unseen label 4 is missed
DATA = MetricInput(
    top=np.array([[1, 0], [1, 2], [3, -1], [1, -1]]),
    scores=np.array([[0.9, 0.1], [0.9, 0.8], [0.7, -np.inf], [0.9, -np.inf]]),
    gold=csr_array(np.array([[1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1]])),
    train_counts=np.array([3, 3, 2, 2, 0]),
    train_documents=10,
)


def test_parents_make_siblings():
    assert find_confusions(DATA, Index(), None) == [Confusion(missed=0, assigned=1, documents=2, relation="both under P")]


def test_shared_training_documents_make_siblings():
    train = csr_array(np.array([[0, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]]))
    found = find_confusions(DATA, Index(parents=((), (), (), ())), train)
    assert [(c.missed, c.assigned, c.documents, c.relation) for c in found] == [
        (0, 1, 2, "both in 1 training document"),
        (2, 3, 1, "both in 2 training documents"),
    ]


def test_nothing_wrong_gives_nothing():
    right = replace(DATA, top=np.array([[0], [0], [2], [4]]), scores=np.ones((4, 1)))
    assert find_confusions(right, Index(), None) == []


def test_bars_are_the_counted_documents(systems, families, open_corpus, silent):
    beside = lay_beside(systems, families, open_corpus, silent)
    gold = read_gold(open_corpus(), "test")
    found = {"baseline": [Confusion(missed=0, assigned=1, documents=7, relation="both under P")]}
    section = write_confusions(systems, found, gold, "")
    assert [table.rows[0] for table in section.tables] == [["label 0", "label 1", 7, "both under P"]]
    assert (section.figures[0].series[0].y, list(section.figures[0].x.ticks)) == ([7], ["label 0 → label 1"])
    alike = {"baseline": [Confusion(missed=0, assigned=1, documents=1, relation="both under P")]}
    assert list(write_confusions(systems, alike, gold, "").figures) == []
    assert section.missing[0].startswith("No label of 'finetune' was taken for a sibling")
    train = beside.readable.train.gold
    assert len(find_confusions(beside.data["baseline"], open_corpus().labels, train)) <= SHOWN
    assert write_confusions(systems, {}, None, "no corpus.").missing == ["Siblings are left out: no corpus."]
