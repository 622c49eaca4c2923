"""Sparse matrices in files: damaged ones are refused, and nothing is read beyond them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from plant_formats.prediction_matrices import load_sparse
from scipy.sparse import csr_array, save_npz

MATRIX = csr_array(np.array([[0.0, 1.0], [2.0, 0.0]]))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_npz(tmp_path / "m.npz", MATRIX)
    return tmp_path / "m.npz"


def test_what_scipy_saved_is_read(saved: Path) -> None:
    assert (load_sparse(saved).toarray() == MATRIX.toarray()).all()


def test_every_flipped_byte_gives_a_matrix_or_a_reason(saved: Path) -> None:
    """Whichever part of the archive is hit: its list, a header, compressed numbers."""
    content, refused = saved.read_bytes(), 0
    for place in range(0, len(content), 7):
        spoilt = bytearray(content)
        spoilt[place] ^= 0x10
        saved.write_bytes(spoilt)
        with suppress(ValueError):
            load_sparse(saved)
            continue
        refused += 1
    assert refused > 20


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", b"\x93NUMPY"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        load_sparse(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 2], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 9, 2])]
)
def test_places_outside_of_the_matrix_are_refused(
    tmp_path: Path, indices: list[int], indptr: list[int]
) -> None:
    """Compiled code would read beyond its memory there."""
    parts = {"data": np.ones(2), "indices": np.array(indices), "indptr": np.array(indptr)}
    np.savez(tmp_path / "m.npz", format=np.array(b"csr"), shape=np.array([2, 2]), **parts)
    with pytest.raises(ValueError, match="ind"):
        load_sparse(tmp_path / "m.npz")
