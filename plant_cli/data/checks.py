"""Checks of a corpus. Each is a function from frames to findings; fatal findings stop a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from plant_cli.api import DataError, Dataset
from plant_cli.data.documents import (
    BETWEEN_WORDS,
    WIDTHLESS,
    Frames,
    explode_labels,
    reveal,
    spelling_key,
    tidy,
)
from plant_cli.data.labels import count_labels
from plant_cli.data.tables import collect

FindingLevel = Literal["fatal", "warning", "note"]
LEVELS: tuple[FindingLevel, ...] = ("fatal", "warning", "note")
SHORT_TEXT = 20  # characters; less than this is seldom a document
_SHOWN = 5
_JOIN = "make them one label, if they mean the same"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of problem in one split."""

    what: str  # a sentence without its subject's number ("documents have an empty text")
    where: str  # the split, and the first few documents or labels
    count: int  # how many there are
    expected: str
    todo: str
    # `fatal`: no run can be made of this corpus; `warning`: something is wrong; `note`: worth
    # knowing, and often as it should be
    level: FindingLevel = "warning"

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} ({self.where})"

    def to_error(self) -> DataError:
        """The finding as the error that stops a run."""
        return DataError(
            f"{self.count:,} {self.what}", where=self.where, expected=self.expected, todo=self.todo
        )


FramesCheck = Callable[[Frames], Iterator[Finding]]
"""From the digests of documents (see `digests`), whose labels are as written, not tidied."""


def examine_documents(frames: Frames, checks: tuple[FramesCheck, ...]) -> list[Finding]:
    """All findings of the given checks, the worst first."""
    return sorted(
        (finding for check in checks for finding in check(frames)),
        key=lambda finding: LEVELS.index(finding.level),
    )


def report_rows(
    rows: pl.DataFrame,
    show: Callable[..., str],
    *,
    what: str,
    expected: str,
    todo: str,
    where: str = "",
    level: FindingLevel = "warning",
) -> Iterator[Finding]:
    """A finding on some rows, if there are any; `show` makes an example of the cells of one."""
    if rows.height:
        examples = [show(*row) for row in rows.head(_SHOWN).iter_rows()]
        between = "; " if any(", " in example for example in examples) else ", "
        shown = f"{where}{between.join(examples)}" + (
            f"{between}… ({rows.height:,} in all)" if rows.height > _SHOWN else ""
        )
        yield Finding(
            what=what, where=shown, count=rows.height, expected=expected, todo=todo, level=level
        )


def _documents_that(
    condition: pl.Expr, *, what: str, expected: str, todo: str, level: FindingLevel = "warning"
) -> FramesCheck:
    """A check that names the documents of each split for which a condition holds; `tidy` has
    their labels as they are read.
    """

    def check(frames: Frames) -> Iterator[Finding]:
        for split, frame in frames.items():
            rows = frame.with_columns(tidy=tidy(frame)["labels"]).filter(condition).select("doc_id")
            yield from report_rows(
                rows,
                "'{}'".format,
                what=what,
                expected=expected,
                todo=todo,
                where=f"{split}: ",
                level=level,
            )

    return check


find_unlabelled = _documents_that(
    pl.col("tidy").list.len() == 0,
    what="documents have no label; they are kept",
    expected="at least one label for each document",
    todo="nothing, if that is what they are; else mend their labels",
)
find_repeated_texts = _documents_that(
    pl.col("same").is_duplicated() & pl.col("same").is_not_null(),
    what="documents have a text that occurs twice in their split",
    expected="each text once",
    todo="drop the repetitions, or join their labels",
)
find_untidy_labels = _documents_that(
    pl.col("labels") != pl.col("tidy"),
    what="documents have labels with blanks around them, repeated or empty; they are put right "
    "on reading",
    expected="each label once, without blanks around it",
    todo="nothing; `plant data convert` writes them put right",
    level="note",
)
_DECODED = "text that was read in its own encoding"
_DECODE = "make the corpus again from its source, decoding it as what it is"
find_replaced = _documents_that(
    pl.col("replaced"),
    what="documents hold replacement characters (U+FFFD)",
    expected=_DECODED,
    todo=_DECODE,
)
find_control_characters = _documents_that(
    pl.col("control"), what="documents hold control characters", expected=_DECODED, todo=_DECODE
)
find_garbled = _documents_that(
    pl.col("garbled"),
    what="documents hold UTF-8 that was read in another encoding (Ã© for é, â€™ for an apostrophe)",
    expected=_DECODED,
    todo="read the source as UTF-8; a file that was saved so is mended by `iconv -f UTF-8 -t "
    "WINDOWS-1252`, as far as that can write it",
)
find_hidden_characters = _documents_that(
    pl.col("hidden"),
    what="documents hold characters without width (soft hyphens, U+200B, U+FEFF), which cut "
    "words apart",
    expected="words without characters that cannot be seen",
    todo="--fix removes them",
)
find_markup = _documents_that(
    pl.col("markup"),
    what="documents hold tags or entities of HTML (<br>, &nbsp;), which count as words",
    expected="plain text",
    todo="take the text out of the HTML where the corpus is made",
)
find_short_texts = _documents_that(
    pl.col("inner_characters").is_between(1, SHORT_TEXT - 1),
    what=f"documents have fewer than {SHORT_TEXT} characters",
    expected="texts from which a person could tell the labels",
    todo="check that --text-column names the whole text",
)


def find_empty_texts(frames: Frames) -> Iterator[Finding]:
    """Documents without a text: they are left out; no run can be made where half of a split is
    so.
    """
    for split, frame in frames.items():
        rows = frame.filter(pl.col("same").is_null()).select("doc_id")
        many = rows.height > frame.height / 2
        yield from report_rows(
            rows,
            "'{}'".format,
            what="documents have an empty text" + ("" if many else "; they are left out"),
            expected="some text in each document",
            todo="remove these documents, or name the right column with --text-column",
            where=f"{split}: ",
            level="fatal" if many else "warning",
        )


def find_empty_train(frames: Frames) -> Iterator[Finding]:
    """No training documents, or none with a label."""
    train = frames.get("train", pl.DataFrame({"labels": []}, schema={"labels": pl.List(pl.String)}))
    if not tidy(train)["labels"].list.len().sum():
        others = [(name, frame.height) for name, frame in frames.items() if name != "train"]
        held = [("train", train.height), *others]
        yield Finding(
            what="of the training documents have a label",
            where="; ".join(f"{name}, {count:,} documents" for name, count in held),
            count=0,
            expected="at least one labelled training document",
            todo="name the right column with --labels-column, and check the values of the split "
            "column",
            level="fatal",
        )


def find_repeated_ids(frames: Frames) -> Iterator[Finding]:
    """Documents of one id, within a split or across splits, or without id."""
    ids = pl.concat(
        frame.select("doc_id", split=pl.lit(name)).with_row_index("row", offset=1)
        for name, frame in frames.items()
    )
    repeated = ids.filter(pl.col("doc_id").is_duplicated() | pl.col("doc_id").is_null()).sort(
        "doc_id", maintain_order=True
    )
    yield from report_rows(
        repeated,
        lambda row, doc_id, split: (
            f"{'no id' if doc_id is None else repr(doc_id)}, document {row} of {split}"
        ),
        what="documents share their id with another, or have none",
        expected="an id for each document, over all splits",
        todo="name another column with --id-column; rows of one document must have the same text",
        level="fatal",
    )


def find_hidden_labels(frames: Frames) -> Iterator[Finding]:
    """Labels with characters that cannot be seen."""
    rows = _all_labels(frames).filter(pl.col("label").str.contains(WIDTHLESS)).sort("label")
    what, expected = (
        "labels hold characters that cannot be seen",
        "labels that are what they look like",
    )
    yield from report_rows(rows, _name, what=what, expected=expected, todo="--fix removes them")


def find_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text, to the letter, in two splits."""
    yield from _leak(_shared(frames, "same"), "documents have a text that another split also has")


def find_near_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text in two splits but for case, punctuation and blanks."""
    near = _shared(frames, "alike").join(
        _shared(frames, "same"), on=["doc_id", "split"], how="anti", maintain_order="left"
    )
    yield from _leak(
        near,
        "documents have a text that another split also has, but for case, blanks and punctuation",
    )


def find_twin_labels(frames: Frames) -> Iterator[Finding]:
    """Labels that differ only by case, blanks, hidden characters or the form of their accents."""
    labels = pl.concat(
        explode_labels(tidy(frame)).select("label") for frame in frames.values()
    ).unique()
    folded = labels.with_columns(key=spelling_key(pl.col("label")))
    twins = folded.filter(pl.col("key").is_duplicated()).sort("key", "label").select("label")
    what = (
        "labels differ from another only by case, blanks, hidden characters or the form of accents"
    )
    yield from report_rows(
        twins, _name, what=what, expected="one spelling for each label", todo=_JOIN
    )


REQUIRED: tuple[FramesCheck, ...] = (
    find_repeated_ids,
    find_empty_texts,
    find_empty_train,
    find_unlabelled,
    find_leaks,
)
"""Run before every experiment."""

THOROUGH: tuple[FramesCheck, ...] = (
    *REQUIRED,
    find_near_leaks,
    find_repeated_texts,
    find_untidy_labels,
    find_twin_labels,
    find_replaced,
    find_control_characters,
    find_garbled,
    find_hidden_characters,
    find_hidden_labels,
    find_markup,
    find_short_texts,
)
"""Run by `plant data check`."""


def _shared(frames: Frames, key: str) -> pl.DataFrame:
    """Documents whose key also occurs in another split: `doc_id`, `split`, `key`, side by side
    by key, the first document first.
    """
    texts = pl.concat(
        frame.select("doc_id", split=pl.lit(name), key=key) for name, frame in frames.items()
    ).with_row_index("row")
    shared = texts.filter(
        pl.col("key").is_not_null() & (pl.col("split").n_unique().over("key") > 1)
    )
    return shared.sort(pl.col("row").min().over("key"), "row").drop("row")


def _leak(shared: pl.DataFrame, what: str) -> Iterator[Finding]:
    expected, todo = (
        "test and validation texts that training has not seen",
        "drop them from train, or split again with `plant data split`",
    )
    yield from report_rows(
        shared.select("doc_id", "split"),
        "'{}' in {}".format,
        what=what,
        expected=expected,
        todo=todo,
    )


_LONG = 6  # letters; shorter names differ by one letter as a rule
_COMPARED = 100_000  # labels, letter by letter
_MANY = 10  # times the median number of labels of a document
_CUT, _CUT_TEXTS = 200, 5  # characters at which texts are cut at least, and how many of them
_LEAST = 20  # labels of a document; fewer are never too many


def find_near_labels(frames: Frames) -> Iterator[Finding]:
    """Labels that differ from another by punctuation, or, without digits, by one letter."""
    labels = _all_labels(frames)
    folded = labels.with_columns(
        key=pl.col("label").str.to_lowercase().str.replace_all(BETWEEN_WORDS, "")
    )
    spelled = folded.with_columns(
        loose=pl.col("label").str.to_lowercase().str.replace_all(r"\s+", " ")
    )
    alike = (
        spelled.filter((pl.col("key") != "") & (pl.col("loose").n_unique().over("key") > 1))
        .sort("key", "label")
        .select("label")
    )
    expected = "one spelling for each label"
    yield from report_rows(
        alike,
        "'{}'".format,
        what="labels differ from another only by punctuation",
        expected=expected,
        todo=_JOIN,
    )
    words = folded.filter(
        (pl.col("key").str.len_chars() >= _LONG) & ~pl.col("label").str.contains(r"\d")
    )
    pairs = pl.DataFrame(_one_letter_apart(words), schema=["first", "second"], orient="row")
    what = "pairs of labels differ by one letter" + (
        f" (only {_COMPARED:,} labels were compared)" if words.height > _COMPARED else ""
    )
    todo = "make them one label, if one is a slip"
    yield from report_rows(
        pairs, "'{}' and '{}'".format, what=what, expected=expected, todo=todo, level="note"
    )


def find_odd_label_counts(frames: Frames) -> Iterator[Finding]:
    """Documents with many times more labels than others have."""
    for name, frame in frames.items():
        counts = tidy(frame).select("doc_id", count=pl.col("labels").list.len())
        median = counts.filter(pl.col("count") > 0)["count"].median()
        limit = max(_LEAST, _MANY * (float(median) if isinstance(median, (int, float)) else 0))
        yield from report_rows(
            counts.filter(pl.col("count") > limit).sort(
                "count", "doc_id", descending=[True, False]
            ),
            "'{}' with {}".format,
            what=f"documents have more than {limit:,.0f} labels, {_MANY} times the median",
            expected="about as many labels as other documents have",
            todo="look at them: cells may have been cut at a wrong separator (--label-separator)",
            where=f"{name}: ",
        )


def find_cut_off(frames: Frames) -> Iterator[Finding]:
    """Texts of one length, the longest there is, with few texts just below it: they were cut
    where they are made.
    """
    texts = pl.concat(frame.select("doc_id", "characters") for frame in frames.values())
    longest = texts["characters"].max()
    if not isinstance(longest, int) or longest < _CUT:
        return
    cut, below = (
        texts.filter(pl.col("characters") == longest),
        texts.filter(pl.col("characters").is_between(longest - 10, longest - 1)),
    )
    if cut.height >= _CUT_TEXTS and cut.height > below.height:
        yield from report_rows(
            cut.select("doc_id"),
            "'{}'".format,
            what=f"documents have {longest:,} characters, as many as the longest: they may have "
            "been cut there",
            expected="whole texts",
            todo="look at their ends, and at the limit of the program that wrote them (a cell of "
            "Excel holds 32,767 characters)",
            level="note",
        )


def find_unseen_labels(
    frames: Frames, titles: pl.DataFrame, titled: pl.DataFrame | None = None
) -> Iterator[Finding]:
    """Labels that only validation or test have: no model can propose them, and they count as
    missed.
    """
    if "train" not in frames:
        return
    seen = count_labels(tidy(frames["train"])).select("label")
    seen = seen if titled is None else pl.concat([seen, titled.select("label")])
    for name, frame in frames.items():
        unseen = (
            count_labels(tidy(frame))
            .join(seen, on="label", how="anti")
            .sort("count", "label", descending=[True, False])
        )
        yield from report_rows(
            unseen.join(titles, on="label", how="left", maintain_order="left").select(
                "label", "title"
            ),
            _name,
            what=f"labels of {name} have no training document; their {unseen['count'].sum():,} "
            "assignments count as missed",
            expected="labels that also occur in train",
            todo="nothing: recall counts them as missed, and the reports say how many there are",
            where=f"{name}: ",
            level="note",
        )


def find_unknown_labels(dataset: Dataset, frames: Frames) -> Iterator[Finding]:
    """Labels of documents that the table of labels does not have or marks as deprecated, and
    titles that several labels share.
    """
    if dataset.labels is None:
        return
    table = collect(dataset.labels, "the table of labels").with_columns(
        pl.col("label", "title").cast(pl.String)
    )
    used = _all_labels(frames)
    what, todo = (
        "labels are not in the table of labels",
        "add them, or name another --vocabulary or --titles",
    )
    expected = "one spelling for each label, that the table has"
    yield from report_rows(
        used.join(table, on="label", how="anti").sort("label"),
        _name,
        what=what,
        expected=expected,
        todo=todo,
    )
    if "deprecated" in table.columns:
        old = (
            used.join(table.filter(pl.col("deprecated").fill_null(False)), on="label")
            .sort("label")
            .select("label", "title")
        )
        what, expected = (
            "labels are deprecated in the vocabulary",
            "labels that may still be assigned",
        )
        todo = "replace them by their successors, if they are to be assigned again"
        yield from report_rows(old, _name, what=what, expected=expected, todo=todo)
    key = pl.col("title").str.to_lowercase().str.strip_chars()
    titled = used.join(table.drop_nulls("title"), on="label", how="inner").with_columns(key=key)
    shared = titled.filter(
        (pl.col("key") != "") & (pl.col("label").n_unique().over("key") > 1)
    ).sort("key", "label")
    what, todo = (
        "labels share their title with another",
        f"{_JOIN}; else give them titles that differ",
    )
    rows = shared.select("title", "label")
    yield from report_rows(
        rows,
        "'{}' ({})".format,
        what=what,
        expected="a title for each label",
        todo=todo,
        level="note",
    )


def _all_labels(frames: Frames) -> pl.DataFrame:
    return pl.concat(
        count_labels(tidy(frame)).select("label") for frame in frames.values()
    ).unique()


def _name(label: str, title: str | None = None) -> str:
    return f"'{reveal(label)}'" + (f" ({title})" if title else "")


def _one_letter_apart(words: pl.DataFrame) -> list[tuple[str, str]]:
    """Pairs of labels whose keys are equal when one letter is left out of one or both; of very
    many labels, of the first alone.
    """
    buckets: dict[str, list[tuple[str, str]]] = {}
    for label, key in words.select("label", "key").sort("label").head(_COMPARED).iter_rows():
        for cut in {key, *(key[:place] + key[place + 1 :] for place in range(len(key)))}:
            buckets.setdefault(cut, []).append((label, key))
    pairs = set()
    for bucket in buckets.values():
        first, key = bucket[0]
        pairs |= {
            (first, label)
            for label, other in bucket[1:]
            if other != key and _is_one_edit(key, other)
        }
    return sorted(pairs)


def _is_one_edit(first: str, second: str) -> bool:
    """Whether one letter is added, left out or replaced."""
    longer, shorter = sorted((first, second), key=len, reverse=True)
    if len(longer) == len(shorter):
        return sum(a != b for a, b in zip(first, second, strict=True)) == 1
    return len(longer) == len(shorter) + 1 and any(
        longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer))
    )
