"""The files of the folder `mig`: `mig.parquet` (kept words), `words.parquet` (vocabulary) and `labels.parquet`.

`mig.parquet` is sorted by label index, then rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.corpus import LabelIndex
from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.artefacts.edits import LabelEdits, read_edits
from plant_cli.artefacts.frames import write_frames
from plant_cli.artefacts.guard import require_same, stamp
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.base.files import replacing
from plant_cli.base.parquet import panics_as_errors
from plant_cli.relevance.counting import Margins
from plant_cli.relevance.kept import KeptWords
from plant_cli.relevance.table import RelevanceTable

MIG, WORDS, LABELS = "mig.parquet", "words.parquet", "labels.parquet"
DOCUMENTS = "documents"  # metadata: how many documents were counted
SCHEMA = {
    "label": pl.String(),
    "word": pl.String(),
    "value": pl.Float64(),
    "relevance": pl.Float32(),
    "docs_with_both": pl.Int32(),
    "docs_with_word": pl.Int32(),
    "rank": pl.Int32(),
}
Weighed = tuple[KeptWords, npt.NDArray[np.float64]]  # the words kept of consecutive labels, and their relevance


def write_relevance(folder: Path, blocks: Iterable[Weighed], margins: Margins, labels: LabelIndex) -> npt.NDArray[np.int64]:
    """Write the three files, each atomically, `mig.parquet` block by block.

    Args:
        folder: where to write.
        blocks: the kept words of consecutive labels and their relevance in [0, 1], all labels in order.
        margins: the vocabulary and its counts.
        labels: the label index that the blocks follow.

    Returns:
        How many words each label keeps [L].
    """
    metadata = {**stamp(labels=labels.hash), DOCUMENTS: str(margins.n_docs)}
    ids = pl.Series("label", labels.ids, dtype=pl.String)
    words = pl.Series("word", margins.words, dtype=pl.String)
    lengths: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]

    def frames() -> Iterator[pl.DataFrame]:
        start = 0
        for kept, relevance in blocks:
            lengths.append(np.diff(kept.offsets))
            yield _frame(kept, relevance, margins, ids[start : start + len(lengths[-1])], words)
            start += len(lengths[-1])

    write_frames(folder / MIG, frames(), SCHEMA, metadata)
    kept_words = np.concatenate(lengths)
    _write(pl.DataFrame({"word": words, "docs_with_word": margins.docs_with_word}), folder / WORDS, metadata)
    index = {
        "label": ids,
        "title": pl.Series("title", labels.titles, dtype=pl.String),
        "docs_with_label": pl.Series("docs", margins.docs_with_label, dtype=pl.Int64),
        "kept": kept_words,
    }
    _write(pl.DataFrame(index), folder / LABELS, metadata)
    return kept_words


def _frame(kept: KeptWords, relevance: npt.NDArray[np.float64], margins: Margins, ids: pl.Series, words: pl.Series) -> pl.DataFrame:
    """Rows of `mig.parquet` for the labels `ids`."""
    columns = {
        "label": ids.gather(kept.labels),
        "word": words.gather(kept.words),
        "value": pl.Series("value", kept.values).fill_nan(None),
        "relevance": relevance.astype(np.float32),
        "docs_with_both": pl.Series("both", np.maximum(kept.both, 0)).set(pl.Series(kept.both < 0), None),
        "docs_with_word": margins.docs_with_word[kept.words].astype(np.int32),
        "rank": kept.ranks.astype(np.int32),
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def load_relevance(folder: Path, label_hash: str) -> RelevanceTable:
    """The relevance of a run with the edits of `edits.yaml` applied.

    Args:
        folder: the run's folder `mig`.
        label_hash: hash of the ordered label ids of the corpus.

    Raises:
        ArtefactError: a file is missing, damaged, of another format or made for other labels.
    """
    _refuse_other_labels(folder / MIG, label_hash)
    require_recorded(folder, MIG, WORDS, LABELS)
    words = tuple(_read(folder / WORDS)["word"].to_list())
    index = _read(folder / LABELS)
    rows = _read(folder / MIG, columns=("word", "relevance"))
    if len(rows) != index["kept"].sum():
        raise _damaged(folder / MIG, f"{len(rows)} rows where {LABELS} counts {index['kept'].sum()}")
    label = np.repeat(np.arange(len(index)), index["kept"].to_numpy())
    word = rows["word"].cast(pl.Enum(words), strict=False).to_physical()
    if word.has_nulls():
        raise _damaged(folder / MIG, f"it has words that {WORDS} does not list")
    relevance = rows["relevance"].to_numpy().astype(np.float32)
    matrix = csr_array((relevance, (label, word.to_numpy().astype(np.int64))), shape=(len(index), len(words)))
    edits = read_edits(folder)
    if edits:
        matrix = apply_edits(matrix, edits, index["label"].to_list(), words)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return RelevanceTable(words=words, matrix=matrix)


def apply_edits(matrix: csr_array, edits: Mapping[str, LabelEdits], labels: list[str], words: tuple[str, ...]) -> csr_array:
    """A relevance matrix with the words denied or allowed by hand; edits of labels or words that are not there change nothing."""
    rows = {label: i for i, label in enumerate(labels)}
    columns = {word: i for i, word in enumerate(words)}
    wanted = {
        (rows[label], columns[word]): relevance
        for label, entry in edits.items()
        for word, relevance in [*((word, 0.0) for word in entry.deny), *entry.allow.items()]
        if label in rows and word in columns
    }
    positions = np.asarray(list(wanted), dtype=np.int64).reshape(-1, 2).T
    chosen = csr_array((np.asarray(list(wanted.values()), dtype=np.float32), (positions[0], positions[1])), shape=matrix.shape)
    touched = csr_array((np.ones(len(wanted), dtype=np.float32), (positions[0], positions[1])), shape=matrix.shape)
    return csr_array(matrix - matrix.multiply(touched) + chosen)


def read_label_index(folder: Path) -> pl.DataFrame:
    """Columns `label, title, docs_with_label, kept`, in the order of the label index."""
    require_recorded(folder, LABELS)
    return _read(folder / LABELS)


def read_label_words(folder: Path, label: str) -> pl.DataFrame:
    """Rows of `mig.parquet` for one label, by rank, without edits."""
    require_recorded(folder, MIG)
    return _read(folder / MIG, pl.col("label") == label)


def read_vocabulary(folder: Path) -> pl.DataFrame:
    """Columns `word, docs_with_word`."""
    require_recorded(folder, WORDS)
    return _read(folder / WORDS)


def count_documents(folder: Path) -> int | None:
    """How many documents the words were counted in; None if the file does not say so."""
    found = pl.read_parquet_metadata(folder / WORDS).get(DOCUMENTS)
    return None if found is None else int(found)


def _write(frame: pl.DataFrame, path: Path, metadata: dict[str, str]) -> None:
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata=metadata)


def _read(path: Path, rows: pl.Expr | None = None, columns: Sequence[str] = ("*",)) -> pl.DataFrame:
    try:
        with panics_as_errors():
            frame = pl.scan_parquet(path, glob=False)
            return (frame if rows is None else frame.filter(rows)).select(*columns).collect()
    except FileNotFoundError as error:
        raise ArtefactError(
            "there is no relevance in this run", where=str(path), expected="a file written by `plant mig`", todo="run `plant mig`"
        ) from error
    except pl.exceptions.PolarsError as error:
        raise _damaged(path, first_line(error)) from error


def _refuse_other_labels(path: Path, label_hash: str) -> None:
    """Refuse another format or another label order before anything is read."""
    _read(path, pl.lit(False))
    require_same(
        pl.read_parquet_metadata(path),
        path=path,
        what="the relevance",
        todo="run `plant mig --force` for this corpus, or choose another run with --run",
        labels=label_hash,
        against=path.parents[1] / "corpus" / LABELS,
    )


def _damaged(path: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"the relevance is damaged: {why}", where=str(path), expected="the file as `plant mig` wrote it", todo="run `plant mig --force`"
    )
