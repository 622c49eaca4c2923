"""`lexical.safetensors`: the words of a trained model's lexical scores, their weights for each label, and how much the scores count."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.errors import ArtefactError
from plant_cli.artefacts.guard import require_same, stamp
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.base.tensors import read_tensors, write_tensors

LEXICAL = "lexical.safetensors"
TENSORS, NUMBERS = ("words", "idf", "indptr", "indices", "data", "silent"), ("weight", "centre")
AGAIN = "train again: plant finetune --force"


@dataclass(frozen=True, kw_only=True)
class StoredLexicon:
    """What the file holds.

    Args:
        words: the vocabulary, V words.
        idf: inverse document frequency of each word [V].
        by_label: weights of words for labels, csr [L, V] fp32.
        silent: share of training documents of each label that has no word, 0 for the others [L].
        weight: logits that a lexical score higher by 1 adds.
        centre: the lexical score that adds nothing.
    """

    words: tuple[str, ...]
    idf: npt.NDArray[np.float32]
    by_label: csr_array
    silent: npt.NDArray[np.float32]
    weight: float
    centre: float


def write_lexicon(folder: Path, lexicon: StoredLexicon, label_hash: str) -> None:
    """Write the file into the folder of the model that it belongs to, atomically; `label_hash` is that of the ordered label ids."""
    matrix = lexicon.by_label
    tensors = {
        "words": np.frombuffer("\n".join(lexicon.words).encode(), dtype=np.uint8),
        "idf": lexicon.idf,
        "indptr": matrix.indptr.astype(np.int64),
        "indices": matrix.indices.astype(np.int32),
        "data": matrix.data,
        "silent": lexicon.silent,
    }
    numbers = {"weight": repr(lexicon.weight), "centre": repr(lexicon.centre)}
    write_tensors(folder / LEXICAL, tensors, {**stamp(labels=label_hash), **numbers}, framework="np")


def read_lexicon(folder: Path, label_hash: str) -> StoredLexicon | None:
    """The file in the folder of a trained model, or None if there is none.

    Raises:
        ArtefactError: the file is damaged, of another format or of another label order than `label_hash`.
    """
    path = folder / LEXICAL
    if not path.exists():
        return None
    tensors, metadata = read_tensors(path, "the lexical scores", f"restore the file, or {AGAIN}", framework="np")
    require_same(metadata, path=path, what="the file of lexical scores", todo=AGAIN, labels=label_hash)
    if missing := {*TENSORS, *NUMBERS} - tensors.keys() - metadata.keys():
        raise ArtefactError(
            f"the file of lexical scores lacks {', '.join(sorted(missing))}",
            where=str(path),
            expected="the file as `plant finetune` wrote it",
            todo=f"restore the file, or {AGAIN}",
        )
    require_recorded(folder, LEXICAL)
    words = tuple(tensors["words"].tobytes().decode().split("\n")) if len(tensors["words"]) else ()
    shape = (len(tensors["indptr"]) - 1, len(words))
    return StoredLexicon(
        words=words,
        idf=tensors["idf"],
        by_label=csr_array((tensors["data"], tensors["indices"], tensors["indptr"]), shape=shape),
        silent=tensors["silent"],
        weight=float(metadata["weight"]),
        centre=float(metadata["centre"]),
    )
