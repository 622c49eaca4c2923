"""What checks, statistics and records need of each document but not its text: a corpus of any size is read once, and its texts never held.

A row takes about 55 bytes with its id, and 16 for each label (and its length beyond 12). Texts are known by 64-bit hashes: among two
million texts, two that differ share one with a probability of 1e-7.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.api.reporting import Reporter
from plant_cli.artefacts.corpus import Fingerprint, SplitRecord
from plant_cli.corpus.frames import count_documents, find_splits, read_batches, tidy

BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}]+"
LETTERS = pl.col("text").str.to_lowercase().str.replace_all(BETWEEN_WORDS, " ").str.strip_chars(" ")
"""A text without case, punctuation and repeated blanks."""
TEXT_KEY = pl.when((LETTERS == "") & pl.col("text").str.contains(r"\S")).then("text").otherwise(LETTERS)
"""Equal for texts that are equal but for case, punctuation and blanks; a text of nothing but signs is equal to itself alone."""
CONTROL = r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
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
)


def digest(frame: pl.DataFrame, *, thorough: bool = True) -> pl.DataFrame:
    """Documents without their texts.

    Args:
        frame: the corpus schema.
        thorough: whether to look for what only `plant data check` asks for.

    Returns:
        `doc_id`, `labels`; `same`: equal for equal texts, null for a text of blanks; `characters`; `words`: runs without blanks. Thorough
        ones also `alike`: equal for texts equal but for case, punctuation and blanks, null where nothing else is; `inner_characters`,
        those without the blanks around; whether there are replacement characters (`replaced`) or `control` characters.
    """
    filled = frame.with_columns(_TEXT.fill_null(""))
    if not thorough:
        return filled.select("doc_id", "labels", *_MEASURES)
    return filled.with_columns(LETTERS.alias("letters")).select("doc_id", "labels", *_MEASURES, *_FURTHER)


def read_digests(dataset: Dataset, reporter: Reporter, *, thorough: bool = True) -> dict[SplitName, pl.DataFrame]:
    """The digests of all splits; `DataError` if the corpus cannot be read."""
    return {
        name: pl.concat(digest(batch, thorough=thorough) for batch in read_progress(dataset, name, reporter))
        for name in find_splits(dataset)
    }


def read_fingerprints(dataset: Dataset, reporter: Reporter) -> tuple[dict[SplitName, pl.DataFrame], dict[SplitName, SplitRecord]]:
    """Digests of all splits, not thorough, and, from the same reading, the fingerprints of their tidied documents."""
    digests, records = {}, {}
    for name in find_splits(dataset):
        fingerprint, parts = Fingerprint(), []
        for batch in read_progress(dataset, name, reporter):
            fingerprint.add(tidy(batch.with_columns(pl.col("doc_id").fill_null(""))))  # a missing id is refused later, with all others
            parts.append(digest(batch, thorough=False))
        digests[name], records[name] = pl.concat(parts), fingerprint.record()
    return digests, records


def read_progress(dataset: Dataset, name: SplitName, reporter: Reporter, rows: range | None = None) -> Iterator[pl.DataFrame]:
    """Batches of a split, or of some rows of it, at least one, with progress."""
    total = count_documents(dataset, name) if rows is None else len(rows)
    with reporter.progress(f"reading {name}", total, "documents") as task:
        for batch in read_batches(dataset, name, rows):
            yield batch
            task.advance(batch.height)
