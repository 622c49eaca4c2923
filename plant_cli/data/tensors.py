"""Named tensors as files, by torch or by NumPy, and strings and sparse matrices as such
tensors; imports no torch before it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError
from plant_cli.api.errors import first_line
from plant_cli.api.scorers import short_ends
from plant_cli.data.files import replacing

# the one key of the header's metadata: safetensors writes several keys in another order in every
# process
KEY = "plant"

LIBRARIES = {"pt": "safetensors.torch", "np": "safetensors.numpy"}
Framework = Literal["pt", "np"]


def write_tensors(
    path: Path,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    framework: Framework = "pt",
) -> None:
    """Write named tensors, atomically; `metadata` are texts in the header."""
    if (
        framework == "np"
    ):  # safetensors would write the bytes of an array as they lie, and forget how that was
        tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    header = {KEY: json.dumps(dict(metadata), sort_keys=True)} if metadata else None
    with replacing(path) as temporary:
        import_module(LIBRARIES[framework]).save_file(
            dict(tensors), str(temporary), metadata=header
        )


def read_tensors(
    path: Path, what: str, todo: str, framework: Framework = "pt"
) -> tuple[dict[str, Any], dict[str, str]]:
    """The named tensors of a file that `write_tensors` wrote, and its metadata.

    Args:
        what: its content, for the message of the `ArtefactError`: "the weights".
        todo: what to do if it is missing or damaged.
    """
    try:
        with safe_open(str(path), framework=framework) as stored:
            metadata = json.loads((stored.metadata() or {}).get(KEY, "{}"))
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a dict)
        if unknown := next((name for name, tensor in tensors.items() if _holds_nan(tensor)), None):
            raise ValueError(f"'{unknown}' has values that are not numbers")
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtefactError(
            f"{what} cannot be read: {first_line(error)}",
            where=str(path),
            expected="the file as it was written",
            todo=todo,
        ) from error
    return tensors, {str(key): str(value) for key, value in metadata.items()}


def _holds_nan(tensor: Any) -> bool:
    """Whether an array or a tensor does; only a number that is none differs from itself."""
    return bool((tensor != tensor).any())


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
    matrix = csr_array(
        (data, indices, short_ends(ends)), shape=tuple(tensors[f"{name}.shape"].tolist())
    )
    matrix.check_format(
        full_check=True
    )  # columns beyond the last one would be read outside of the memory
    return matrix
