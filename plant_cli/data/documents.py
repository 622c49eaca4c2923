"""Documents of a split as frames: tidied, read in batches, hashed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar, overload

import polars as pl

from plant_cli.api import SPLITS, DataError, Dataset, Reporter, SplitName, missing_column
from plant_cli.api.errors import fractional_labels
from plant_cli.data.corpus_files import Fingerprint, SplitRecord
from plant_cli.data.files import hash_each
from plant_cli.data.tables import collect, count_rows, trim

Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)
Frames = Mapping[SplitName, pl.DataFrame]
DOCUMENT_SCHEMA: dict[str, pl.DataType] = {
    "doc_id": pl.String(),
    "text": pl.String(),
    "labels": pl.List(pl.String()),
}
DOCUMENT_COLUMNS = tuple(DOCUMENT_SCHEMA)
DOCUMENTS_IN_MEMORY = (
    2_000  # documents that are in memory together where a split is read in batches
)
BYTES_IN_MEMORY = 1 << 26  # bytes of a corpus that is kept in memory when it is first read


def read_frames(dataset: Dataset) -> dict[SplitName, pl.DataFrame]:
    """All splits of a dataset, in the order train, validation, test; `DataError` if there is
    none.
    """
    return {name: read_frame(dataset, name) for name in find_splits(dataset)}


def find_splits(dataset: Dataset) -> list[SplitName]:
    """The splits that a dataset has, in the order train, validation, test; `DataError` if there
    is none.
    """
    if not dataset.splits:
        expected, todo = (
            "at least one labelled training document",
            "look into the file: it may hold a header and no rows",
        )
        raise DataError(
            "the corpus holds no documents",
            where=", ".join(dataset.files) or "the dataset",
            expected=expected,
            todo=todo,
        )
    return [name for name in SPLITS if name in dataset.splits]


def read_frame(dataset: Dataset, split: SplitName) -> pl.DataFrame:
    """One split: the three columns with their types, missing texts as "", missing label lists
    as []; labels still as written.
    """
    where = _locate(dataset, split)
    return _conform(collect(dataset.splits[split], where), where)


def read_batches(
    dataset: Dataset, split: SplitName, rows: range | None = None
) -> Iterator[pl.DataFrame]:
    """One split as `read_frame` gives it, some documents at a time; at least one batch.

    Where the dataset has the split in pieces, its texts are never all in memory.
    """
    where, parts = _locate(dataset, split), dataset.parts(split)
    empty = True
    for part in parts if rows is None else _cut_parts(parts, rows, where):
        source = collect(part, where)
        for first in range(0, source.height, DOCUMENTS_IN_MEMORY):
            yield _conform(source.slice(first, DOCUMENTS_IN_MEMORY), where)
            empty = False
    if empty:
        yield _conform(collect(dataset.splits[split].head(0), where), where)


def first_documents(dataset: Dataset, split: SplitName, rows: int = 100) -> pl.DataFrame:
    """The first documents of a split, tidied."""
    where, part = _locate(dataset, split), dataset.parts(split)[0]
    return tidy(_conform(collect(part.head(rows), where), where))


def _cut_parts(parts: Sequence[pl.LazyFrame], rows: range, where: str) -> Iterator[pl.LazyFrame]:
    """Those rows of consecutive parts."""
    start = 0
    for part in parts:
        stop = start + count_rows(part, where)
        first, last = max(rows.start, start), min(rows.stop, stop)
        if first < last:
            yield part.slice(first - start, last - first)
        start = stop


def count_documents(dataset: Dataset, split: SplitName) -> int:
    """How many documents a split has, without reading their texts."""
    return count_rows(dataset.splits[split], _locate(dataset, split))


def conform_part(dataset: Dataset, split: SplitName, part: pl.LazyFrame) -> pl.LazyFrame:
    """A part of a split with the three columns and their types; `DataError` as of `read_frame`."""
    return _conform(part, _locate(dataset, split))


def _locate(dataset: Dataset, split: SplitName) -> str:
    return f"split {split} of {', '.join(dataset.files) or 'the dataset'}"


def tidy_dataset(dataset: Dataset) -> Dataset:
    """The same dataset with tidy documents in the corpus schema, still to be read, in as many
    pieces; `DataError` as of `read_frame`.
    """
    names = find_splits(dataset)
    return dataset.with_parts(
        {
            name: [tidy(_conform(part, _locate(dataset, name))) for part in dataset.parts(name)]
            for name in names
        },
    )


def _conform(source: Table, where: str) -> Table:
    schema = source.collect_schema()
    for name in DOCUMENT_COLUMNS:
        if name not in schema:
            raise missing_column(
                name,
                schema.names(),
                where=where,
                todo=f"the dataset must yield the columns {', '.join(DOCUMENT_COLUMNS)}",
            )
    if schema["text"] not in (pl.String, pl.Null):
        expected, todo = "the text of each document", "name the right column with --text-column"
        raise DataError(
            f"the text is of type {schema['text']}, not a string",
            where=f"{where}, column text",
            expected=expected,
            todo=todo,
        )
    return source.select(
        pl.col("doc_id").cast(pl.String),
        pl.col("text").cast(pl.String).fill_null(""),
        _as_label_lists(schema["labels"], where),
    )


def _as_label_lists(kind: pl.DataType, where: str) -> pl.Expr:
    """The column `labels`, of a type, as lists of strings."""
    inner = kind.inner if isinstance(kind, pl.List) else kind
    if isinstance(inner, pl.DataType) and (inner.is_float() or inner.is_decimal()):
        raise fractional_labels(
            str(kind), f"{where}, column labels", "numbers with a fraction and not lists of strings"
        )
    scalar = inner in (pl.String, pl.Null, pl.Categorical) or (
        isinstance(inner, pl.DataType) and inner.is_integer()
    )
    if kind != pl.Null and not (isinstance(kind, pl.List) and scalar):
        what, expected = (
            f"the labels are of type {kind}, not lists of strings",
            'a list of labels for each document, such as ["a", "b"]',
        )
        raise DataError(
            what,
            where=f"{where}, column labels",
            expected=expected,
            todo="name the right column with --labels-column",
        )
    empty = pl.lit(pl.Series([[]], dtype=pl.List(pl.String)))
    return pl.col("labels").cast(pl.List(pl.String)).fill_null(empty).list.drop_nulls()


def tidy(frame: Table) -> Table:
    """The same documents with labels trimmed, empty ones dropped, and each only once in a
    document (in the order of the first).
    """
    trimmed = pl.col("labels").list.eval(
        trim(pl.element()).filter(pl.element().str.contains(r"\S"))
    )
    return frame.with_columns(trimmed.list.unique(maintain_order=True))


def spelling_key(label: pl.Expr) -> pl.Expr:
    """Equal for labels that differ by case, blanks, hidden characters or the form of their
    accents alone.
    """
    return (
        label.str.normalize("NFC")
        .str.to_lowercase()
        .str.replace_all(WIDTHLESS, "")
        .str.replace_all(r"\s+", " ")
        .str.strip_chars(" ")
    )


def reveal(text: str) -> str:
    """A text for a message, with escapes such as `\\u200b` for what cannot be seen, and for
    accents that are characters of their own.
    """
    marks = (
        set()
        if unicodedata.is_normalized("NFC", text)
        else {char for char in text if unicodedata.combining(char)}
    )
    return "".join(
        char.encode("unicode_escape").decode() if char in marks or not char.isprintable() else char
        for char in text
    )


def find_used_labels(dataset: Dataset) -> pl.Series:
    """The labels that documents have, sorted, each once."""
    written = [
        frame.select(label=pl.col("labels").explode().cast(pl.String)).unique()
        for frame in dataset.splits.values()
    ]
    if not written:
        return pl.Series("label", [], dtype=pl.String)
    label = trim(pl.col("label"))
    labels = pl.concat(written).select(label).filter(pl.col("label") != "").unique()
    return collect(labels, ", ".join(dataset.files) or "the dataset")["label"].sort()


def explode_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each (document, label): `row: u32` (row number in the frame), `doc_id`,
    `label`.
    """
    rows = frame.select("doc_id", label="labels").with_row_index("row")
    return rows.explode("label").filter(pl.col("label").is_not_null())


@dataclass(frozen=True)
class SplitTexts(Sequence[str]):
    """The texts of a split without those of some documents, read batch by batch each time."""

    dataset: Dataset
    split: SplitName
    documents: int  # how many texts there are
    left_out: Set[str] = frozenset()  # ids of documents that do not count

    def __len__(self) -> int:
        return self.documents

    def __iter__(self) -> Iterator[str]:
        kept = ~pl.col("doc_id").is_in(list(self.left_out))
        for batch in read_batches(self.dataset, self.split):
            yield from (batch.filter(kept) if self.left_out else batch)["text"]

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        return (
            self.take(range(len(self))[row])
            if isinstance(row, slice)
            else self.take([range(len(self))[row]])[0]
        )

    def take(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows, in the order asked for, from one reading."""
        wanted, last = set(rows), max(rows, default=-1)
        texts = {row: text for row, text in enumerate(islice(self, last + 1)) if row in wanted}
        return [texts[row] for row in rows]


def take_texts(texts: Sequence[str], rows: Sequence[int]) -> list[str]:
    """Some of the texts, whether they are in memory or read."""
    return texts.take(rows) if isinstance(texts, SplitTexts) else [texts[row] for row in rows]


BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}]+"
LETTERS = pl.col("text").str.to_lowercase().str.replace_all(BETWEEN_WORDS, " ").str.strip_chars(" ")
"""A text without case, punctuation and repeated blanks."""
TEXT_KEY = (
    pl.when((LETTERS == "") & pl.col("text").str.contains(r"\S")).then("text").otherwise(LETTERS)
)
"""Equal for texts that are equal but for case, punctuation and blanks; a text of nothing but
signs is equal to itself alone.
"""
CONTROL = r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
WIDTHLESS = "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
"""Characters without width that mean nothing in a word, and cut it: not the joiners of Persian
and Indian scripts.
"""
_HIGH = "".join(
    bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xC0)
)  # as Windows-1252 shows these bytes
_GARBLED = (
    rf"(?:^|[^\p{{Lu}}])[ÂÃ][{_HIGH}]|â[€‚][{_HIGH}]|ï»¿|ðŸ|ã[\x81\x82‚ƒ]["
    rf"{_HIGH}]|(?:[ÐÑ][{_HIGH}]){{2}}|(?:[ÎÏ][{_HIGH}]){{2}}|‚Ä[ôúùì]"
)
"""UTF-8 read as Windows-1252 or as Mac Roman: é, an apostrophe, Japanese, Cyrillic and Greek
letters, a byte order mark.
"""
_TAGS = (
    "p|br|hr|div|span|a|b|i|u|em|strong|small|font|img|table|thead|tbody|tr|td|"
    "th|ul|ol|li|h[1-6]|sub|sup|code|pre|blockquote|body|html"
)
_ENTITIES = (
    r"amp|lt|gt|quot|apos|nbsp|mdash|ndash|hellip|[lr][sd]quo|[aeiou](?:acute|"
    r"grave|uml)|#\d{2,5}|#x[0-9a-f]{2,5}"
)
_MARKUP = rf"(?i)</?(?:{_TAGS})(?:\s[^<>]*)?/?>|&(?:{_ENTITIES});"
"""Tags and entities of HTML."""
_SEED = 1

_TEXT = pl.col("text")
_MEASURES = (
    pl.when(_TEXT.str.contains(r"\S")).then(_TEXT.hash(_SEED)).alias("same"),
    _TEXT.str.len_chars().alias("characters"),
    _TEXT.str.count_matches(r"\S+").alias("words"),
)
_FURTHER = (  # several times as slow as the others, and for `plant data check` alone
    pl.when(pl.col("letters") != "").then(pl.col("letters").hash(_SEED)).alias("alike"),
    _TEXT.str.strip_chars().str.len_chars().alias("inner_characters"),
    _TEXT.str.contains("\ufffd", literal=True).alias("replaced"),
    _TEXT.str.contains(CONTROL).alias("control"),
    _TEXT.str.contains(WIDTHLESS).alias("hidden"),
    _TEXT.str.contains(_GARBLED).alias("garbled"),
    _TEXT.str.contains(_MARKUP).alias("markup"),
)


def digest(frame: pl.DataFrame, *, thorough: bool = True) -> pl.DataFrame:
    """Documents without their texts.

    Returns:
        `doc_id`, `labels`; `same`: equal for equal texts, null for a text of blanks; `characters`;
        `words`: runs without blanks. Thorough ones also `alike`: equal for texts equal but for
        case, punctuation and blanks, null where nothing else is; `inner_characters`, those without
        the blanks around; whether there are replacement characters (`replaced`), `control` or
        `hidden` characters, UTF-8 in another encoding (`garbled`) or HTML (`markup`).
    """
    filled = frame.with_columns(_TEXT.fill_null(""))
    if not thorough:
        return filled.select("doc_id", "labels", *_MEASURES)
    return filled.with_columns(LETTERS.alias("letters")).select(
        "doc_id", "labels", *_MEASURES, *_FURTHER
    )


def read_digests(
    dataset: Dataset,
    reporter: Reporter,
    *,
    thorough: bool = True,
    look: Callable[[SplitName, pl.DataFrame], None] = lambda name, batch: None,
) -> dict[SplitName, pl.DataFrame]:
    """The digests of all splits; `look` sees every batch on the way. `DataError` if the corpus
    cannot be read.
    """
    digests: dict[SplitName, pl.DataFrame] = {}
    for name in find_splits(dataset):
        parts = []
        for batch in read_progress(dataset, name, reporter):
            look(name, batch)
            parts.append(digest(batch, thorough=thorough))
        digests[name] = pl.concat(parts)
    return digests


@dataclass(frozen=True, kw_only=True)
class FirstReading:
    """What one reading of all splits gives."""

    digests: dict[SplitName, pl.DataFrame]  # not thorough
    records: dict[SplitName, SplitRecord]  # fingerprints of the tidied documents
    hashes: dict[
        SplitName, pl.DataFrame
    ]  # `doc_id`, and hashes of each `text` and its `labels` that are the same everywhere
    documents: dict[
        SplitName, pl.DataFrame
    ]  # the tidied documents themselves; none of a corpus of more than `BYTES_IN_MEMORY` bytes


def read_first(dataset: Dataset, reporter: Reporter) -> FirstReading:
    """Read all splits; a small corpus stays in memory, so that the command need not read it
    again.
    """
    fingerprints = {name: Fingerprint() for name in find_splits(dataset)}
    documents: dict[SplitName, list[pl.DataFrame]] = {}
    hashes: dict[SplitName, list[pl.DataFrame]] = {}
    size = 0

    def look(name: SplitName, batch: pl.DataFrame) -> None:
        nonlocal size
        frame = tidy(
            batch.with_columns(pl.col("doc_id").fill_null(""))
        )  # a missing id is refused later, with all others
        fingerprints[name].add(frame)
        written = frame.select("doc_id", "text", pl.col("labels").list.sort().list.join("\0"))
        hashes.setdefault(name, []).append(
            written.with_columns(
                pl.Series(c, hash_each(written[c]), pl.UInt64) for c in ("text", "labels")
            )
        )
        documents.setdefault(name, []).append(frame)
        size += int(frame.estimated_size())
        if size > BYTES_IN_MEMORY:
            documents.clear()

    digests = read_digests(dataset, reporter, thorough=False, look=look)
    records = {name: fingerprint.record() for name, fingerprint in fingerprints.items()}
    whole, kept = (
        {name: pl.concat(parts) for name, parts in found.items()} for found in (documents, hashes)
    )
    return FirstReading(digests=digests, records=records, hashes=kept, documents=whole)


def read_progress(dataset: Dataset, name: SplitName, reporter: Reporter) -> Iterator[pl.DataFrame]:
    """Batches of a split, at least one, with progress."""
    with reporter.progress(f"reading {name}", count_documents(dataset, name), "documents") as task:
        for batch in read_batches(dataset, name):
            yield batch
            task.advance(batch.height)
