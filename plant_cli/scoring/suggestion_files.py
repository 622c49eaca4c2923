"""Suggested labels as files: tables with a row for each suggestion or for each text, and what
other tools read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
from scipy.sparse import csr_array, save_npz

from plant_cli.api import Result, StageContext, UsageError
from plant_cli.data.files import hash_file, replacing, require_free
from plant_cli.data.lines import writing_text
from plant_cli.data.printed_tables import show_count
from plant_cli.data.records import STAGE_FILE
from plant_cli.data.tables import guard_cells, output_format, write_table, write_text_batches
from plant_cli.scoring.decisions import ASSIGN, REVIEW
from plant_cli.scoring.models import has_network
from plant_cli.scoring.new_texts import NewTexts
from plant_cli.scoring.suggested_documents import SuggestedDocument, Suggesting, keeping

Documents = Iterable[SuggestedDocument]
TEXTS_A_FRAME = 100
TEXTS_TOGETHER = 1000  # that are read and scored together; a network takes this share of them
NETWORK_SHARE = 8
ROW_SCHEMA = {
    "doc_id": pl.String,
    "rank": pl.Int64,
    "label": pl.String,
    "title": pl.String,
    "score": pl.Float64,
    "threshold": pl.Float64,
    "band": pl.String,
    "why": pl.String,
}
LIST_COLUMNS = {
    "labels": pl.String,
    "titles": pl.String,
    "scores": pl.Float64,
    "bands": pl.String,
    "why": pl.String,
}
TOOLS = ("annif", "trec", "xml", "npz")
"""Formats of other tools; `xml` is XMLRepository's sparse text, and it and `npz` number the
labels.
"""
_ENDINGS = {".npz": "npz", ".trec": "trec", ".run": "trec"}


def find_form(path: Path, to: str | None, *, force: bool) -> str:
    """The format of a file that is to be written, by its name, or the one that is asked for; ask
    before long work for it.

    Raises:
        UsageError: it is there already, or has a name that the format does not have.
        DataError: no format goes by its name.
    """
    form = to or _ENDINGS.get(path.suffix.lower()) or output_format(path)
    for file in (path, _labels_beside(path)) if form in ("xml", "npz") else (path,):
        require_free(file, force=force)
    endings = {"annif": (".jsonl", ".ndjson", ".json"), "npz": (".npz",)}.get(form)
    if endings is not None and path.suffix.lower() not in endings:
        expected = f"a name that ends in {' or '.join(endings)}"
        raise UsageError(
            f"the format {form} has another name",
            where=str(path),
            expected=expected,
            todo="rename the output",
        )
    return form


def write_suggestions(
    path: Path, documents: Documents, form: str, labels: Sequence[str], left_out: Sequence[str] = ()
) -> None:
    """Write suggested labels, atomically.

    Args:
        path: the file; for formats that number the labels, `PATH.labels.txt` gets a label a line,
            in their order.
        documents: what is written.
        form: as `find_form` gives it.
        labels: ids of all labels of the run, in their order.
        left_out: columns of tables that nothing is in: `title` or `why`.
    """
    with replacing(path) as temporary:
        if form in (".csv", ".tsv"):
            write_text_batches(
                (guard_cells(rows.drop(left_out)) for rows in in_frames(documents, _row_frame)),
                temporary,
            )
        elif form == ".parquet":
            write_table(
                pl.concat(in_frames(documents, partial(frame_texts, left_out=left_out))), temporary
            )
        elif form == "annif" and temporary.suffix.lower() == ".json":
            temporary.write_text(
                json.dumps([_annif_entry(one) for one in documents], ensure_ascii=False), "utf-8"
            )
        elif form == "npz":
            save_npz(temporary, _matrix(documents, labels))
        elif form in TOOLS:
            with writing_text(temporary) as stream:
                stream.writelines(
                    _xml_lines(documents, labels) if form == "xml" else _LINES[form](documents)
                )
        else:
            write_text_batches(
                in_frames(documents, partial(frame_texts, left_out=left_out)), temporary
            )
    if form in ("xml", "npz"):
        with replacing(_labels_beside(path)) as temporary:
            temporary.write_text("".join(f"{label}\n" for label in labels), "utf-8")


def annif_lines(documents: Documents) -> Iterator[str]:
    """A line of Annif's JSON for each text."""
    return (json.dumps(_annif_entry(one), ensure_ascii=False) + "\n" for one in documents)


def _annif_entry(one: SuggestedDocument) -> dict[str, Any]:
    found = zip(one.labels, one.titles, one.scores, strict=True)
    results = [
        {"uri": label, "label": title or label, "notation": None, "score": score}
        for label, title, score in found
    ]
    return {"document_id": one.doc_id, "results": results}


def _trec_lines(documents: Documents) -> Iterator[str]:
    for one in documents:
        for rank, (label, score) in enumerate(zip(one.labels, one.scores, strict=True), start=1):
            yield (
                f"{_on_one_line(one.doc_id)}\tQ0\t{_on_one_line(label)}\t{rank}\t{score!r}\tplant\n"
            )


def _on_one_line(name: str) -> str:
    """An id whose tabs and ends of lines are written as `%09` and `%0A`."""
    return re.sub(r"[^\S ]", lambda found: quote(found[0]), name)


def _matrix(documents: Documents, labels: Sequence[str]) -> csr_array:
    """Scores [N, L]; what is not suggested is not stored."""
    numbers, columns, scores, ends = (
        {label: number for number, label in enumerate(labels)},
        list[int](),
        list[float](),
        [0],
    )
    for one in documents:
        columns += [numbers[label] for label in one.labels]
        scores += one.scores
        ends.append(len(scores))
    return csr_array(
        (np.array(scores), np.array(columns, dtype=np.int64), np.array(ends)),
        shape=(len(ends) - 1, len(labels)),
    )


def _xml_lines(documents: Documents, labels: Sequence[str]) -> Iterator[str]:
    matrix = _matrix(documents, labels)
    yield f"{matrix.shape[0]} {matrix.shape[1]}\n"
    for start, end in pairwise(matrix.indptr.tolist()):
        pairs = zip(
            matrix.indices[start:end].tolist(), matrix.data[start:end].tolist(), strict=True
        )
        yield " ".join(f"{label}:{score!r}" for label, score in pairs) + "\n"


_LINES: dict[str, Callable[[Documents], Iterator[str]]] = {
    "annif": annif_lines,
    "trec": _trec_lines,
}


def _labels_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.labels.txt")


def frame_texts(documents: Documents, left_out: Sequence[str]) -> pl.DataFrame:
    """A row for each text, with lists; without the columns that are left out."""
    names = [name for name in LIST_COLUMNS if name.removesuffix("s") not in left_out]
    rows = [(one.doc_id, *(getattr(one, name) for name in names)) for one in documents]
    return pl.DataFrame(
        rows,
        schema={"doc_id": pl.String, **{name: pl.List(LIST_COLUMNS[name]) for name in names}},
        orient="row",
    )


def _row_frame(documents: Documents) -> pl.DataFrame:
    """A row for each suggestion; a text without any has a row with its id alone."""
    rows: list[Sequence[Any]] = []
    for one in documents:
        columns = (
            one.labels,
            one.titles,
            one.scores,
            one.thresholds,
            one.bands,
            one.why or [""] * len(one.labels),
        )
        suggested = zip(*columns, strict=True)
        rows += [(one.doc_id, rank, *cells) for rank, cells in enumerate(suggested, start=1)] or [
            (one.doc_id, *[None] * (len(ROW_SCHEMA) - 1))
        ]
    return pl.DataFrame(rows, schema=ROW_SCHEMA, orient="row")


def in_frames(
    documents: Documents, make: Callable[[Documents], pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Frames of some texts each; at least one."""
    rest = iter(documents)
    blocks = iter(lambda: list(islice(rest, TEXTS_A_FRAME)), [])
    return map(make, chain([next(blocks, [])], blocks))


def texts_together(context: StageContext) -> int:
    """How many texts are read and scored together."""
    return TEXTS_TOGETHER // (
        NETWORK_SHARE if has_network(context.input("finetune", context.tag)) else 1
    )


def write_kept(
    context: StageContext,
    suggesting: Suggesting,
    new: NewTexts,
    writers: Mapping[Path, Callable[[Path, Iterable[SuggestedDocument]], None]],
    made_by: Mapping[str, Any],
) -> Result:
    """Write files of suggestions once all texts are done, which are kept beside the first file
    until then.

    Args:
        context: of the command.
        suggesting: how labels are suggested.
        new: the texts.
        writers: what writes each file.
        made_by: the options of the command; with others nothing that is kept is used.
    """
    record = hash_file(context.input("finetune", context.tag) / STAGE_FILE)
    first, *_ = writers
    with keeping(
        first,
        {"model": record, "kept": suggesting.kept, **made_by},
        context.reporter,
        anew=context.force,
    ) as kept:
        before = kept.number
        for documents in suggesting.answer(
            replace(new, blocks=kept.skip(new.blocks)), context.reporter, before
        ):
            kept.add(documents)
        context.confirm_inputs()
        for path, write in writers.items():
            write(path, kept)
        counted = count_suggestions(kept)
    named = " and ".join(map(str, writers))
    context.reporter.note(
        f"{show_count(counted['suggestions'], 'suggestion')} for "
        f"{show_count(counted['documents'], 'text')} written to {named}: "
        f"{counted[ASSIGN]:,} to assign, {counted[REVIEW]:,} to review"
    )
    return Result(data={"written": [str(path) for path in writers], **counted}, summary=counted)


def count_suggestions(documents: Documents) -> dict[str, int]:
    """How many texts, suggestions, and suggestions of each band but the last there are."""
    counted = dict.fromkeys(("documents", "suggestions", ASSIGN, REVIEW), 0)
    for one in documents:
        counted["documents"] += 1
        counted["suggestions"] += len(one.labels)
        for band in (ASSIGN, REVIEW):
            counted[band] += one.bands.count(band)
    return counted
