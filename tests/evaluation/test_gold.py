"""Gold labels beside the label index, and what is above them."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from plant_cli.api import DataError, SilentReporter
from plant_cli.api.corpus import Excluded
from plant_cli.data.labels import LabelTable
from plant_cli.evaluation.gold import build_hierarchy, find_hierarchy, read_gold, read_hierarchy
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


def test_the_hash_knows_gold_and_neither_the_order_of_documents_nor_how_labels_are_numbered(
    corpus, gold
):
    renumbered = read_gold(RenumberedCorpus(labels=Labels(ids=("d", "c", "b", "a"))), "test")
    assert renumbered.labels == ["d", "c", "b", "a", "y", "x"]
    assert renumbered.hash == gold.hash
    turned = replace(corpus, rows=dict(reversed(corpus.rows.items())))
    assert read_gold(turned, "test").hash == gold.hash
    other = replace(corpus, rows={**corpus.rows, "2": {"b", "d"}})
    assert read_gold(other, "test").hash != gold.hash
    renamed = replace(
        corpus, rows={("6" if d == "5" else d): labels for d, labels in corpus.rows.items()}
    )
    assert read_gold(renamed, "test").hash != gold.hash


def test_pairs_to_leave_out_have_the_columns_of_gold(gold):
    @dataclass(frozen=True)
    class Excluding(TinyCorpus):
        def gold_labels(self, name):
            return replace(
                self.split(name),
                excluded=Excluded(rows=np.array([1, 3, 3]), labels=["b", "x", "nowhere"]),
            )

    assert read_gold(Excluding(), "test").excluded.tolist() == [[1, 1], [3, 4]]
    assert gold.excluded.tolist() == []


@pytest.fixture
def table(tmp_path):
    def write(rows, name="parents.csv", columns=("label", "parent")):
        frame = pl.DataFrame(rows, schema=list(columns), orient="row")
        path = tmp_path / name
        frame.write_parquet(path) if name.endswith("parquet") else frame.write_csv(path)
        return path

    return write


def above(hierarchy, labels):
    return {
        label: {hierarchy.nodes[i] for i in np.flatnonzero(row)}
        for label, row in zip(labels, hierarchy.above.toarray(), strict=True)
    }


def test_everything_above_a_label_and_its_depth(table):
    path = table([("E11.9", "E11"), ("E11", "E"), ("E10", "E"), ("E11.9", "diabetes")])
    found = read_hierarchy(path, ["E11.9", "E10", "J20"])
    assert above(found, ["E11.9", "E10", "J20"]) == {
        "E11.9": {"E11.9", "E11", "E", "diabetes"},
        "E10": {"E10", "E"},
        "J20": {"J20"},
    }
    depths = dict(zip(found.nodes, found.depths.tolist(), strict=True))
    assert depths == {
        "E": 1,
        "diabetes": 1,
        "J20": 1,
        "E10": 2,
        "E11": 2,
        "E11.9": 2,
    }  # the shortest way counts


def test_parents_in_lists(table):
    as_list = read_hierarchy(
        table([("a", ["p", "q"]), ("p", [])], "x.parquet", ("label", "parents")), ["a"]
    )
    as_text = read_hierarchy(
        table([("a", " p q "), ("p", "")], columns=("label", "parents")), ["a"]
    )
    assert above(as_list, ["a"]) == above(as_text, ["a"]) == {"a": {"a", "p", "q"}}


def test_a_long_chain_needs_no_deep_recursion(table):
    found = read_hierarchy(table([(f"n{i}", f"n{i + 1}") for i in range(3000)]), ["n0"])
    assert found.depths.max() == 3001


def known(parents, **further):
    return LabelTable(
        ids=["a", "b"],
        titles=[None] * 2,
        train_counts=[1, 1],
        parents=parents,
        further_parents=further,
    )


def test_parents_of_the_vocabulary_stand_in_for_a_table(table):
    heard = SilentReporter()
    found = find_hierarchy(None, known([["p"], []]), ["a", "b", "unseen"], heard)
    assert (found.nodes, found.above.toarray().tolist()) == (
        ["a", "b", "p", "unseen"],
        [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
    )
    given = find_hierarchy(str(table([("b", "q")])), known([["p"], []]), ["a", "b"], heard)
    assert "q" in given.nodes
    assert "p" not in given.nodes
    assert find_hierarchy(None, known([[], []]), ["a", "b"], heard) is None
    assert heard.warnings == []


def test_the_vocabulary_is_climbed_beyond_the_label_index_and_from_unseen_labels():
    labels = ["a", "b", "unseen"]
    found = find_hierarchy(
        None, known([["p"], []], p=["top"], unseen=["top"]), labels, SilentReporter()
    )
    assert above(found, labels) == {"a": {"a", "p", "top"}, "b": {"b"}, "unseen": {"unseen", "top"}}
    assert dict(zip(found.nodes, found.depths.tolist(), strict=True)) == {
        "a": 3,
        "b": 1,
        "p": 2,
        "top": 1,
        "unseen": 2,
    }
    alone = find_hierarchy(None, known([[], []], unseen=["top"]), labels, SilentReporter())
    assert above(alone, labels)["unseen"] == {"unseen", "top"}


def test_a_vocabulary_that_goes_in_circles_is_a_warning_and_a_table_an_error():
    heard = SilentReporter()
    assert find_hierarchy(None, known([["b"], ["a"]]), ["a", "b"], heard) is None
    assert "is above itself" in heard.warnings[0]
    with pytest.raises(DataError, match="is above itself"):
        build_hierarchy({"a": ["b"], "b": ["a"]}, ["a", "b"], "here")
