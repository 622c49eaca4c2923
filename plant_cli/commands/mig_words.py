"""The actions `plant mig show` and `plant mig edit`: show the words of a label, and correct
them before training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import (
    ArtefactError,
    Column,
    DataError,
    Result,
    StageContext,
    Table,
    UsageError,
    near_names,
)
from plant_cli.api.errors import first_names
from plant_cli.commands.command_options import EditOptions, MigShowOptions
from plant_cli.data.words import words as find_in
from plant_cli.relevance.relevance_table import (
    RELEVANCE_LABELS_FILE,
    WORDS_FILE,
    LabelEdits,
    read_counted_words,
    read_edits,
    read_forms,
    read_label_index,
    read_label_words,
    read_pairs,
    set_aside,
    write_edits,
)
from plant_cli.runs.lock import hold_lock

LABELS_NAMED = 5  # labels in a message
FORMS_SHOWN = 6  # of a word
WAIT = 10.0  # seconds that an edit waits for another one to end


def show_words(context: StageContext, options: MigShowOptions) -> Result:
    """Show the kept words of a label after edits: value, relevance and counts."""
    folder = context.input("mig")
    label = _find_label(context, folder, options.label, partly=True)
    edits = read_edits(folder).get(label["label"], LabelEdits())
    words = {
        row["word"]: row for row in read_label_words(folder, label["label"]).iter_rows(named=True)
    }
    forms, rows = read_forms(folder), []
    for word in dict.fromkeys([*words, *edits.allow]):
        row = words.get(word, dict.fromkeys(("value", "docs_with_both", "docs_with_word")))
        edit = "denied" if word in edits.deny else "allowed" if word in edits.allow else ""
        relevance = 0.0 if word in edits.deny else edits.allow.get(word, row.get("relevance", 0.0))
        value = None if row["value"] is None else float(f"{row['value']:.4g}")
        counts = (row["docs_with_both"], row["docs_with_word"])
        rows.append(
            (
                word,
                value,
                round(relevance, 4),
                *counts,
                edit,
                first_names(forms.get(word, []), FORMS_SHOWN),
            )
        )
    rows.sort(key=lambda row: -row[2])
    table = Table(
        title=f"{label['label']} {label['title'] or ''}".strip(),
        columns=[
            Column(name="word"),
            Column(name="value", kind="exact"),
            Column(name="relevance", kind="exact"),
            Column(name="documents with both", kind="count"),
            Column(name="documents with word", kind="count"),
            Column(name="edit"),
            *([Column(name="forms")] if forms else []),
        ],
        rows=[row if forms else row[:-1] for row in rows[: options.limit]],
        notes=[
            f"{label['docs_with_label']} training documents with the label; "
            f"{min(options.limit, len(rows))} of {len(rows)} words shown"
        ],
    )
    return Result(tables=[table])


def edit(context: StageContext, options: EditOptions) -> Result:
    """Deny or allow words of a label, or list or clear edits."""
    if options.list or not context.run_path.is_dir():
        return _edit(context, options)
    with hold_lock(
        context.run_path, "mig edit", wait=WAIT
    ):  # the relevance may be new after the wait
        return _edit(context, options)


def _edit(context: StageContext, options: EditOptions) -> Result:
    folder = context.input("mig")
    label = (
        None
        if options.label is None
        else _find_label(context, folder, options.label, partly=False)["label"]
    )
    word_of = _find_words(context, folder)
    allowed = dict(map(_parse_allowed, options.allow))
    later = LabelEdits(
        deny=frozenset(map(word_of, options.deny)),
        allow={word_of(word): value for word, value in allowed.items()},
    )
    _check_edit(folder, options, label, later)
    if options.list:
        return _list_edits(folder, read_edits(folder), label, changed=False)
    if label is None:
        forgotten = _clear_edits(folder)
        return _list_edits(
            folder,
            {},
            None,
            changed=forgotten is not None,
            notes=[forgotten or "there were no edits to forget"],
        )
    edits = read_edits(folder)
    edits[label] = (LabelEdits() if options.clear else edits.get(label, LabelEdits())).then(later)
    write_edits(folder, edits)
    return _list_edits(folder, edits, label, changed=True)


def _find_words(context: StageContext, folder: Path) -> Callable[[str], str]:
    """A function that gives the word that a form is counted as."""
    pairs = read_pairs(folder)
    known, word_of = {word for word, _ in pairs}, {form: word for word, form in pairs}

    def find(form: str) -> str:
        spelt = next(
            (word for word, *place in find_in(form, "mixed") if place == [0, len(form)]), form
        )  # `Type 2` is `type2`
        word = form if form in known else word_of.get(spelt, spelt)
        if word != form:
            context.reporter.note(f"'{form}' is counted as '{word}'")
        return word

    return find


def _clear_edits(folder: Path) -> str | None:
    """Forget all edits and describe where they are kept; None if there were none."""
    try:
        edits = read_edits(folder)
        counted = (
            f"{sum(len(entry.deny) + len(entry.allow) for entry in edits.values())} edits of "
            f"{len(edits)} labels"
        )
    except ArtefactError:
        counted = "edits that could not be read"
    kept = set_aside(folder)
    return None if kept is None else f"forgotten: {counted}; {kept} keeps them"


def _check_edit(folder: Path, options: EditOptions, label: str | None, later: LabelEdits) -> None:
    words = [*later.deny, *later.allow]
    both = sorted(later.deny & later.allow.keys())
    if both:
        raise UsageError(
            f"'{both[0]}' is denied and allowed at once",
            where="mig edit, options deny and allow",
            expected="each word in one of them",
            todo=f"leave out --deny {both[0]} or --allow {both[0]}=…",
        )
    if not words and not options.list and not options.clear:
        raise UsageError(
            "there is nothing to edit",
            where="mig edit",
            expected="--deny WORD, --allow WORD=0.8, --list or --clear",
            todo="add one of them",
        )
    if words and (options.list or label is None):
        raise UsageError(
            "words are edited for one label",
            where="mig edit",
            expected="a label and no --list",
            todo="`plant mig edit LABEL --deny WORD`",
        )
    known = set(read_counted_words(folder)["word"].to_list()) if words else set()
    for word in words:
        if word not in known:
            raise UsageError(
                f"no training document has the word '{word}' often enough",
                where=f"{len(known)} words of {folder / WORDS_FILE}",
                expected=near_names(word, known),
                todo="use a lower-cased word of the vocabulary; `plant mig --min-df 1 --force` "
                "keeps rare ones",
            )


def _parse_allowed(text: str) -> tuple[str, float]:
    word, _, number = text.rpartition("=")
    try:
        relevance = float(number)
    except ValueError:
        relevance = -1.0
    if not word or not 0.0 <= relevance <= 1.0:
        raise UsageError(
            f"'{text}' is not a word with a relevance",
            where="--allow",
            expected="WORD=NUMBER from 0 to 1",
            todo="such as --allow stroke=0.8",
        )
    return word, relevance


def _find_label(
    context: StageContext, folder: Path, wanted: str, *, partly: bool
) -> dict[str, Any]:
    """The row of `labels.parquet` with this id, else the only one with this id or title in any
    case, or with `partly` in a part of it.
    """
    index = read_label_index(folder)
    names, lowered = (
        [pl.col(name).str.to_lowercase() for name in ("label", "title")],
        wanted.lower(),
    )
    equal = pl.any_horizontal([name == lowered for name in names])
    part = pl.any_horizontal([name.str.contains(lowered, literal=True) for name in names])
    for match in (pl.col("label") == wanted, equal, part):
        rows = index.filter(match)
        if len(rows):
            break
    if len(rows) == 1 and (partly or match is not part):
        row = rows.row(0, named=True)
        if row["label"] != wanted:
            context.reporter.note(
                f"'{wanted}' is taken for the label '{row['label']}'"
                + (f" ({row['title']})" if row["title"] else "")
            )
        return row
    dash = any(label.startswith("-") for label in rows["label"])
    labels = [
        f"{label} ({title})" if title else label
        for label, title in rows.select("label", "title").iter_rows()
    ]
    expected = f"one of {first_names(labels, LABELS_NAMED)}"
    if not labels:
        near = near_names(wanted, [*index["label"], *index["title"].drop_nulls()])
        expected = near if "did you mean" in near else near_names(wanted, index["label"])
    many = f"{len(rows)} labels have" if len(rows) > 1 else "one label has"
    raise DataError(
        f"{many} '{wanted}' {'as' if match is equal else 'in'} the id or title"
        if len(rows)
        else f"no label is named '{wanted}'",
        where=str(folder / RELEVANCE_LABELS_FILE),
        expected=expected,
        todo=f"give the complete id of one label, as in `plant mig {'show' if partly else 'edit'} "
        f"{'-- -ID' if dash else 'ID'}`",
    )


def _list_edits(
    folder: Path,
    edits: dict[str, LabelEdits],
    only: str | None,
    *,
    changed: bool,
    notes: Sequence[str] = (),
) -> Result:
    titles = dict(read_label_index(folder).select("label", "title").iter_rows())
    rows: list[tuple[str, str | None, str, str, float | None]] = []
    for label, entry in sorted(edits.items()):
        if only in (None, label):
            title = titles.get(label)
            rows.extend((label, title, word, "denied", None) for word in sorted(entry.deny))
            rows.extend(
                (label, title, word, "allowed", relevance)
                for word, relevance in sorted(entry.allow.items())
            )
    columns = [
        Column(name="label"),
        Column(name="title"),
        Column(name="word"),
        Column(name="edit"),
        Column(name="relevance", kind="exact"),
    ]
    return Result(
        tables=[Table(title="Edits of relevance", columns=columns, rows=rows, notes=notes)],
        next_step="plant pretrain-attn --force" if changed else None,
    )
