"""Sparse matrices in files, as scipy saves them."""

from __future__ import annotations

from pathlib import Path

from scipy.sparse import csr_array, load_npz

from plant_cli.api.errors import first_line


def load_sparse(path: Path) -> csr_array:
    """A matrix that `scipy.sparse.save_npz` wrote.

    Raises:
        ValueError: the file holds something else, or is damaged; with what its reader says.
    """
    try:
        matrix = csr_array(load_npz(path))
        matrix.check_format(full_check=True)  # columns beyond the last one would be read outside of the memory
        return matrix
    except Exception as error:  # a damaged archive is refused by zipfile, zlib, numpy or scipy, each in its own way
        raise ValueError(first_line(error)) from error
