"""The scorer `dense` with a stand-in for the encoder, against a plain form in double precision;
and the packaged encoder, which knows other languages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch
from plant_backbones import MULTILINGUAL_FOLDERS, packaged
from plant_dense import DenseOptions, label_vectors
from plant_dense.label_vectors import MeanStates, choose_examples, fit, read_beginnings
from plant_formats.synthetic_clinic import generate
from scipy.sparse import csr_array

from plant_cli.api import ComponentError, Reason, TokenBatch
from plant_cli.testing.scorer_checks import TITLES, TRAIN, read_sample, sample_scorer_input

SIZE = 8


def vector_of(word: str) -> npt.NDArray[np.float64]:
    """The state that stands for a word, anywhere."""
    return np.random.default_rng(sum(map(ord, word))).standard_normal(SIZE) + 1


def mean_of(text: str, words: int | None = None) -> npt.NDArray[np.float64]:
    """The plain form: the mean of the words' states."""
    return np.mean([vector_of(word) for word in text.split()[:words]], axis=0)


class Stand:
    """A backbone whose tokens are words."""

    hidden_size = SIZE
    read: list[int]
    texts: set[str]  # that were read

    def __init__(self) -> None:
        self.read, self.texts = [], set()

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        self.texts |= {*texts}
        self.words = [text.split() for text in texts]
        spans = [
            np.array([match.span() for match in re.finditer(r"\S+", text)], dtype=np.int32)
            for text in texts
        ]
        ids = [np.arange(len(words), dtype=np.int32) for words in self.words]
        return TokenBatch(ids=ids, spans=spans, dropped=[0] * len(texts))

    def encode(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, self.words))
        states, mask = torch.full((len(self.words), longest, SIZE), 7.0), []
        for row, words in enumerate(self.words):
            for place, word in enumerate(words):
                states[row, place] = torch.tensor(vector_of(word))
            mask.append([place < len(words) for place in range(longest)])
        self.read.append(len(self.words))
        return states, torch.tensor(mask).reshape(len(self.words), longest)


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """The stand-in, which every scorer of the test reads with."""
    found = Stand()
    monkeypatch.setattr(MeanStates, "_backbone", found)
    return found


def cosine(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def left(vectors: Sequence[npt.NDArray[np.float64]]) -> list[npt.NDArray[np.float64]]:
    """What is left of vectors without their mean, of length 1."""
    centred = np.array(vectors) - np.mean(vectors, axis=0)
    return list(centred / np.linalg.norm(centred, axis=1, keepdims=True))


def label_vector(label: int, documents: Sequence[int], name: bool = True) -> Any:
    """The plain form: the name, ten times, and the documents."""
    titled = [one for one, title in enumerate(TITLES) if title]
    names = dict(zip(titled, left([mean_of(TITLES[one]) for one in titled]), strict=True))
    texts = left([mean_of(text, 12) for text in TRAIN])
    return 10 * names.get(label, np.zeros(SIZE)) * name + sum(texts[row] for row in documents)


def having(label: int) -> list[int]:
    gold = sample_scorer_input().gold.toarray()
    return np.flatnonzero(gold[:, label]).tolist()


@pytest.mark.parametrize("examples", [0, 1])
def test_scores_are_cosines_with_the_name_and_the_documents_of_a_label(
    stand: Stand, examples: int
) -> None:
    scorer = fit(DenseOptions(words=12, examples=examples), sample_scorer_input()).scorer
    texts = ["fever of the patient here", "arm arm leg"]
    [found] = scorer.score(read_sample(texts))
    mean = np.mean([mean_of(text) for text in TRAIN], axis=0)
    for row, text in enumerate(texts):
        for label, title in enumerate(TITLES):
            vector = label_vector(label, having(label) if examples else [])
            expected = cosine(mean_of(text) - mean, vector) if title or examples else 0.0
            assert found.toarray()[row, label] == pytest.approx(expected, abs=2e-3)


def test_a_document_that_is_left_out_is_in_no_vector_of_its_labels(stand: Stand) -> None:
    given = sample_scorer_input()
    fitted = fit(DenseOptions(), given)
    assert fitted.left_out is not None
    texts = left([mean_of(text, 12) for text in TRAIN])
    for place, row in enumerate(given.rows.tolist()):
        for label in range(len(TITLES)):
            others = [other for other in having(label) if other != row]
            expected = cosine(texts[row], label_vector(label, others))
            assert fitted.left_out[0].toarray()[place, label] == pytest.approx(expected, abs=2e-3)


def test_a_label_without_a_name_whose_only_document_is_left_out_comes_last(stand: Stand) -> None:
    gold = np.zeros((12, 5), dtype=np.int64)
    gold[0, 2], gold[1:, 0] = 1, 1
    given = replace(sample_scorer_input(), gold=csr_array(gold))
    fitted = fit(DenseOptions(), given)
    assert fitted.left_out is not None
    assert fitted.left_out[0].toarray()[0, 2] == -1
    assert fitted.scorer.score(read_sample([TRAIN[0]]))[0].toarray()[0].argmax() == 2


def test_documents_are_read_until_each_label_has_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_vectors, "DOCUMENTS_OF_MEAN", 2)
    given = sample_scorer_input()
    assert choose_examples(given, 0).tolist() == given.rows.tolist()
    for examples in (1, 3):
        rows = choose_examples(given, examples)
        assert rows[:4].tolist() == given.rows.tolist()
        assert len(set(rows.tolist())) == len(rows) < 12
        assert (given.gold[rows].toarray().sum(axis=0) >= examples).all()
    assert len(choose_examples(given, 99)) == 12


def test_the_best_of_several_names_counts_and_is_the_reason(stand: Stand) -> None:
    given = sample_scorer_input()
    names, label_of = read_sample(["fever", "pyrexia", "leg"]), np.array([0, 0, 2])
    scorer = fit(DenseOptions(), replace(given, names=names, label_of=label_of)).scorer
    document = read_sample(["pyrexia"])
    [found] = scorer.score(document)
    scores = found.toarray()[0]
    assert [reason.text for reason in scorer.explain(document, [0, 1])] == [
        f"near “pyrexia” ({scores[0]:.2f})",
        f"near its documents ({scores[1]:.2f})",
    ]
    alone = fit(DenseOptions(examples=0), replace(given, names=names, label_of=label_of)).scorer
    assert alone.explain(document, [1]) == [Reason()]


def test_an_empty_document_has_no_labels(stand: Stand) -> None:
    scorer = fit(DenseOptions(), sample_scorer_input()).scorer
    assert [np.diff(view.indptr).tolist() for view in scorer.score(read_sample(["", "fever"]))] == [
        [0, 5]
    ]
    assert [view.shape for view in scorer.score(read_sample([]))] == [(0, len(TITLES))]
    nothing = replace(
        sample_scorer_input(), names=read_sample([]), label_of=np.zeros(0, dtype=np.int64)
    )
    [found] = fit(DenseOptions(examples=0), nothing).scorer.score(read_sample(["fever"]))
    assert found.nnz == 0


def test_the_first_line_is_read_as_it_is_written_and_more_if_it_is_very_short() -> None:
    texts = {
        "Über das Recht  der Bäume\nEine Einführung": "Über das Recht der Bäume",
        "Über das Recht der Bäume, erklärt": "Über das Recht der Bäume,",
        "\n FINAL REPORT\nInfluenza, und mehr": "FINAL REPORT Influenza, und mehr",
        "Recht": "Recht",
        "": "",
    }
    assert read_beginnings(read_sample([*texts]), 5) == [*texts.values()]


def test_a_run_reads_texts_as_they_are_written(stand: Stand, clinic: Any) -> None:
    splits = generate(documents=120, labels=12, seed=3).splits
    train, validation = (
        {" ".join(text.split("\n")[0].split()) for text in splits[name].collect()["text"]}
        for name in ("train", "validation")
    )
    clinic("finetune", flags={"finetune": {"scorers": ["words", "dense"], "network": False}})
    assert train | validation <= stand.texts
    for stage, options, read in [
        ("suggest", {"text": "Severe FEVER, and chills"}, {"Severe FEVER, and chills"}),
        ("predict", {"split": "validation"}, validation),
    ]:
        stand.texts.clear()
        clinic(stage, flags={stage: options})
        assert stand.texts == read


def test_texts_are_read_in_batches_and_a_document_once(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_vectors, "READ_TOGETHER", 8)
    scorer = fit(DenseOptions(), sample_scorer_input()).scorer
    assert stand.read == [8, 4, 4]  # twelve documents, four names
    document = read_sample(["fever"])
    scorer.score(document)
    scorer.explain(document, [0])
    assert stand.read == [8, 4, 4, 1]


@pytest.mark.parametrize(
    ("backbone", "texts"),
    [
        ("minilm", ["a patient with pneumonia", "what companies pay the state", "a broken thigh"]),
        (
            "multilingual",
            ["die lungenentzündung", "steuerrecht für unternehmen", "ein gebrochenes bein"],
        ),
    ],
)
def test_names_are_found_for_texts_in_other_words(
    backbone: Literal["minilm", "multilingual"], texts: list[str]
) -> None:
    if backbone == "multilingual" and not all(map(find_spec, MULTILINGUAL_FOLDERS)):
        pytest.skip("the extra `multilingual` is not installed")
    titles = ["lung infection", "tax law", "bridge construction", "fracture of the leg"]
    given = sample_scorer_input()
    given = replace(
        given, documents=read_sample(texts * 4), names=read_sample(titles), label_of=np.arange(4)
    )
    options = DenseOptions(backbone=backbone, examples=0)
    [found] = fit(options, given).scorer.score(read_sample(texts))
    assert found.toarray()[:, :4].argmax(axis=1).tolist() == [0, 1, 3]


def test_a_missing_encoder_is_told_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packaged, "distribution", find)
    with pytest.raises(ComponentError) as caught:
        fit(DenseOptions(), sample_scorer_input())
    assert caught.value.where == "scorer 'dense'"
    assert "pip install 'plant-cli[multilingual]'" in caught.value.todo
