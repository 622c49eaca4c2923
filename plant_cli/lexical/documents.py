"""Documents as numbers: words numbered in the order in which they come, counted by a vocabulary, cut into passages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.scorers import Documents
from plant_cli.lexical.grams import choose_columns, count_grams

Ints = npt.NDArray[np.int64]


def number_words(texts: Iterable[Sequence[str]]) -> Documents:
    """Documents of words.

    Args:
        texts: the words of each document in order [B].
    """
    places: dict[str, int] = {}
    parts, ends = [], [0]
    for words in texts:
        parts.append(np.fromiter((places.setdefault(word, len(places)) for word in words), dtype=np.int32, count=len(words)))
        ends.append(ends[-1] + len(words))
    numbers = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
    return Documents(vocabulary=tuple(places), numbers=numbers, ends=np.array(ends, dtype=np.int64))


def count_known(documents: Documents, places: Mapping[str, int]) -> csr_array:
    """How often each word of another vocabulary is in each document, csr [B, V] float64, columns ascending.

    Args:
        documents: any number B.
        places: column of each word, 0 ≤ column < V; words without one are left out.
    """
    columns = np.fromiter((places.get(word, -1) for word in documents.vocabulary), dtype=np.int64, count=len(documents.vocabulary))
    return choose_columns(documents.counts, columns, len(places))


def cut_vocabulary(documents: Documents, places: Mapping[str, int]) -> csr_array:
    """How often each character n-gram is in each word of the documents' vocabulary, csr [W, G] float64.

    Documents of one vocabulary (passages of others, some of others) share it: their counts times it are counts of n-grams.

    Args:
        documents: whose vocabulary is cut.
        places: column of each n-gram, 0 ≤ column < G; others are left out.
    """
    return count_grams(documents.vocabulary, places).astype(np.float64)


def count_pieces(documents: Documents, pieces: csr_array) -> csr_array:
    """How often each character n-gram is in each document, csr [B, G] float64, columns ascending.

    Args:
        documents: any number B.
        pieces: n-grams of their vocabulary, csr [W, G], see `cut_vocabulary`.
    """
    found = csr_array(documents.counts @ pieces)
    found.sort_indices()
    return found


def cut_documents(documents: Documents, length: int) -> tuple[Documents, Ints]:
    """Overlapping passages of documents, and the document of each [S]; see `titles.cut_passages`.

    Args:
        documents: any number B.
        length: words of a passage.
    """
    step, sizes = max(1, length // 2), np.diff(documents.ends)
    passages = np.maximum(1, -(-(sizes - length + step) // step))
    owners = np.repeat(np.arange(len(documents)), passages)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(passages) - passages, passages)
    starts = documents.ends[:-1][owners] + number * step
    sizes = np.minimum(starts + length, documents.ends[1:][owners]) - starts
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(ends[-1]) - np.repeat(ends[:-1] - starts, sizes)
    return Documents(vocabulary=documents.vocabulary, numbers=documents.numbers[places], ends=ends), owners


def cut_leads(documents: Documents, length: int) -> Documents:
    """The same documents, the first words of each alone: where texts begin with a title, it says what they are about.

    Args:
        documents: any number B.
        length: words kept of each.
    """
    sizes = np.minimum(np.diff(documents.ends), length)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(ends[-1]) - np.repeat(ends[:-1] - documents.ends[:-1], sizes)
    return Documents(vocabulary=documents.vocabulary, numbers=documents.numbers[places], ends=ends)


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
    parts = (tensors[f"{name}.data"], tensors[f"{name}.indices"], tensors[f"{name}.indptr"])
    matrix = csr_array(parts, shape=tuple(tensors[f"{name}.shape"].tolist()))
    matrix.check_format(full_check=True)  # columns beyond the last one would be read outside of the memory
    return matrix
