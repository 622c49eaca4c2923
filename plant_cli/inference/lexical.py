"""What a document's words alone say for each label: the cosine between its tf-idf vector and the label's relevance.

Nothing here is trained, so a label with one training document is scored as faithfully as one with a thousand. Stage 2 adds it to
the network's logits, with one weight chosen on validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.sparse import csr_array, diags_array

from plant_cli.api.errors import ArtefactError
from plant_cli.base.files import replacing
from plant_cli.corpus.words import count_words
from plant_cli.relevance.table import RelevanceTable

FORMAT = "1"
LEXICAL = "lexical.safetensors"


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The words' own vote.

    Args:
        words: the vocabulary.
        idf: ln((N + 1) / (documents with the word + 1)) over the N training documents [V].
        by_word: relevance of words for labels, csr [V, L]; columns of length 1 (or empty).
        silent: share of training documents of each label that no word tells of, 0 for the others [L]. Such a label gets what words say of
            a label on average: neither yes nor no where it is right, as much less as the centre where it is wrong.
        weight: logits that a cosine higher by 1 adds.
        centre: the cosine at which words say neither yes nor no; it moves all scores alike, so that they do not crowd at 1.
    """

    words: tuple[str, ...]
    idf: npt.NDArray[np.float32]
    by_word: csr_array
    silent: npt.NDArray[np.float32]
    weight: float = 1.0
    centre: float = 0.0

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Index of each word."""
        return {word: column for column, word in enumerate(self.words)}

    def vectors(self, texts: Sequence[str]) -> csr_array:
        """tf-idf of texts, csr [B, V] float32 of length 1: (1 + ln tf) · idf over the words of the vocabulary."""
        counts = count_words(texts, self.places)
        counts.data = ((1 + np.log(counts.data)) * self.idf[counts.indices]).astype(np.float32)
        return unit_rows(counts)


def make_lexicon(
    table: RelevanceTable, docs_with_word: npt.NDArray[np.int64], docs_with_label: npt.NDArray[np.int64], documents: int
) -> Lexicon:
    """The lexicon of a relevance table.

    Args:
        table: relevance, fitted on train.
        docs_with_word: training documents with each word [V].
        docs_with_label: training documents with each label [L].
        documents: training documents.
    """
    idf = np.log((documents + 1) / (docs_with_word + 1)).astype(np.float32)
    rows = unit_rows(table.matrix)
    silent = np.where(np.diff(rows.indptr), 0.0, docs_with_label / max(1, documents)).astype(np.float32)
    return Lexicon(words=table.words, idf=idf, by_word=csr_array(rows.T), silent=silent)


def unit_rows(matrix: csr_array) -> csr_array:
    """The matrix with rows scaled to length 1; empty rows stay empty."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    scaled = diags_array(1.0 / np.where(lengths > 0, lengths, 1.0), dtype=np.float64) @ matrix
    return csr_array(scaled, dtype=np.float32)


class LexicalScores:
    """Lexical scores of the documents of one split, in batches.

    Args:
        lexicon: what the words say; its weight and centre may be set later.
        texts: the split's texts.
    """

    def __init__(self, lexicon: Lexicon, texts: Sequence[str]) -> None:
        self.lexicon = lexicon
        self._documents = lexicon.vectors(texts)

    def scores(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """How far the cosines [B, L] of the given documents with every label lie above the centre; see `Lexicon.silent`."""
        found: npt.NDArray[np.float32] = (self._documents[rows] @ self.lexicon.by_word).toarray()
        found -= np.float32(self.lexicon.centre) * (1 - self.lexicon.silent)
        return found

    def mean_cosine(self, gold: csr_array, batch: int = 64) -> float:
        """The mean cosine of documents with those of their own labels (gold [N, L]) that words tell of, 0 if there are none."""
        total = 0.0
        for start in range(0, gold.shape[0], batch):
            rows = slice(start, start + batch)
            total += float(gold[rows].multiply(self._documents[rows] @ self.lexicon.by_word).sum())
        return total / max(1, int((self.lexicon.silent[gold.indices] == 0).sum()))


def save_lexicon(lexicon: Lexicon, folder: Path, label_hash: str) -> None:
    """Write the lexicon beside the model that it belongs to; atomically."""
    matrix = csr_array(lexicon.by_word.T)
    tensors = {
        "words": np.frombuffer("\n".join(lexicon.words).encode(), dtype=np.uint8),
        "idf": lexicon.idf,
        "indptr": matrix.indptr.astype(np.int64),
        "indices": matrix.indices.astype(np.int32),
        "data": matrix.data,
        "silent": lexicon.silent,
    }
    with replacing(folder / LEXICAL) as partial:
        save_file(
            tensors,
            str(partial),
            metadata={"format": FORMAT, "label_hash": label_hash, "weight": repr(lexicon.weight), "centre": repr(lexicon.centre)},
        )


def load_lexicon(folder: Path, label_hash: str) -> Lexicon | None:
    """The lexicon of a trained model, or None if it has none.

    Raises:
        ArtefactError: the file is damaged, of another format or made for another label order.
    """
    path = folder / LEXICAL
    if not path.exists():
        return None
    try:
        with safe_open(str(path), framework="np") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a dict)
    except (SafetensorError, OSError) as error:
        raise _refused(path, f"the lexicon cannot be read: {error}", "the file as `plant finetune` wrote it") from error
    if metadata.get("format") != FORMAT:
        raise _refused(path, "the lexicon has another format", f"format {FORMAT}, which this version of plant reads")
    if missing := {"words", "idf", "indptr", "indices", "data", "weight", "centre"} - tensors.keys() - metadata.keys():
        raise _refused(path, f"the lexicon lacks {', '.join(sorted(missing))}", "the file as `plant finetune` wrote it")
    if metadata.get("label_hash") != label_hash:
        raise _refused(path, "the lexicon was made for another label order", f"label hash {label_hash[:12]}, that of the run's corpus")
    vocabulary = tuple(tensors["words"].tobytes().decode().split("\n")) if len(tensors["words"]) else ()
    shape = (len(tensors["indptr"]) - 1, len(vocabulary))
    labels = csr_array((tensors["data"], tensors["indices"], tensors["indptr"]), shape=shape)
    return Lexicon(
        words=vocabulary,
        idf=tensors["idf"],
        by_word=csr_array(labels.T),
        silent=tensors.get("silent", np.zeros(shape[0], dtype=np.float32)),  # files of before 2026-11-22 have none
        weight=float(metadata["weight"]),
        centre=float(metadata["centre"]),
    )


def _refused(path: Path, what: str, expected: str) -> ArtefactError:
    return ArtefactError(what, where=str(path), expected=expected, todo="restore the file, or train again: plant finetune --force")
