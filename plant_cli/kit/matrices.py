"""Sparse matrices in files, as scipy saves them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from scipy.sparse import csr_array, load_npz


def load_sparse(path: Path) -> csr_array:
    """A matrix that `scipy.sparse.save_npz` wrote.

    Raises:
        ValueError: the file holds something else, or is damaged; with what its reader says.
    """
    try:
        return cast(csr_array, csr_array(load_npz(path)))
    except Exception as error:  # a damaged archive is refused by zipfile, zlib, numpy or scipy, each in its own way
        raise ValueError(str(error).strip().split("\n")[0][:200] or type(error).__name__) from error
