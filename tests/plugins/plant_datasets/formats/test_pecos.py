"""The format `pecos`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plant_datasets.formats import pecos
from round_trips import ANY_LABEL, Promise, one_line, round_trip
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError, DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(pecos, ANY_LABEL, Promise(one_line, titles=True))


def test_a_download_with_titles(tmp_path: Path) -> None:
    (tmp_path / "X.trn.txt").write_text("one\ntwo\n")
    (tmp_path / "output-items.txt").write_text("desk\nlamp\nchair\n")
    save_npz(tmp_path / "Y.trn.npz", csr_array(np.array([[1, 0, 1], [0, 0, 0]], dtype=np.float32)))
    dataset = pecos.load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect().rows() == [("train-1", "one", ["0", "2"]), ("train-2", "two", [])]
    assert dataset.labels is not None
    assert dataset.labels.collect()["title"].to_list() == ["desk", "lamp", "chair"]


@pytest.mark.parametrize(("texts", "titles", "what"), [("one\n", "a\nb\nc\n", "1 texts"), ("one\ntwo\n", "a\n", "1 names")])
def test_files_that_do_not_belong_together(tmp_path: Path, texts: str, titles: str, what: str) -> None:
    (tmp_path / "X.trn.txt").write_text(texts)
    (tmp_path / "output-items.txt").write_text(titles)
    save_npz(tmp_path / "Y.trn.npz", csr_array(np.ones((2, 3), dtype=np.float32)))
    with pytest.raises(DataError, match=what):
        pecos.load(DataSection(path=str(tmp_path)), NoOptions())


def test_a_matrix_with_objects_is_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "Y.trn.npz", data=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        pecos.read_matrix(tmp_path / "Y.trn.npz")
