"""Checks of a corpus. Each is a function from frames to findings; fatal findings stop a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError
from plant_cli.data.documents import BETWEEN_WORDS, Frames, explode_labels, tidy
from plant_cli.data.labels import count_labels
from plant_cli.data.tables import collect

Level = Literal["fatal", "warning", "note"]
LEVELS: tuple[Level, ...] = ("fatal", "warning", "note")
SHORT = 20  # characters; less than this is seldom a document
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of problem in one split."""

    what: str  # a sentence without its subject's number ("documents have an empty text")
    where: str  # the split, and the first few documents or labels
    count: int  # how many there are
    expected: str
    todo: str
    # `fatal`: no run can be made of this corpus; `warning`: something is wrong; `note`: worth knowing, and often as it should be
    level: Level = "warning"

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} ({self.where})"

    def to_error(self) -> DataError:
        """The finding as the error that stops a run."""
        return DataError(f"{self.count:,} {self.what}", where=self.where, expected=self.expected, todo=self.todo)


Check = Callable[[Frames], Iterator[Finding]]
"""From the digests of documents (see `digests`), whose labels are as written, not tidied."""


def examine(frames: Frames, checks: tuple[Check, ...]) -> list[Finding]:
    """All findings of the given checks, the worst first."""
    return sorted((finding for check in checks for finding in check(frames)), key=lambda finding: LEVELS.index(finding.level))


def _documents_that(condition: pl.Expr, *, what: str, expected: str, todo: str, level: Level = "warning") -> Check:
    """A check that names the documents of each split for which a condition holds; `tidy` has their labels as they are read."""

    def check(frames: Frames) -> Iterator[Finding]:
        for split, frame in frames.items():
            ids = frame.with_columns(tidy=tidy(frame)["labels"]).filter(condition)["doc_id"]
            if len(ids):
                where = f"{split}: " + show_some([f"'{doc_id}'" for doc_id in ids.head(_SHOWN + 1)], len(ids))
                yield Finding(what=what, where=where, count=len(ids), expected=expected, todo=todo, level=level)

    return check


find_empty_texts = _documents_that(
    pl.col("same").is_null(),
    what="documents have an empty text",
    expected="some text in each document",
    todo="remove these documents, or name the right column with --text-column",
    level="fatal",
)
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
    what="documents have labels with blanks around them, repeated or empty; they are put right on reading",
    expected="each label once, without blanks around it",
    todo="nothing; `plant data convert` writes them put right",
    level="note",
)
_DECODED = "text that was read in its own encoding"
_DECODE = "make the corpus again from its source, decoding it as what it is"
find_replaced = _documents_that(pl.col("replaced"), what="documents hold replacement characters (U+FFFD)", expected=_DECODED, todo=_DECODE)
find_control_characters = _documents_that(pl.col("control"), what="documents hold control characters", expected=_DECODED, todo=_DECODE)
find_short_texts = _documents_that(
    pl.col("inner_characters").is_between(1, SHORT - 1),
    what=f"documents have fewer than {SHORT} characters",
    expected="texts from which a person could tell the labels",
    todo="check that --text-column names the whole text",
)


def find_empty_train(frames: Frames) -> Iterator[Finding]:
    """No training documents, or none with a label."""
    train = frames.get("train", pl.DataFrame({"labels": []}, schema={"labels": pl.List(pl.String)}))
    if not tidy(train)["labels"].list.len().sum():
        yield Finding(
            what="of the training documents have a label",
            where=f"train, {train.height:,} documents",
            count=0,
            expected="at least one labelled training document",
            todo="name the right column with --labels-column, and check the values of the split column",
            level="fatal",
        )


def find_repeated_ids(frames: Frames) -> Iterator[Finding]:
    """Documents of one id, within a split or across splits, or without id."""
    ids = pl.concat(frame.select("doc_id", split=pl.lit(name)).with_row_index("row", offset=1) for name, frame in frames.items())
    repeated = ids.filter(pl.col("doc_id").is_duplicated() | pl.col("doc_id").is_null()).sort("doc_id", maintain_order=True)
    if repeated.height:
        yield Finding(
            what="documents share their id with another, or have none",
            where=show_some(
                [f"{'no id' if d is None else repr(d)}, document {r} of {s}" for r, d, s in repeated.head(_SHOWN + 1).iter_rows()],
                repeated.height,
                between="; ",
            ),
            count=repeated.height,
            expected="an id for each document, over all splits",
            todo="name another column with --id-column, or drop the repeated documents",
            level="fatal",
        )


def find_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text, to the letter, in two splits."""
    yield from _leak(_shared(frames, "same"), "documents have a text that another split also has")


def find_near_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text in two splits but for case, punctuation and blanks."""
    near = _shared(frames, "alike").join(_shared(frames, "same"), on=["doc_id", "split"], how="anti", maintain_order="left")
    yield from _leak(near, "documents have a text that another split also has, but for case, blanks and punctuation")


def find_twin_labels(frames: Frames) -> Iterator[Finding]:
    """Labels that differ only by case or by blanks within."""
    labels = pl.concat(explode_labels(tidy(frame)).select("label") for frame in frames.values()).unique()
    folded = labels.with_columns(key=pl.col("label").str.to_lowercase().str.replace_all(r"\s+", " "))
    twins = folded.filter(pl.col("key").is_duplicated()).sort("key", "label")
    if twins.height:
        yield Finding(
            what="labels differ from another only by case or blanks",
            where=show_some([f"'{label}'" for label in twins["label"].head(_SHOWN + 1)], twins.height),
            count=twins.height,
            expected="one spelling for each label",
            todo="make them one label, if they mean the same",
        )


REQUIRED: tuple[Check, ...] = (find_repeated_ids, find_empty_texts, find_empty_train, find_unlabelled, find_leaks)
"""Run before every experiment."""

THOROUGH: tuple[Check, ...] = (
    *REQUIRED,
    find_near_leaks,
    find_repeated_texts,
    find_untidy_labels,
    find_twin_labels,
    find_replaced,
    find_control_characters,
    find_short_texts,
)
"""Run by `plant data check`."""


def _shared(frames: Frames, key: str) -> pl.DataFrame:
    """Documents whose key also occurs in another split: `doc_id`, `split`, `key`, side by side by key, the first document first."""
    texts = pl.concat(frame.select("doc_id", split=pl.lit(name), key=key) for name, frame in frames.items()).with_row_index("row")
    shared = texts.filter(pl.col("key").is_not_null() & (pl.col("split").n_unique().over("key") > 1))
    return shared.sort(pl.col("row").min().over("key"), "row").drop("row")


def _leak(shared: pl.DataFrame, what: str) -> Iterator[Finding]:
    if shared.height:
        examples = [f"'{doc_id}' in {split}" for doc_id, split in shared.select("doc_id", "split").head(_SHOWN + 1).iter_rows()]
        yield Finding(
            what=what,
            where=show_some(examples, shared.height),
            count=shared.height,
            expected="test and validation texts that training has not seen",
            todo="drop them from train, or split again with `plant data split`",
        )


def show_some(examples: list[str], total: int, between: str = ", ") -> str:
    """The first few examples, and how many there are in all."""
    return between.join(examples[:_SHOWN]) + (f"{between}… ({total:,} in all)" if total > _SHOWN else "")


_SHOWN_LABELS = 6
_LONG = 6  # letters; shorter names differ by one letter as a rule
_COMPARED = 100_000  # labels, letter by letter
_MANY = 10  # times the median number of labels of a document
_LEAST = 20  # labels of a document; fewer are never too many


def find_near_labels(frames: Frames) -> Iterator[Finding]:
    """Labels that differ from another by punctuation, or, without digits, by one letter."""
    labels = _all_labels(frames)
    folded = labels.with_columns(key=pl.col("label").str.to_lowercase().str.replace_all(BETWEEN_WORDS, ""))
    spelled = folded.with_columns(loose=pl.col("label").str.to_lowercase().str.replace_all(r"\s+", " "))
    alike = spelled.filter((pl.col("key") != "") & (pl.col("loose").n_unique().over("key") > 1)).sort("key", "label")
    yield from _report(
        alike["label"].to_list(), "labels differ from another only by punctuation", "make them one label, if they mean the same"
    )
    words = folded.filter((pl.col("key").str.len_chars() >= _LONG) & ~pl.col("label").str.contains(r"\d"))
    pairs = [f"'{first}' and '{second}'" for first, second in _one_letter_apart(words)]
    if pairs:
        yield Finding(
            what="pairs of labels differ by one letter",
            where=show_some(pairs, len(pairs)) + (f"; only {_COMPARED:,} labels were compared" if words.height > _COMPARED else ""),
            count=len(pairs),
            expected="one spelling for each label",
            todo="make them one label, if one is a slip",
            level="note",
        )


def find_odd_label_counts(frames: Frames) -> Iterator[Finding]:
    """Documents with many times more labels than others have."""
    for name, frame in frames.items():
        counts = tidy(frame).select("doc_id", count=pl.col("labels").list.len())
        median = counts.filter(pl.col("count") > 0)["count"].median()
        limit = max(_LEAST, _MANY * (float(median) if isinstance(median, (int, float)) else 0))
        odd = counts.filter(pl.col("count") > limit).sort("count", "doc_id", descending=[True, False])
        if odd.height:
            examples = [f"'{doc_id}' with {count}" for doc_id, count in odd.head(_SHOWN_LABELS).iter_rows()]
            yield Finding(
                what=f"documents have more than {limit:,.0f} labels, {_MANY} times the median",
                where=f"{name}: {show_some(examples, odd.height)}",
                count=odd.height,
                expected="about as many labels as other documents have",
                todo="look at them: cells may have been cut at a wrong separator (--label-separator)",
            )


def find_unseen_labels(frames: Frames, titles: pl.DataFrame, titled: pl.DataFrame | None = None) -> Iterator[Finding]:
    """Labels that only validation or test have: no model can propose them, and they count as missed."""
    if "train" not in frames:
        return
    seen = count_labels(tidy(frames["train"])).select("label")
    seen = seen if titled is None else pl.concat([seen, titled.select("label")])
    for name, frame in frames.items():
        unseen = count_labels(tidy(frame)).join(seen, on="label", how="anti").sort("count", "label", descending=[True, False])
        if unseen.height:
            yield Finding(
                what=f"labels of {name} have no training document; their {unseen['count'].sum():,} assignments count as missed",
                where=f"{name}: {_name_some(unseen.join(titles, on='label', how='left', maintain_order='left'))}",
                count=unseen.height,
                expected="labels that also occur in train",
                todo="nothing: recall counts them as missed, and the reports say how many there are",
                level="note",
            )


def find_unknown_labels(dataset: Dataset, frames: Frames) -> Iterator[Finding]:
    """Labels of documents that the table of labels does not have or marks as deprecated, and titles that several labels share."""
    if dataset.labels is None:
        return
    table = collect(dataset.labels, "the table of labels").with_columns(pl.col("label", "title").cast(pl.String))
    used = _all_labels(frames)
    unknown = used.join(table, on="label", how="anti").sort("label")["label"].to_list()
    yield from _report(unknown, "labels are not in the table of labels", "add them, or name another --vocabulary or --titles")
    if "deprecated" in table.columns:
        old = used.join(table.filter(pl.col("deprecated").fill_null(False)), on="label").sort("label")
        if old.height:
            yield Finding(
                what="labels are deprecated in the vocabulary",
                where=_name_some(old),
                count=old.height,
                expected="labels that may still be assigned",
                todo="replace them by their successors, if they are to be assigned again",
            )
    titled = used.join(table.drop_nulls("title"), on="label", how="inner").with_columns(
        key=pl.col("title").str.to_lowercase().str.strip_chars()
    )
    shared = titled.filter((pl.col("key") != "") & (pl.col("label").n_unique().over("key") > 1)).sort("key", "label")
    names = [f"'{title}' ({label})" for label, title in shared.select("label", "title").head(_SHOWN_LABELS).iter_rows()]
    if names:
        yield Finding(
            what="labels share their title with another",
            where=show_some(names, shared.height),
            count=shared.height,
            expected="a title for each label",
            todo="make them one label, if they mean the same; else give them titles that differ",
            level="note",
        )


def _all_labels(frames: Frames) -> pl.DataFrame:
    return pl.concat(count_labels(tidy(frame)).select("label") for frame in frames.values()).unique()


def _name_some(labels: pl.DataFrame) -> str:
    """The first few of `label`, each with its `title`, and how many there are in all."""
    named = [
        f"'{label}'" + (f" ({title})" if title else "") for label, title in labels.head(_SHOWN_LABELS).select("label", "title").iter_rows()
    ]
    return show_some(named, labels.height)


def _one_letter_apart(words: pl.DataFrame) -> list[tuple[str, str]]:
    """Pairs of labels whose keys are equal when one letter is left out of one or both; of very many labels, of the first alone."""
    buckets: dict[str, list[tuple[str, str]]] = {}
    for label, key in words.select("label", "key").sort("label").head(_COMPARED).iter_rows():
        for cut in {key, *(key[:place] + key[place + 1 :] for place in range(len(key)))}:
            buckets.setdefault(cut, []).append((label, key))
    pairs = set()
    for bucket in buckets.values():
        first, key = bucket[0]
        pairs |= {(first, label) for label, other in bucket[1:] if other != key and _is_one_edit(key, other)}
    return sorted(pairs)


def _is_one_edit(first: str, second: str) -> bool:
    """Whether one letter is added, left out or replaced."""
    if len(first) == len(second):
        return sum(a != b for a, b in zip(first, second, strict=True)) == 1
    longer, shorter = sorted((first, second), key=len, reverse=True)
    return len(longer) == len(shorter) + 1 and any(longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer)))


def _report(labels: list[str], what: str, todo: str) -> Iterator[Finding]:
    if labels:
        where = show_some([f"'{label}'" for label in labels[:_SHOWN_LABELS]], len(labels))
        yield Finding(what=what, where=where, count=len(labels), expected="one spelling for each label, that the table has", todo=todo)
