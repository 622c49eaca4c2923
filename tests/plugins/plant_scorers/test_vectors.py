"""Vectors of the plugin against plain ones, shared and loaded once; reasons that name words."""

from __future__ import annotations

import numpy as np
import pytest
from plant_scorers.lexical import cut_word
from plant_scorers.vectors import Train, Vectoriser, name_largest
from scipy.sparse import csr_array

from plant_cli.testing.scorer_checks import SCORER_TEXTS, TRAIN, read_sample


@pytest.mark.parametrize("pieces", [False, True])
def test_vectors_have_length_one_and_are_the_same_later(pieces: bool) -> None:
    fitted = Train.fit(read_sample(TRAIN), pieces=pieces)
    vectoriser, train = fitted.vectoriser, fitted.vectors
    np.testing.assert_allclose(np.sqrt((train.toarray() ** 2).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(
        vectoriser.transform(read_sample(TRAIN)).toarray(), train.toarray(), atol=1e-6
    )
    again = Vectoriser.load(vectoriser.tensors())
    np.testing.assert_array_equal(
        again.transform(read_sample(SCORER_TEXTS)).toarray(),
        vectoriser.transform(read_sample(SCORER_TEXTS)).toarray(),
    )


def test_vectors_are_made_once_for_all_that_ask_for_them() -> None:
    documents, texts = read_sample(TRAIN), read_sample(SCORER_TEXTS)
    first, again = (Train.fit(documents, pieces=True) for _ in range(2))
    assert first is again
    assert first.vectoriser.transform(texts) is first.vectoriser.transform(texts)
    other = Train.fit(documents, pieces=False)
    assert other is not first
    loaded = Train.load(first.tensors())
    assert Train.load(first.tensors()) is loaded
    assert Train.load(other.tensors()) is not loaded
    rarer = {name: 2 * array if name == "idf" else array for name, array in first.tensors().items()}
    assert Train.load(rarer) is not loaded
    assert Train.load(rarer).vectoriser.words is loaded.vectoriser.words
    np.testing.assert_array_equal(
        loaded.similarity.train.toarray(), first.similarity.train.toarray()
    )


@pytest.mark.parametrize("pieces", [False, True])
def test_counts_say_as_much_as_weights(pieces: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_scorers.vectors.CELLS_WEIGHED", 50)
    texts = [
        "",
        "a a a",
        "often " * 301,
        *(f"{one} everywhere" for one in TRAIN),
    ]  # a word of every document has weight 0
    fitted = Train.fit(read_sample([f"everywhere {text}" for text in texts]), pieces=pieces)
    tensors = fitted.tensors()
    assert (tensors["train.counts"].dtype, tensors["train.counts"].max()) == (np.uint16, 301)
    loaded = Train.load(tensors)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(loaded.vectors, name), getattr(fitted.vectors, name))
    for name, tensor in loaded.tensors().items():
        np.testing.assert_array_equal(tensor, tensors[name])


@pytest.mark.parametrize(
    "change", [{"counts": -1}, {"terms": -1}, {"sizes": -1}, {"repeated": -1}], ids=str
)
def test_counts_that_do_not_fit_are_refused(change: dict[str, int]) -> None:
    tensors = Train.fit(read_sample(["fever fever cough", "ache"]), pieces=False).tensors()
    with pytest.raises((ValueError, IndexError)):
        Train.load(
            {
                **tensors,
                **{f"train.{name}": tensors[f"train.{name}"][:end] for name, end in change.items()},
            }
        )


@pytest.mark.parametrize("pieces", [False, True])
def test_what_terms_add_is_shared_by_the_words_that_have_them(pieces: bool) -> None:
    vectoriser = Train.fit(read_sample(["fever fevers ab", "cough"]), pieces=pieces).vectoriser
    document = read_sample(["other", "fever fever feverish ab"]).take(np.array([1]))
    vector = vectoriser.transform(document)
    weights = np.random.default_rng(0).random((2, vector.shape[1]))
    products = vector.toarray() * weights
    found = vectoriser.credit_words(document, csr_array(products)).toarray()
    expected = np.zeros((2, len(document.vocabulary)))
    for label in range(2):
        for number, word in enumerate(document.vocabulary):
            times = {"other": 0, "fever": 2, "feverish": 1, "ab": 1}[word]
            if word in vectoriser.words:
                expected[label, number] += products[label, vectoriser.words[word]]
            for piece, place in vectoriser.pieces.items():
                counts = {other: cut_word(other).count(piece) for other in document.vocabulary}
                of_all = 2 * counts["fever"] + counts["feverish"] + counts["ab"]
                if times * counts[word]:
                    expected[label, number] += (
                        products[label, len(vectoriser.words) + place]
                        * times
                        * counts[word]
                        / of_all
                    )
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), products.sum(axis=1), atol=1e-6)


WORDS = ["acute", "bronchitis", "cough", "fever", "the"]


def test_the_words_that_add_most_are_named_largest_first() -> None:
    added = csr_array(np.array([[0.1, 0.4, 0.0, 0.3, 0.2], [0.0, 0.0, 0.0, 0.0, 0.5]]))
    assert [reason.words for reason in name_largest(added, WORDS)] == [
        ("bronchitis", "fever", "the", "acute"),
        ("the",),
    ]


def test_words_that_add_the_same_keep_their_order() -> None:
    [found] = name_largest(csr_array(np.full((1, 12), 0.2)), list("abcdefghijkl"))
    assert found.words == tuple("abcdefghij")


def test_words_that_add_nothing_or_less_are_not_named() -> None:
    stored = csr_array(
        (np.array([0.0, -0.4, 0.2]), np.array([0, 1, 2]), np.array([0, 3, 3])), shape=(2, 5)
    )
    assert [reason.words for reason in name_largest(stored, WORDS)] == [("cough",), ()]
