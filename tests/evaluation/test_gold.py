"""Gold beside the label index, and the hash by which two runs know that they mean the same."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

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
    assert renumbered.labels == ["d", "c", "b", "a", "x", "y"]
    assert renumbered.hash == gold.hash
    turned = replace(corpus, rows=dict(reversed(corpus.rows.items())))
    assert read_gold(turned, "test").hash == gold.hash
    other = replace(corpus, rows={**corpus.rows, "2": {"b", "d"}})
    assert read_gold(other, "test").hash != gold.hash
    renamed = replace(corpus, rows={("6" if d == "5" else d): labels for d, labels in corpus.rows.items()})
    assert read_gold(renamed, "test").hash != gold.hash


@dataclass(frozen=True)
class StreamedCorpus(TinyCorpus):
    """Gives its test documents one by one, each with the unseen labels of its own, and never all texts at once."""

    def split(self, name):
        pytest.fail("all texts are held")

    def stream(self, name):
        for doc_id, labels in self.rows.items():
            own = tuple(sorted(labels - set(self.labels.ids)))
            excluded = (
                Excluded(rows=np.array([0]), labels=["b"]) if doc_id in ("2", "4") else Excluded(rows=np.zeros(0, np.int64), labels=[])
            )
            yield replace(make_split(name, {doc_id: labels}, outside=own), excluded=excluded)


def test_texts_are_not_held_and_parts_make_the_same_gold(gold):
    streamed = StreamedCorpus(rows=dict(TinyCorpus().rows) | {"0": {"x", "w"}, "6": {"y", "a"}})
    found = read_gold(streamed, "test")
    assert found.labels == ["a", "b", "c", "d", "w", "x", "y"]
    assert found.excluded.tolist() == [[1, 1], [3, 1]]
    assert found.doc_ids == list(streamed.rows)
    named = [{found.labels[column] for column in np.flatnonzero(row)} for row in found.matrix.toarray()]
    assert named == list(streamed.rows.values())
    assert read_gold(StreamedCorpus(), "test").hash == gold.hash
