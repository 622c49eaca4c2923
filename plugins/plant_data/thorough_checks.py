"""What `plant data check` looks for beside what every run does: slips that no run stops at."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from plant_cli.api import Dataset
from plant_cli.data.checks import (
    REQUIRED,
    Finding,
    FramesCheck,
    documents_that,
    list_shared,
    quote_label,
    report_leaks,
    report_rows,
)
from plant_cli.data.documents import (
    BETWEEN_WORDS,
    WIDTHLESS,
    Frames,
    explode_labels,
    spelling_key,
    tidy,
)
from plant_cli.data.labels import count_labels
from plant_cli.data.tables import collect

SHORT_TEXT = 20  # characters; less than this is seldom a document


_JOIN = "make them one label, if they mean the same"


find_repeated_texts = documents_that(
    pl.col("same").is_duplicated() & pl.col("same").is_not_null(),
    what="documents have a text that occurs twice in their split",
    expected="each text once",
    todo="drop the repetitions, or join their labels",
)


find_untidy_labels = documents_that(
    pl.col("labels") != pl.col("tidy"),
    what="documents have labels with blanks around them, repeated or empty; they are put right "
    "on reading",
    expected="each label once, without blanks around it",
    todo="nothing; `plant data convert` writes them put right",
    level="note",
)


_DECODED = "text that was read in its own encoding"


_DECODE = "make the corpus again from its source, decoding it as what it is"


find_replaced = documents_that(
    pl.col("replaced"),
    what="documents hold replacement characters (U+FFFD)",
    expected=_DECODED,
    todo=_DECODE,
)


find_control_characters = documents_that(
    pl.col("control"), what="documents hold control characters", expected=_DECODED, todo=_DECODE
)


find_garbled = documents_that(
    pl.col("garbled"),
    what="documents hold UTF-8 that was read in another encoding (Ã© for é, â€™ for an apostrophe)",
    expected=_DECODED,
    todo="read the source as UTF-8; a file that was saved so is mended by `iconv -f UTF-8 -t "
    "WINDOWS-1252`, as far as that can write it",
)


find_hidden_characters = documents_that(
    pl.col("hidden"),
    what="documents hold characters without width (soft hyphens, U+200B, U+FEFF), which cut "
    "words apart",
    expected="words without characters that cannot be seen",
    todo="--fix removes them",
)


find_markup = documents_that(
    pl.col("markup"),
    what="documents hold tags or entities of HTML (<br>, &nbsp;), which count as words",
    expected="plain text",
    todo="take the text out of the HTML where the corpus is made",
)


find_short_texts = documents_that(
    pl.col("inner_characters").is_between(1, SHORT_TEXT - 1),
    what=f"documents have fewer than {SHORT_TEXT} characters",
    expected="texts from which a person could tell the labels",
    todo="check that --text-column names the whole text",
)


def find_hidden_labels(frames: Frames) -> Iterator[Finding]:
    """Labels with characters that cannot be seen."""
    rows = _all_labels(frames).filter(pl.col("label").str.contains(WIDTHLESS)).sort("label")
    what, expected = (
        "labels hold characters that cannot be seen",
        "labels that are what they look like",
    )
    yield from report_rows(
        rows, quote_label, what=what, expected=expected, todo="--fix removes them"
    )


def find_near_leaks(frames: Frames) -> Iterator[Finding]:
    """The same text in two splits but for case, punctuation and blanks."""
    near = list_shared(frames, "alike").join(
        list_shared(frames, "same"), on=["doc_id", "split"], how="anti", maintain_order="left"
    )
    yield from report_leaks(
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
        twins, quote_label, what=what, expected="one spelling for each label", todo=_JOIN
    )


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
        quote_label,
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
        yield from report_rows(old, quote_label, what=what, expected=expected, todo=todo)
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
