"""Lists of strings and sparse matrices as the arrays that a scorer's file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.scorers import short_ends


def pack_strings(strings: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Strings as the bytes of a list in JSON."""
    return np.frombuffer(json.dumps(list(strings), ensure_ascii=False).encode(), dtype=np.uint8)


def unpack_strings(packed: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    """The strings that `pack_strings` packed."""
    return tuple(json.loads(packed.tobytes()))


def pack_matrix(name: str, matrix: csr_array) -> dict[str, npt.NDArray[Any]]:
    """A csr matrix as arrays, by names that begin with its own."""
    return {
        f"{name}.data": matrix.data.astype(np.float32),
        f"{name}.indices": matrix.indices.astype(np.int32),
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
    }


def unpack_matrix(name: str, tensors: Mapping[str, npt.NDArray[Any]]) -> csr_array:
    """The matrix that `pack_matrix` packed, float32; `ValueError` if it is damaged."""
    data, indices, ends = (tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = csr_array((data, indices, short_ends(ends)), shape=tuple(tensors[f"{name}.shape"].tolist()))
    matrix.check_format(full_check=True)  # columns beyond the last one would be read outside of the memory
    return matrix
