"""Our metric code gives the published rows of neighbours and title match, digit for digit;
validation alone chooses weights of fusions.
"""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from tests.benchmarks import baselines
from tests.benchmarks.fusions import FUSIONS

CORPORA = Path(
    os.environ.get("PLANT_CORPORA", Path(__file__).parents[2] / ".." / "shared" / "data")
)
PUBLISHED = {
    "codiesp": (46.1, 34.6, 30.8, 34.8, 16.8, 15.5, 19.5, 41.4, 0.0, 0.5, 0.3, 11.3, 32.4, 79.1),
    "tibkat": (31.9, 19.4, 14.3, 31.6, 20.7, 26.6, 35.0, 47.4, 12.1, 31.9, 24.4, 48.4, 62.4, 89.2),
}
TITLES = {
    "codiesp": (21.3, 17.8, 15.7, 17.4, 19.1, 16.7, 10.1, 20.4, 17.1, 19.0, 18.3, 12.2, 7.3, 1.3),
    "tibkat": (30.1, 17.7, 12.6, 30.4, 28.7, 29.1, 32.9, 42.2, 35.9, 31.3, 33.0, 35.3, 36.0, 50.8),
}
WORDS = (
    "fever",
    "cough",
    "fracture",
    "rash",
    "nausea",
    "anaemia",
    "migraine",
    "asthma",
    "gout",
    "burn",
    "wound",
    "ulcer",
    "polyp",
    "cyst",
)
WEIGHTS = ("scale", "weights", "precision")


def test_one_machine_for_each_label_finds_the_label_of_its_word():
    words = csr_array(np.repeat(np.eye(3), 4, axis=0))
    found = baselines.separate_labels(
        baselines.Features(train=words, test=csr_array(np.eye(3)), gold=words)
    )
    assert [row[0][0] for row in found] == [0, 1, 2]
    assert all(row[0][1] > 0 > row[1][1] for row in found)


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.exists(), reason="the shared corpora are not here")
@pytest.mark.parametrize("name", PUBLISHED)
def test_nearest_neighbours_as_published(name, tmp_path):
    corpus = baselines.open_corpus(CORPORA / name, tmp_path)
    test = corpus.split("test")
    scored = baselines.vote_of_neighbours(baselines.extract(corpus.split("train"), test))
    baselines.write(tmp_path / "knn.parquet", scored, test.doc_ids, corpus.labels.ids)
    measured = baselines.measure(tmp_path / "knn.parquet", baselines.read_gold(corpus, "test"))
    assert tuple(round(value, 1) for value in measured.values()) == PUBLISHED[name]


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.exists(), reason="the shared corpora are not here")
@pytest.mark.parametrize("name", TITLES)
def test_title_match_as_published(name, tmp_path):
    corpus = baselines.open_corpus(CORPORA / name, tmp_path)
    test = corpus.split("test")
    scored = baselines.match_titles(corpus.split("train").texts, corpus.labels.titles, test.texts)
    baselines.write(tmp_path / "title.parquet", scored, test.doc_ids, corpus.labels.ids)
    measured = baselines.measure(tmp_path / "title.parquet", baselines.read_gold(corpus, "test"))
    assert tuple(round(value, 1) for value in measured.values()) == TITLES[name]


def write_split(folder: Path, split: str, size: int, *, named: bool) -> None:
    """Documents of five words; their labels are these words, or, if not `named`, each word's
    successor.
    """
    draw = np.random.default_rng(len(split))
    chosen = [draw.choice(len(WORDS), size=5, replace=False) for _ in range(size)]
    texts = [
        f"{split} {number}: seen today for {' and '.join(WORDS[word] for word in words)}"
        for number, words in enumerate(chosen)
    ]
    gold = [sorted(WORDS[(word + (not named)) % len(WORDS)] for word in words) for words in chosen]
    ids = [f"{split}-{number}" for number in range(size)]
    pl.DataFrame({"doc_id": ids, "text": texts, "labels": gold}).write_parquet(
        folder / f"{split}.parquet"
    )


def run_on(folder: Path, *, validation: bool, test: bool) -> dict[str, dict]:
    """Figures of a made-up corpus whose titles name the labels of these splits, or mislead;
    those of train mislead.
    """
    folder.mkdir()
    for split, size, named in (
        ("train", 60, False),
        ("validation", 20, validation),
        ("test", 12, test),
    ):
        write_split(folder, split, size, named=named)
    pl.DataFrame({"label": WORDS, "title": WORDS}).write_parquet(folder / "labels.parquet")
    given = [
        "--corpus",
        str(folder),
        "--json",
        str(folder / "found.json"),
        "--predictions",
        str(folder / "lists"),
    ]
    baselines.main(given)
    return json.loads((folder / "found.json").read_text("utf-8"))


@pytest.fixture
def trees_without_chance(monkeypatch):
    """Neighbours in the place of Omikuji, which draws at random."""
    neighbours = baselines.vote_of_neighbours
    monkeypatch.setattr(
        baselines,
        "TOOLS",
        {**baselines.TOOLS, "omikuji-parabel": neighbours, "omikuji-bonsai": neighbours},
    )
    monkeypatch.setattr(baselines, "NEIGHBOURS", 5)


@pytest.mark.usefixtures("trees_without_chance")
def test_weights_of_fusions_follow_validation_and_never_test(tmp_path):
    usual = run_on(tmp_path / "usual", validation=False, test=False)
    other = run_on(tmp_path / "other", validation=False, test=True)
    assert (
        usual["title"]["P@5"] < 50 < other["title"]["P@5"]
    )  # on this test the titles would deserve all the weight
    assert [[usual[name][key] for key in WEIGHTS] for name in FUSIONS] == [
        [other[name][key] for key in WEIGHTS] for name in FUSIONS
    ]
    turned = run_on(tmp_path / "turned", validation=True, test=False)
    for name in FUSIONS:
        assert turned[name]["weights"][-1] > 3 > usual[name]["weights"][-1], name


@pytest.mark.usefixtures("trees_without_chance")
def test_every_tool_and_every_fusion_keeps_its_lists_of_test(tmp_path):
    found = run_on(tmp_path / "corpus", validation=False, test=False)
    assert set(found) == {*baselines.TOOLS, "title", *FUSIONS}
    for name in found:
        lists = pl.read_parquet(tmp_path / "corpus" / "lists" / f"{name}.parquet")
        assert lists["doc_id"].to_list() == [f"test-{number}" for number in range(12)], name
        assert all(row == sorted(row, reverse=True) for row in lists["scores"].to_list()), name
    for name in FUSIONS:
        assert found[name]["precision"] > 0.75, name
        assert found[name]["P@5"] > 2 * found["title"]["P@5"], name
