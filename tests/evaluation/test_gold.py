"""Gold beside the label index, and the hash by which two runs know that they mean the same."""

from dataclasses import replace

from plant_cli.evaluation.gold import read_gold


def test_labels_unseen_in_train_stand_after_those_of_train(gold):
    assert gold.labels == ["a", "b", "c", "d", "x", "y"]
    assert gold.train_counts.tolist() == [1, 5, 6, 700, 0, 0]
    assert gold.matrix.toarray().tolist()[2] == [0, 0, 1, 0, 1, 0]
    assert gold.sizes.tolist() == [2, 1, 2, 1, 0]
    assert gold.titles == ["Alpha", None, "Gamma", "Delta", None, None]
    assert gold.train_documents == 10


def test_the_hash_knows_gold_and_not_the_order_of_documents(corpus, gold):
    turned = replace(corpus, rows=dict(reversed(corpus.rows.items())))
    assert read_gold(turned, "test").hash == gold.hash
    other = replace(corpus, rows={**corpus.rows, "2": {"b", "d"}})
    assert read_gold(other, "test").hash != gold.hash
    renamed = replace(corpus, rows={("6" if d == "5" else d): labels for d, labels in corpus.rows.items()})
    assert read_gold(renamed, "test").hash != gold.hash
