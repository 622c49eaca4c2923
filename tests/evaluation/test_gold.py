"""Gold beside the label index, and the hash by which two runs know that they mean the same."""

from dataclasses import dataclass, replace

import numpy as np

from plant_cli.api.corpus import Excluded
from plant_cli.evaluation.gold import read_gold
from tests.evaluation.conftest import Labels, TinyCorpus, make_split


def test_labels_unseen_in_train_stand_after_those_of_train(gold):
    assert gold.labels == ["a", "b", "c", "d", "x", "y"]
    assert gold.train_counts.tolist() == [1, 5, 6, 700, 0, 0]
    assert gold.matrix.toarray().tolist()[2] == [0, 0, 1, 0, 1, 0]
    assert gold.sizes.tolist() == [2, 1, 2, 1, 0]
    assert gold.titles == ["Alpha", None, "Gamma", "Delta", None, None]
    assert gold.train_documents == 10


@dataclass(frozen=True)
class RenumberedCorpus(TinyCorpus):
    """The same documents, whose labels are numbered as they are given."""

    def split(self, name):
        return make_split(name, self.rows, ids=self.labels.ids, outside=("y", "x"))


def test_the_hash_knows_gold_and_neither_the_order_of_documents_nor_how_labels_are_numbered(corpus, gold):
    renumbered = read_gold(RenumberedCorpus(labels=Labels(ids=("d", "c", "b", "a"))), "test")
    assert renumbered.labels == ["d", "c", "b", "a", "y", "x"]
    assert renumbered.hash == gold.hash
    turned = replace(corpus, rows=dict(reversed(corpus.rows.items())))
    assert read_gold(turned, "test").hash == gold.hash
    other = replace(corpus, rows={**corpus.rows, "2": {"b", "d"}})
    assert read_gold(other, "test").hash != gold.hash
    renamed = replace(corpus, rows={("6" if d == "5" else d): labels for d, labels in corpus.rows.items()})
    assert read_gold(renamed, "test").hash != gold.hash


def test_pairs_to_leave_out_have_the_columns_of_gold(gold):
    @dataclass(frozen=True)
    class Excluding(TinyCorpus):
        def gold_labels(self, name):
            return replace(self.split(name), excluded=Excluded(rows=np.array([1, 3, 3]), labels=["b", "x", "nowhere"]))

    assert read_gold(Excluding(), "test").excluded.tolist() == [[1, 1], [3, 4]]
    assert gold.excluded.tolist() == []
