"""`plant review`: sheets for people who accept and reject labels, and the training records that
come of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import (
    Column,
    Corpus,
    LabelIndex,
    Reporter,
    Result,
    SilentReporter,
    StageContext,
    Table,
    UsageError,
    near_names,
)
from plant_cli.api.errors import first_names
from plant_cli.data.files import refuse_replacing, require_free
from plant_cli.data.loading import guess_text
from plant_cli.data.printed_tables import show_count
from plant_cli.data.tables import name_beside, output_format, write_table
from plant_cli.evaluation.systems import find_chosen
from plant_cli.scoring.decisions import ASSIGN
from plant_cli.scoring.new_texts import STDIN, NewTexts, TextReader
from plant_cli.scoring.opened_models import open_in
from plant_cli.scoring.review_sheets import (
    ACCEPT,
    REJECT_LABEL,
    TEXT_IN_SHEET,
    sheet_format,
    write_sheet,
)
from plant_cli.scoring.suggested_documents import Suggesting
from plant_cli.scoring.suggestion_files import texts_together, write_kept
from plant_cli.scoring.top_labels import Scoring
from plant_review import ReviewExportOptions, ReviewImportOptions
from plant_review.corrected_corpus import LabelledTable
from plant_review.reviewed_rows import ReviewedRow, find_conflicts, read_sheet, take_latest
from plant_review.shortened_ids import find_again, may_be

SHOWN = 10  # conflicts in the table
ALIKE_TEXTS = 0.8  # share of the characters that the beginnings of one text have in common


def export_sheet(context: StageContext, options: ReviewExportOptions) -> Result:
    """Score a split of the run, or new texts, and write a sheet; the run does not change."""
    output = Path(options.output)
    if options.path == STDIN:
        what, where = "standard input cannot be read again", "plant review export -"
        raise UsageError(what, where=where, expected="a file of texts", todo="name another file")
    refuse_replacing(options.output, options.path)
    require_free(output, force=context.force)
    whole = sheet_format(output) == ".jsonl"
    new = _open(context, options)
    model = context.input("finetune", context.tag)
    opened = open_in(context, find_chosen(context, options.thresholds, model))
    suggesting = Suggesting(
        opened=opened,
        scoring=Scoring(
            name="texts",
            k=options.top_k,
            batch=options.micro_batch,
            reporter=SilentReporter(),
            should_stop=lambda: context.stopping,
            reasons=opened.model.scorers is not None,
        ),
        kept=None if whole else TEXT_IN_SHEET,
        others=options.others,
    )
    made_by = options.model_dump(exclude={"output", "path", "micro_batch"}, mode="json")
    return write_kept(context, suggesting, new, {output: write_sheet}, made_by)


def _open(context: StageContext, options: ReviewExportOptions) -> NewTexts:
    size = texts_together(context)
    if options.path is not None:
        return _reader(context, options.text_column, options.id_column).open(options.path, size)
    split = context.corpus().split(options.split)
    ids, texts, starts = list(split.doc_ids), list(split.texts), range(0, len(split), size)
    return NewTexts(
        blocks=((ids[start : start + size], texts[start : start + size]) for start in starts),
        total=len(split),
    )


def _reader(context: StageContext, text_column: str | None, id_column: str | None) -> TextReader:
    return TextReader(
        data=context.data,
        reporter=context.reporter,
        text_column=text_column,
        id_column=id_column,
        guess=partial(guess_text, context),
    )


def import_sheets(context: StageContext, options: ReviewImportOptions) -> Result:
    """Read decisions and write the documents that they correct as training records; the run
    does not change.
    """
    output = Path(options.output)
    refuse_replacing(options.output, *options.sheets, options.texts, options.into)
    require_free(output, force=context.force)
    output_format(output)
    corpus, into = context.corpus(), _open_table(context, options)
    rows = [row for sheet in options.sheets for row in read_sheet(Path(sheet), context.reporter)]
    named, lost = _name_labels(rows, corpus.labels, context.reporter)
    known = _find_texts(context, options, corpus, named)
    named = _find_changed(context, options, corpus, named, known)
    known = {**_find_texts(context, options, corpus, named), **known}
    places: dict[str, int] = {}
    if into is not None:
        texts = {doc_id: text for doc_id, (text, _) in known.items()}
        places = into.find(texts, {row.doc_id for row in named})
        own = {doc_id: (into.texts[row], into.labels[row]) for doc_id, row in places.items()}
        known = {**known, **own}
    refused = [(row, why) for row in named if (why := _find_fault(row, known))]
    faulty = {id(row) for row, _ in refused}
    decided = take_latest([row for row in named if id(row) not in faulty])
    conflicts = find_conflicts(decided)
    records = list(_correct(decided, known, conflicts, keep=options.undecided == "keep"))
    unused = [*lost, *refused]
    if not records:
        raise _nothing_decided(options.sheets, unused)
    if unused:
        _keep_aside(context, unused, name_beside(output.with_suffix(".jsonl"), "aside"), known)
    if into is None:
        write_table(pl.DataFrame(records, schema=RECORD_SCHEMA), output)
    else:
        done = _write_into(into, records, places, output)
        context.reporter.note(f"{output} is {options.into}: {done}")
    return _tell(decided, records, conflicts, output)


def _find_fault(row: ReviewedRow, known: Known) -> str:
    """Why a decision cannot be used; empty if it can."""
    if row.doc_id not in known:
        return "the document is not known"
    alike = _begins_alike(row.text, known[row.doc_id][0])
    return "" if alike else "the sheet shows another text of this document"


def _nothing_decided(
    sheets: Sequence[str], unused: Iterable[tuple[ReviewedRow, str]]
) -> UsageError:
    reasons = (
        f"{why} ({show_count(count, 'row')})"
        for why, count in Counter(why for _, why in unused).items()
    )
    return UsageError(
        "; ".join(("no document has a decision that can be used", *reasons)),
        where=", ".join(sheets),
        expected=f"{ACCEPT} or {REJECT_LABEL} in the column decision, and ids of documents and "
        "labels as they were exported",
        todo="review the sheet first; `--undecided keep` takes what is assigned; --texts "
        "names the file with the texts",
    )


def _write_into(
    table: LabelledTable,
    records: Sequence[Mapping[str, Any]],
    places: Mapping[str, int],
    output: Path,
) -> str:
    """Write a person's own table with the corrected labels; what was done, in words."""
    corrected = {places[one["doc_id"]]: one["labels"] for one in records if one["doc_id"] in places}
    added = [
        (one["doc_id"], one["text"], one["labels"])
        for one in records
        if one["doc_id"] not in places
    ]
    table.write(corrected, added, output)
    return (
        f"labels corrected in {show_count(len(corrected), 'row')}, "
        f"{show_count(len(added), 'row')} added"
    )


def _keep_aside(
    context: StageContext, unused: Sequence[tuple[ReviewedRow, str]], aside: Path, known: Known
) -> None:
    """Write the rows that cannot be used, before the output says that the import is done; those
    that an import left which was killed are the same.
    """
    rows = pl.DataFrame([{**asdict(row), "why": why} for row, why in unused])
    if not aside.is_file() or aside.read_bytes() != rows.write_ndjson().encode():
        require_free(aside, force=context.force)
        write_table(rows, aside)
    for why in dict.fromkeys(why for _, why in unused):
        those = [row for row, reason in unused if reason == why]
        near = near_names(those[0].doc_id, list(known)) if why.startswith("the document") else ""
        first = (
            f"'{those[0].doc_id}' in "
            f"{those[0].place}{f' ({near})' if near.startswith('did') else ''}"
        )
        if why.startswith("the label"):
            first = f"'{those[0].label or those[0].title}' in {those[0].place}"
        context.reporter.warn(
            f"{why}: {show_count(len(those), 'row')} kept in {aside}, first {first}"
        )


def _open_table(context: StageContext, options: ReviewImportOptions) -> LabelledTable | None:
    """The table of --into."""
    if options.into is None:
        return None
    named = {"text_column": options.text_column, "id_column": options.id_column}
    return LabelledTable.read(
        options.into,
        context.data.model_copy(update={name: given for name, given in named.items() if given}),
    )


RECORD_SCHEMA: dict[str, Any] = {
    "doc_id": pl.String,
    "text": pl.String,
    "labels": pl.List(pl.String),
    "reviewer": pl.String,
    "time": pl.String,
}
Known = Mapping[str, tuple[str, Sequence[str]]]  # text and gold labels of documents, by id


def _name_labels(
    rows: Iterable[ReviewedRow], labels: LabelIndex, reporter: Reporter
) -> tuple[list[ReviewedRow], list[tuple[ReviewedRow, str]]]:
    """The rows with ids of labels of the run, by id or else by title; and those of other labels.

    An id that a spreadsheet changed is known by the title beside it.
    """
    ids, titles = set(labels.ids), Counter(title for title in labels.titles if title)
    by_title = {
        title: label
        for label, title in zip(labels.ids, labels.titles, strict=True)
        if title and titles[title] == 1
    }
    named, lost = [], []
    changed: dict[str, str] = {}
    for row in rows:
        label = (
            row.label
            if row.label in ids
            else by_title.get(row.title if not row.label else row.label)
        )
        titled = by_title.get(row.title)
        if label is None and titled is not None and may_be(row.label, titled):
            label = changed[row.label] = titled
        if label is None:
            lost.append((row, "the label is retired or unknown"))
        else:
            named.append(replace(row, label=label))
    _tell_changed(changed, "labels", "title", reporter)
    return named, lost


def _tell_changed(changed: Mapping[str, str], what: str, by: str, reporter: Reporter) -> None:
    """Say which ids of a sheet a spreadsheet changed."""
    if changed:
        shown = first_names([f"'{own}' is '{seen}'" for seen, own in changed.items()], 3)
        reporter.warn(
            f"a spreadsheet changed ids of {what}, found again by the {by} beside them: {shown} "
            "in the sheet (a sheet in .xlsx keeps ids as they are)"
        )


def _find_changed(
    context: StageContext,
    options: ReviewImportOptions,
    corpus: Corpus,
    rows: Sequence[ReviewedRow],
    known: Known,
) -> list[ReviewedRow]:
    """The rows with the ids of their documents, where a spreadsheet changed these."""
    strange = {
        (row.doc_id, row.text)
        for row in rows
        if row.doc_id not in known or not _begins_alike(row.text, known[row.doc_id][0])
    }
    found = find_again(strange, _all_texts(context, options, corpus)) if strange else {}
    moved = {pair: own for pair, own in found.items() if own != pair[0]}
    _tell_changed(
        {seen: own for (seen, _), own in moved.items()}, "documents", "text", context.reporter
    )
    return [replace(row, doc_id=moved.get((row.doc_id, row.text), row.doc_id)) for row in rows]


def _all_texts(
    context: StageContext, options: ReviewImportOptions, corpus: Corpus
) -> Iterator[tuple[str, str]]:
    """The documents that a sheet may be about, with their texts."""
    yield from _given_texts(context, options)
    for name in corpus.sizes:
        split = corpus.split(name)
        yield from zip(split.doc_ids, split.texts, strict=True)


def _given_texts(context: StageContext, options: ReviewImportOptions) -> Iterator[tuple[str, str]]:
    """The documents of --texts."""
    if options.texts is not None:
        reader = _reader(context, options.text_column, options.id_column)
        for ids, texts in reader.open(options.texts).blocks:
            yield from zip(ids, texts, strict=True)


def _find_texts(
    context: StageContext, options: ReviewImportOptions, corpus: Corpus, rows: Sequence[ReviewedRow]
) -> Known:
    """Text and gold labels of the documents: of whole texts in JSON lines, else of --texts,
    else of the run's corpus.
    """
    wanted = {row.doc_id for row in rows}
    known: dict[str, tuple[str, Sequence[str]]] = {}
    whole = {row.doc_id: row.text for row in rows if row.text and row.whole}
    for doc_id, text in _given_texts(context, options):
        if doc_id in wanted and doc_id not in whole:
            known[doc_id] = text, ()
    for name in corpus.sizes:
        if wanted <= known.keys():
            break
        split = corpus.split(name)
        for at, doc_id in enumerate(split.doc_ids):
            wants = doc_id in wanted - known.keys()
            if wants and whole.get(doc_id, split.texts[at]) == split.texts[at]:
                gold = split.gold.indices[split.gold.indptr[at] : split.gold.indptr[at + 1]]
                known[doc_id] = split.texts[at], [corpus.labels.ids[label] for label in gold]
    return {**{doc_id: (text, ()) for doc_id, text in whole.items()}, **known}


def _begins_alike(shown: str, text: str) -> bool:
    """Whether a text begins as a sheet shows it, but for what a spreadsheet program or a
    reviewer changed.
    """
    shown, text = (" ".join(one[:TEXT_IN_SHEET].split()) for one in (shown, text))
    text = text[: len(shown)]
    return (
        shown == text or SequenceMatcher(None, shown, text, autojunk=False).ratio() >= ALIKE_TEXTS
    )


def _correct(
    rows: Iterable[ReviewedRow],
    known: Known,
    conflicts: Mapping[tuple[str, str], Any],
    *,
    keep: bool,
) -> Iterator[dict[str, Any]]:
    """A record for each document: its gold labels, where it has any, with those that were
    accepted and without those rejected.
    """
    documents = defaultdict[str, list[ReviewedRow]](list)
    for row in rows:
        documents[row.doc_id].append(row)
    for doc_id, found in documents.items():
        agreed = [row for row in found if (doc_id, row.label) not in conflicts]
        decided = [row for row in agreed if row.decision]
        if decided or keep:
            assigned = [row.label for row in agreed if keep and row.band == ASSIGN]
            text, gold = known[doc_id]
            yield {
                "doc_id": doc_id,
                "text": text,
                "labels": _correct_labels([*gold, *assigned], decided),
                "reviewer": ", ".join(dict.fromkeys(row.who for row in decided)),
                "time": max(decided, key=lambda row: row.moment).time if decided else "",
            }


def _correct_labels(before: Iterable[str], decided: Sequence[ReviewedRow]) -> list[str]:
    """Labels with those that were accepted, and without those rejected."""
    said = {row.label: row.decision for row in decided}
    accepted = [label for label, decision in said.items() if decision == ACCEPT]
    labels = dict.fromkeys([*before, *accepted])
    return [label for label in labels if said.get(label) != REJECT_LABEL]


def _tell(
    rows: Sequence[ReviewedRow],
    records: Sequence[Mapping[str, Any]],
    conflicts: Mapping[tuple[str, str], Sequence[ReviewedRow]],
    output: Path,
) -> Result:
    counts = {
        "documents": len(records),
        "accepted": sum(row.decision == ACCEPT for row in rows),
        "rejected": sum(row.decision == REJECT_LABEL for row in rows),
        "undecided": sum(not row.decision for row in rows),
        "conflicts": len(conflicts),
    }
    tables = [
        Table(
            title=f"Written to {output}",
            columns=[Column(name=name, kind="count") for name in counts],
            rows=[list(counts.values())],
        )
    ]
    if conflicts:
        listed = [
            [
                doc_id,
                label,
                found[0].title,
                "; ".join(f"{row.who}: {row.decision}" for row in found),
            ]
            for (doc_id, label), found in list(conflicts.items())[:SHOWN]
        ]
        tables.append(
            Table(
                title="Conflicts: these labels stay as they were",
                columns=[Column(name=name) for name in ("document", "label", "title", "decisions")],
                rows=listed,
                notes=[f"{len(conflicts) - SHOWN} more: --format json lists all"]
                if len(conflicts) > SHOWN
                else [],
            )
        )
    every = [
        {
            "doc_id": doc_id,
            "label": label,
            "decisions": {row.place: [row.who, row.decision] for row in found},
        }
        for (doc_id, label), found in conflicts.items()
    ]
    return Result(
        tables=tables, data={**counts, "conflicts": every, "written": str(output)}, summary=counts
    )
