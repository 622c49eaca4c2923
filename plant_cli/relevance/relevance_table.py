"""The relevance table of a run: words of each label, their forms, and edits by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import yaml
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, Corpus, LabelIndex, first_line
from plant_cli.data.corpus_files import LABELS_FILE
from plant_cli.data.files import replacing
from plant_cli.data.parquet import panics_as_errors, write_frames, write_parquet
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.relevance.cooccurrence import Margins
from plant_cli.relevance.engine import KeptWords


@dataclass(frozen=True, kw_only=True)
class RelevanceTable:
    """Which words indicate which label."""

    words: tuple[
        str, ...
    ]  # the vocabulary, by falling document frequency, then alphabetically; lower-cased
    # csr [L, V] float32 in [0, 1]; columns of each row ascend; words without relevance are not
    # stored
    matrix: csr_array


FORMS_FILE = "forms.parquet"
Pair = tuple[str, str]
"""A word and a form of it."""


def write_forms(folder: Path, pairs: Iterable[Pair]) -> None:
    """Write words and forms in the order in which forms were first met; no file if there are
    none.
    """
    frame = pl.DataFrame(list(pairs), schema={"word": pl.String, "form": pl.String}, orient="row")
    if len(frame):
        write_parquet(frame, folder / FORMS_FILE)


def read_pairs(folder: Path) -> list[Pair]:
    """What `write_forms` wrote; empty if there is no file; `ArtefactError` if it cannot be read."""
    path = folder / FORMS_FILE
    if not path.exists():
        return []
    require_recorded(folder, FORMS_FILE)
    try:
        with panics_as_errors():
            return pl.read_parquet(path.absolute(), glob=False).select("word", "form").rows()
    except (OSError, pl.exceptions.PolarsError) as error:
        expected, todo = "the file as `plant mig` wrote it", "run `plant mig --force`"
        raise ArtefactError(
            "the forms of words cannot be read", where=str(path), expected=expected, todo=todo
        ) from error


def read_forms(folder: Path) -> Mapping[str, list[str]]:
    """The forms of each word that has others than itself."""
    forms: dict[str, list[str]] = {}
    for word, form in read_pairs(folder):
        forms.setdefault(word, []).append(form)
    return {word: found for word, found in forms.items() if found != [word]}


EDITS_FILE = "edits.yaml"


@dataclass(frozen=True, kw_only=True)
class LabelEdits:
    """The edits of one label."""

    deny: frozenset[str] = frozenset()  # words whose relevance is taken away
    allow: Mapping[str, float] = field(
        default_factory=dict
    )  # words with the relevance in [0, 1] that they get instead of their own

    def then(self, later: LabelEdits) -> LabelEdits:
        """These edits, and later ones that win where both name a word."""
        return LabelEdits(
            deny=(self.deny - later.allow.keys()) | later.deny,
            allow={w: r for w, r in self.allow.items() if w not in later.deny} | dict(later.allow),
        )


def read_edits(folder: Path) -> dict[str, LabelEdits]:
    """The edits in a folder by label; none where there is no file."""
    path = folder / EDITS_FILE
    if not path.exists():
        return {}
    try:
        # The base loader keeps every scalar a string: a word `no` and a label `1e4` stay what they
        # are.
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader) or {}
        if not isinstance(raw, dict):
            raise ValueError("they are no mapping of labels")
        return {label: _label_edits(entry) for label, entry in raw.items()}
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = str(error) if type(error) is ValueError else "they are no YAML in UTF-8"
        raise ArtefactError(
            f"the edits cannot be read: {why}",
            where=str(path) if mark is None else f"{path}, line {mark.line + 1}",
            expected="for each label `deny: [word, …]` and `allow: {word: relevance from 0 to 1}`",
            todo="correct the file, or start again with `plant mig edit --clear`",
        ) from error


def write_edits(folder: Path, edits: Mapping[str, LabelEdits]) -> None:
    """Write the edits of all labels, atomically; a label without any is left out, and without
    any label the file goes.
    """
    entries = {
        label: _plain(entry) for label, entry in sorted(edits.items()) if entry.deny or entry.allow
    }
    path = folder / EDITS_FILE
    if not entries:
        path.unlink(missing_ok=True)
        return
    text = yaml.safe_dump(entries, allow_unicode=True, sort_keys=False)
    if "\x85" in text:  # a line end in YAML, read back as a space unless it is escaped
        text = yaml.safe_dump(entries, sort_keys=False)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def set_aside(folder: Path) -> Path | None:
    """Forget all edits; returns the file that keeps the former ones, None where there were none.

    It stands beside the folder: in it, it would count as something that later stages were made
    from.
    """
    path, kept = folder / EDITS_FILE, folder.with_name(f"{folder.name}.{EDITS_FILE}.bak")
    if not path.exists():
        return None
    path.replace(kept)
    return kept


def _label_edits(entry: object) -> LabelEdits:
    if not isinstance(entry, dict) or (unknown := entry.keys() - {"deny", "allow"}):
        raise ValueError(
            f"unexpected {', '.join(map(str, unknown))}"
            if isinstance(entry, dict)
            else "a label has neither deny nor allow"
        )
    deny, allow = entry.get("deny", []), entry.get("allow", {})
    if not isinstance(deny, list) or not all(isinstance(word, str) for word in deny):
        raise ValueError("deny must be a list of words")
    try:
        relevance = {word: float(value) for word, value in allow.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError("allow must give each word a number from 0 to 1") from None
    outside = {word: value for word, value in relevance.items() if not 0.0 <= value <= 1.0}
    if outside:
        raise ValueError(f"relevance outside 0 to 1: {outside}")
    return LabelEdits(deny=frozenset(deny), allow=relevance)


def _plain(entry: LabelEdits) -> dict[str, Any]:
    lists: dict[str, Any] = {"deny": sorted(entry.deny), "allow": dict(sorted(entry.allow.items()))}
    return {key: value for key, value in lists.items() if value}


RELEVANCE_FILE, WORDS_FILE, RELEVANCE_LABELS_FILE = "mig.parquet", "words.parquet", "labels.parquet"
DOCUMENTS_KEY = "documents"  # metadata: how many documents were counted
RELEVANCE_SCHEMA = {
    "label": pl.String(),
    "word": pl.String(),
    "value": pl.Float64(),
    "relevance": pl.Float32(),
    "docs_with_both": pl.Int32(),
    "docs_with_word": pl.Int32(),
    "rank": pl.Int32(),
}
Weighed = tuple[
    KeptWords, npt.NDArray[np.float64]
]  # the words kept of consecutive labels, and their relevance


def write_relevance(
    folder: Path, blocks: Iterable[Weighed], margins: Margins, labels: LabelIndex
) -> npt.NDArray[np.int64]:
    """Write the three files from blocks of consecutive labels, each atomically; returns how
    many words each label keeps [L].
    """
    metadata = {**stamp(labels=labels.hash), DOCUMENTS_KEY: str(margins.n_docs)}
    ids = pl.Series("label", labels.ids, dtype=pl.String)
    words = pl.Series("word", margins.words, dtype=pl.String)
    lengths: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]

    def frames() -> Iterator[pl.DataFrame]:
        start = 0
        for kept, relevance in blocks:
            lengths.append(np.diff(kept.offsets))
            yield _frame(kept, relevance, margins, ids[start : start + len(lengths[-1])], words)
            start += len(lengths[-1])

    write_frames(folder / RELEVANCE_FILE, frames(), RELEVANCE_SCHEMA, metadata)
    kept_words = np.concatenate(lengths)
    write_parquet(
        pl.DataFrame({"word": words, "docs_with_word": margins.docs_with_word}),
        folder / WORDS_FILE,
        metadata,
    )
    index = {
        "label": ids,
        "title": pl.Series("title", labels.titles, dtype=pl.String),
        "docs_with_label": pl.Series("docs", margins.docs_with_label, dtype=pl.Int64),
        "kept": kept_words,
    }
    write_parquet(pl.DataFrame(index), folder / RELEVANCE_LABELS_FILE, metadata)
    return kept_words


def _frame(
    kept: KeptWords,
    relevance: npt.NDArray[np.float64],
    margins: Margins,
    ids: pl.Series,
    words: pl.Series,
) -> pl.DataFrame:
    """Rows of `mig.parquet` for the labels `ids`."""
    columns = {
        "label": ids.gather(kept.labels),
        "word": words.gather(kept.words),
        "value": pl.Series("value", kept.values).fill_nan(None),
        "relevance": relevance.astype(np.float32),
        "docs_with_both": pl.Series("both", np.maximum(kept.both, 0)).set(
            pl.Series(kept.both < 0), None
        ),
        "docs_with_word": margins.docs_with_word[kept.words].astype(np.int32),
        "rank": kept.ranks.astype(np.int32),
    }
    return pl.DataFrame(columns, schema=RELEVANCE_SCHEMA)


def load_relevance(folder: Path, label_hash: str) -> RelevanceTable:
    """The relevance of a run with the edits of `edits.yaml` applied."""
    _refuse_other_labels(folder / RELEVANCE_FILE, label_hash)
    require_recorded(folder, RELEVANCE_FILE, WORDS_FILE, RELEVANCE_LABELS_FILE)
    words = tuple(_read(folder / WORDS_FILE)["word"].to_list())
    index = _read(folder / RELEVANCE_LABELS_FILE)
    rows = _read(folder / RELEVANCE_FILE, columns=("word", "relevance"))
    if len(rows) != index["kept"].sum():
        raise _damaged(
            folder / RELEVANCE_FILE,
            f"{len(rows)} rows where {RELEVANCE_LABELS_FILE} counts {index['kept'].sum()}",
        )
    label = np.repeat(np.arange(len(index)), index["kept"].to_numpy())
    word = rows["word"].cast(pl.Enum(words), strict=False).to_physical()
    if word.has_nulls():
        raise _damaged(folder / RELEVANCE_FILE, f"it has words that {WORDS_FILE} does not list")
    relevance = rows["relevance"].to_numpy().astype(np.float32)
    matrix = csr_array(
        (relevance, (label, word.to_numpy().astype(np.int64))), shape=(len(index), len(words))
    )
    edits = read_edits(folder)
    if edits:
        matrix = apply_edits(matrix, edits, index["label"].to_list(), words)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return RelevanceTable(words=words, matrix=matrix)


def apply_edits(
    matrix: csr_array, edits: Mapping[str, LabelEdits], labels: list[str], words: tuple[str, ...]
) -> csr_array:
    """A relevance matrix with the words denied or allowed by hand; edits of labels or words
    that are not there change nothing.
    """
    rows = {label: i for i, label in enumerate(labels)}
    columns = {word: i for i, word in enumerate(words)}
    wanted = {
        (rows[label], columns[word]): relevance
        for label, entry in edits.items()
        for word, relevance in [*((word, 0.0) for word in entry.deny), *entry.allow.items()]
        if label in rows and word in columns
    }
    positions = np.asarray(list(wanted), dtype=np.int64).reshape(-1, 2).T
    chosen = csr_array(
        (np.asarray(list(wanted.values()), dtype=np.float32), (positions[0], positions[1])),
        shape=matrix.shape,
    )
    touched = csr_array(
        (np.ones(len(wanted), dtype=np.float32), (positions[0], positions[1])), shape=matrix.shape
    )
    return csr_array(matrix - matrix.multiply(touched) + chosen)


def read_label_index(folder: Path) -> pl.DataFrame:
    """Columns `label, title, docs_with_label, kept`, in the order of the label index."""
    require_recorded(folder, RELEVANCE_LABELS_FILE)
    return _read(folder / RELEVANCE_LABELS_FILE)


def read_label_words(folder: Path, label: str) -> pl.DataFrame:
    """Rows of `mig.parquet` for one label, by rank, without edits."""
    require_recorded(folder, RELEVANCE_FILE)
    return _read(folder / RELEVANCE_FILE, pl.col("label") == label)


def read_counted_words(folder: Path) -> pl.DataFrame:
    """Columns `word, docs_with_word`."""
    require_recorded(folder, WORDS_FILE)
    return _read(folder / WORDS_FILE)


@dataclass(frozen=True, kw_only=True)
class WordStatistics:
    """Counts of words and labels in train, and the relevance of words for labels."""

    table: RelevanceTable
    docs_with_word: npt.NDArray[np.int64]  # training documents with each word [V]
    docs_with_label: npt.NDArray[np.int64]  # training documents with each label [L]
    documents: int  # training documents N


def load_statistics(folder: Path, corpus: Corpus) -> WordStatistics:
    """Read the relevance of a run and its counts; `ArtefactError` if a file is missing, damaged
    or made for other labels.
    """
    return WordStatistics(
        table=load_relevance(folder, corpus.labels.hash),
        docs_with_word=read_counted_words(folder)["docs_with_word"].to_numpy(),
        docs_with_label=read_label_index(folder)["docs_with_label"].to_numpy(),
        documents=int(pl.read_parquet_metadata(folder / WORDS_FILE)[DOCUMENTS_KEY]),
    )


def _read(path: Path, rows: pl.Expr | None = None, columns: Sequence[str] = ("*",)) -> pl.DataFrame:
    try:
        with panics_as_errors():
            frame = pl.scan_parquet(path.absolute(), glob=False)
            return (frame if rows is None else frame.filter(rows)).select(*columns).collect()
    except FileNotFoundError as error:
        raise ArtefactError(
            "there is no relevance in this run",
            where=str(path),
            expected="a file written by `plant mig`",
            todo="run `plant mig`",
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
        against=path.parents[1] / "corpus" / LABELS_FILE,
    )


def _damaged(path: Path, why: str) -> ArtefactError:
    return ArtefactError(
        f"the relevance is damaged: {why}",
        where=str(path),
        expected="the file as `plant mig` wrote it",
        todo="run `plant mig --force`",
    )
