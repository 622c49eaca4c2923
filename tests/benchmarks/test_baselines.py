"""Our metric code gives the published row of nearest neighbours, digit for digit (the other tools draw at random)."""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

CORPORA = Path(os.environ.get("PLANT_CORPORA", Path(__file__).parents[2] / ".." / "shared" / "data"))
PUBLISHED = {
    "codiesp": (46.1, 34.6, 30.8, 34.8, 16.8, 15.5, 19.5, 41.4, 0.0, 0.5, 0.3, 11.3, 32.4, 79.1),
    "tibkat": (31.9, 19.4, 14.3, 31.6, 20.7, 26.6, 35.0, 47.4, 12.1, 31.9, 24.4, 48.4, 62.4, 89.2),
}


def load(monkeypatch: pytest.MonkeyPatch):
    spec = importlib.util.spec_from_file_location("baselines", Path(__file__).with_name("baselines.py"))
    baselines = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "baselines", baselines)  # its dataclasses look their module up
    spec.loader.exec_module(baselines)
    return baselines


def test_one_machine_for_each_label_finds_the_label_of_its_word(monkeypatch):
    baselines = load(monkeypatch)
    words = csr_array(np.repeat(np.eye(3), 4, axis=0))
    found = baselines.separate_labels(baselines.Features(train=words, test=csr_array(np.eye(3)), gold=words))
    assert [row[0][0] for row in found] == [0, 1, 2]
    assert all(row[0][1] > 0 > row[1][1] for row in found)


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.exists(), reason="the shared corpora are not here")
@pytest.mark.parametrize("name", PUBLISHED)
def test_nearest_neighbours_as_published(name, tmp_path, monkeypatch):
    baselines = load(monkeypatch)
    corpus = baselines.open_corpus(CORPORA / name, tmp_path)
    test = corpus.split("test")
    scored = baselines.vote_of_neighbours(baselines.extract(corpus.split("train"), test))
    baselines.write(tmp_path / "knn.parquet", scored, test.doc_ids, corpus.labels.ids)
    measured = baselines.measure(tmp_path / "knn.parquet", baselines.read_gold(corpus, "test"))
    assert tuple(round(value, 1) for value in measured.values()) == PUBLISHED[name]
