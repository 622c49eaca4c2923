"""Checks of the labels: spellings that are nearly the same, titles that two labels share, what the vocabulary does not know."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from plant_cli.api.corpus import Dataset
from plant_cli.corpus.checks import Finding, show_some
from plant_cli.corpus.digests import BETWEEN_WORDS
from plant_cli.corpus.frames import Frames, tidy
from plant_cli.corpus.labels import count_labels
from plant_cli.kit.tables import collect

_SHOWN = 6
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
            examples = [f"'{doc_id}' with {count}" for doc_id, count in odd.head(_SHOWN).iter_rows()]
            yield Finding(
                what=f"documents have more than {limit:,.0f} labels, {_MANY} times the median",
                where=f"{name}: {show_some(examples, odd.height)}",
                count=odd.height,
                expected="about as many labels as other documents have",
                todo="look at them: cells may have been cut at a wrong separator (--label-separator)",
            )


def find_unseen_labels(frames: Frames, titles: pl.DataFrame, titled: pl.DataFrame | None = None) -> Iterator[Finding]:
    """Labels that only validation or test have: no model can propose them, and they count as missed.

    Args:
        frames: the digests of documents.
        titles: `label` and `title`, each label once.
        titled: `label` of those that can be proposed without a training document; None: there are none.
    """
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
                expected="labels that train has too",
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
    names = [f"'{title}' ({label})" for label, title in shared.select("label", "title").head(_SHOWN).iter_rows()]
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
    named = [f"'{label}'" + (f" ({title})" if title else "") for label, title in labels.head(_SHOWN).select("label", "title").iter_rows()]
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
        where = show_some([f"'{label}'" for label in labels[:_SHOWN]], len(labels))
        yield Finding(what=what, where=where, count=len(labels), expected="one spelling for each label, that the table has", todo=todo)
