"""The words of each split as numbers, kept in a run's cache: a text is split into words once in
a run.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plant_cli.api import Corpus, Documents, SplitName
from plant_cli.data.files import hash_each, hash_json, remove
from plant_cli.data.shares import Shard
from plant_cli.data.words import WordNumbers
from plant_cli.runs.damage import CACHE_MARK, is_whole, write_mark
from plant_cli.runs.folder import CACHE, READER
from plant_cli.runs.lock import hold_lock
from plant_cli.runs.session import Session

# a lock of its own: the first of several processes holds that of the cache while it waits for the
# others
LOCKED = ".words"
NUMBERS_FILE, ENDS_FILE, WORDS_FILE, FORMS_FILE = (
    "numbers.bin",
    "ends.npy",
    "words.parquet",
    "forms.parquet",
)
TEXTS_FILE = "texts.npy"  # a hash of each text [N]


@dataclass(frozen=True, kw_only=True)
class SplitWords:
    """The words of the documents of a split."""

    documents: Documents  # mapped into memory, not read
    forms: Sequence[
        tuple[str, str]
    ]  # each word that the analyser reduced with each form of it, of titles of labels, too


def open_words(
    session: Session,
    corpus: Corpus,
    name: SplitName,
    *,
    shard: Shard | None = None,
    check: Callable[[], None] = lambda: None,
) -> SplitWords:
    """The words of a split, or of a share of it: as an earlier stage left them, or found now and
    kept. The key is of corpus and analyser.

    A word takes 4 bytes on disk. While texts are split, memory holds a batch of them and the
    vocabulary. `check` is called for each document; it raises if the user stopped the command.
    """
    part = f"{name} {shard}" if shard else name
    key = hash_json({"data": corpus.data_hash, "split": part, "analyser": corpus.analyser.hash})
    cache = (
        session.run_path / CACHE
    ).resolve()  # in a copy of the run it is a link, to a folder that may still be missing
    folder = cache / f"words-{part.replace(' ', '-').replace('/', '-of-')}-{key[:16]}"
    locked = cache / LOCKED
    locked.mkdir(parents=True, exist_ok=True)
    with hold_lock(
        locked, "splitting texts into words", wait=math.inf, should_stop=session.should_stop
    ):
        if not is_whole(folder / CACHE_MARK, f"the words of {part}", session.reporter.warn):
            _write(folder, session, corpus, name, shard, check)
    return _read(folder)


def _read(folder: Path) -> SplitWords:
    words, ends = (
        pl.read_parquet((folder / WORDS_FILE).absolute(), glob=False)["word"].to_list(),
        np.load(folder / ENDS_FILE),
    )
    mapped = (
        np.memmap(folder / NUMBERS_FILE, dtype=np.int32, mode="r")
        if ends[-1]
        else np.zeros(0, dtype=np.int32)
    )
    documents = Documents(vocabulary=tuple(words), numbers=np.asarray(mapped), ends=ends)
    return SplitWords(
        documents=documents,
        forms=pl.read_parquet((folder / FORMS_FILE).absolute(), glob=False).rows(),
    )


def _find_earlier(folder: Path, analyser: str) -> tuple[SplitWords, Mapping[int, int]]:
    """The newest other words of the same split and analyser, of the corpus before it grew, and
    the row of each text by its hash.
    """
    marks = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*/{READER}")
    for mark in sorted(marks, key=lambda path: path.stat().st_mtime, reverse=True):
        if mark.read_text() == analyser and is_whole(
            mark.parent / CACHE_MARK, "the words before", lambda warning: None
        ):
            return _read(mark.parent), {
                text: row for row, text in enumerate(np.load(mark.parent / TEXTS_FILE).tolist())
            }
    empty = Documents(
        vocabulary=(), numbers=np.zeros(0, dtype=np.int32), ends=np.zeros(1, dtype=np.int64)
    )
    return SplitWords(documents=empty, forms=()), {}


def _write(
    folder: Path,
    session: Session,
    corpus: Corpus,
    name: SplitName,
    shard: Shard | None,
    check: Callable[[], None],
) -> None:
    remove(folder)
    earlier, row_of = _find_earlier(folder, corpus.analyser.hash)
    before = earlier.documents
    folder.mkdir(parents=True)
    numbers, ends, start, hashes = WordNumbers(), array("q", [0]), 0, array("Q")
    progress = session.reporter.progress(f"words of {name}", corpus.sizes[name], "documents")
    with (folder / NUMBERS_FILE).open("wb") as file, progress as task:
        for part in corpus.stream(name):
            for text in part.texts if shard is None else part.texts[shard.rows_from(start)]:
                hashes.extend(hash_each([text]))
                row = row_of.get(hashes[-1])
                known = (
                    before.numbers[before.ends[row] : before.ends[row + 1]].tolist()
                    if row is not None
                    else ()
                )
                found = numbers.take(
                    corpus.analyser.spell(text)
                    if row is None
                    else [before.vocabulary[number] for number in known]
                )
                file.write(found.tobytes())
                ends.append(ends[-1] + len(found))
                check()
            start += len(part)
            task.advance(len(part))
    np.save(folder / ENDS_FILE, np.array(ends, dtype=np.int64))
    pl.DataFrame({"word": pl.Series(list(numbers), dtype=pl.String)}).write_parquet(
        (folder / WORDS_FILE).absolute()
    )
    np.save(folder / TEXTS_FILE, np.array(hashes, dtype=np.uint64))
    (folder / READER).write_text(corpus.analyser.hash)
    known_forms = dict.fromkeys([*earlier.forms, *corpus.analyser.forms()])
    forms = pl.DataFrame(
        list(known_forms), schema={"word": pl.String, "form": pl.String}, orient="row"
    )
    forms.write_parquet((folder / FORMS_FILE).absolute())
    write_mark(folder / CACHE_MARK)
