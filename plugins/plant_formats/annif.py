"""Annif's formats: full texts in a folder and CSV are read here; these, its TSV and its JSON
lines are written.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, NoOptions, SplitName
from plant_cli.kit import (
    BadRows,
    bare_name,
    read_lines,
    read_rows,
    writing_text,
)
from plant_formats.corpus_reader import (
    ALIASES,
    CorpusReader,
    Document,
    SplitPart,
    find_example,
    find_file,
    find_parts,
    first_lines,
    lacks_training,
)

_TEXT, _SUBJECTS, _ID = "text", "subject_uris", "document_id"  # columns of the CSV format
_URI = re.compile(r"\s*(?:<([^<>]+)>|([A-Za-z][\w+.-]*:[^\s<>]+))\s*")
_BREAKS = re.compile(r"[\r\n\t]+")
_LONGEST_ID = 200  # bytes of a file's name


def folder_load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a folder of documents, or its folders train, validation and test; the name of a file
    is the id of its document.
    """
    reader = CorpusReader.of(data)
    titles: dict[str, str | None] = {}
    parts: dict[SplitPart, Iterator[Document]] = {
        part: _read_folder(reader, path, titles) for part, path in _folders(reader.path).items()
    }
    if not parts:
        raise lacks_training(
            str(reader.path),
            "document.txt with document.tsv or document.key, in the folder itself or in train/, "
            "validation/ and test/",
        )
    dataset = reader.dataset(parts, titles)
    titled = any(bare_name(path).lower().endswith(".key") for path in reader.files)
    return replace(dataset, titled=titled)


def folder_recognise(data: DataSection) -> str | None:
    """Texts with .tsv or .key files of the same names."""
    for folder in [] if data.path is None else _folders(Path(data.path)).values():
        text, key = next((text, key) for text in _texts(folder) if (key := _key_of(text)))
        return f"Annif's folder of full texts ({folder.name}/{text.name} and {key.name})"
    return None


def _folders(path: Path) -> dict[SplitPart, Path]:
    children = [path, *(sorted(path.iterdir()))] if path.is_dir() else []
    labelled = [
        folder for folder in children if folder.is_dir() and any(map(_key_of, _texts(folder)))
    ]
    if path in labelled:
        return {None: path}
    parts: dict[SplitPart, Path] = {
        ALIASES[name]: folder for folder in labelled if (name := folder.name.lower()) in ALIASES
    }
    return parts if "train" in parts else {}


def _texts(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir())
        if bare_name(path).lower().endswith(".txt") and path.is_file()
    ]


def _key_of(text: Path) -> Path | None:
    """The file with the labels of a text."""
    return find_file(
        text.parent, *(bare_name(text)[:-4] + key for key in (".tsv", ".key", ".TSV", ".KEY"))
    )


def _read_folder(
    reader: CorpusReader, folder: Path, titles: dict[str, str | None]
) -> Iterator[Document]:
    unlabelled, broken = 0, 0
    for number, path in enumerate(_texts(folder), start=1):
        key = _key_of(path)
        if key is None:
            unlabelled += 1
            continue
        known = len(reader.bad.rows)
        lines = list(read_lines(path, reader.bad, reader.data.encoding, ends=True))
        if len(reader.bad.rows) > known:  # a text without some of its lines would be another one
            broken += 1
            reader.bad.refuse_many(broken, (reader.data.encoding or "utf-8").upper(), "texts")
            continue
        labels = list(_read_key(reader, key, titles))
        reader.files += [path, key]
        yield Document(number, "".join(line for _, line in lines), labels, bare_name(path)[:-4])
    if broken:
        reader.remarks.append(
            f"{folder}: {broken:,} texts have lines that cannot be read and are left out"
        )
    if unlabelled:
        reader.remarks.append(
            f"{folder}: {unlabelled:,} texts have neither a .tsv nor a .key file and are left out"
        )


def _read_key(reader: CorpusReader, path: Path, titles: dict[str, str | None]) -> Iterator[str]:
    """The labels of a file with `<uri><TAB>title` on each line, or in .key a label."""
    plain = bare_name(path).lower().endswith(".key")
    for number, line in read_lines(path, BadRows(strict=True), reader.data.encoding):
        uri, _, title = line.partition("\t")
        if not line.strip():
            continue
        match = _URI.fullmatch(uri)
        if not plain and match is None:
            reader.bad.add(path, number, "no URI", line, column=1, expected="<uri><TAB>label")
            continue
        label = line.strip() if match is None or plain else match[1] or match[2]
        titles[label] = titles.get(label) or (None if plain else title or None)
        yield label


def csv_load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder of train.csv, validation.csv and test.csv; metadata stay unread."""
    reader = CorpusReader.of(data)
    return reader.dataset(
        {part: _read_csv(reader, path) for part, path in find_parts(reader.path, _is_csv).items()}
    )


def csv_recognise(data: DataSection) -> str | None:
    """The columns text and subject_uris in the first line."""
    example = find_example(data, _is_csv)
    return (
        None
        if example is None
        else f"Annif's CSV format (columns of {example.name}: {first_lines(example, 1)[0][:60]})"
    )


def _is_csv(path: Path) -> bool:
    lines = first_lines(path, 1)
    return bool(lines) and {_TEXT, _SUBJECTS} <= {
        name.strip() for name in next(csv.reader([lines[0]]), [])
    }


def _read_csv(reader: CorpusReader, path: Path) -> Iterator[Document]:
    reader.files.append(path)
    rows = read_rows(path, reader.bad, reader.data.encoding, exact=True)
    columns = [name.strip() for name in next(rows, (1, []))[1]]
    if not {_TEXT, _SUBJECTS} <= set(columns):
        expected, todo = (
            f"{_TEXT} and {_SUBJECTS}",
            "name them so, or name another format with --dataset",
        )
        raise DataError(
            f"the columns are {', '.join(columns)}",
            where=f"{path}, line 1",
            expected=expected,
            todo=todo,
        )
    for number, (_, row) in enumerate(rows, start=1):
        cells = dict(zip(columns, row, strict=True))
        uris = [uri.strip("<>") for uri in cells[_SUBJECTS].split()]
        yield Document(number, cells[_TEXT], [uri for uri in uris if uri], cells.get(_ID) or None)


def _documents(
    dataset: Dataset,
) -> Iterator[tuple[SplitName, Iterator[tuple[str, str, list[str]]]]]:
    """Splits with ids, texts and labels, read piece by piece."""
    for split in (name for name in SPLITS if name in dataset.splits):
        yield (
            split,
            (
                row
                for part in dataset.parts(split)
                for row in part.select("doc_id", "text", "labels").collect().iter_rows()
            ),
        )


def _titles(dataset: Dataset) -> dict[str, str | None]:
    if dataset.labels is None:
        return {}
    table = dataset.labels.select(pl.col("label", "title").cast(pl.String)).collect()
    return dict(table.drop_nulls("label").unique("label", keep="first").iter_rows())


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with writing_text(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


def _refuse_signs(dataset: Dataset, signs: str, where: str) -> None:
    """Refuse labels with signs that the format reads as the end of a label; " " stands for
    every kind of blank.
    """
    labels = (
        pl.concat([frame.select(pl.col("labels").explode()) for frame in dataset.splits.values()])
        .drop_nulls()
        .unique()
    )
    wrong = sorted(
        label
        for label in labels.collect()["labels"]
        if set(signs) & set(label) or (" " in signs and label.split() != [label])
    )
    if wrong:
        raise DataError(
            f"{len(wrong):,} labels cannot be written in this format, such as {wrong[0]!r}",
            where=where,
            expected=f"labels without any of {' '.join(map(repr, signs))}",
            todo="choose another format (annif-jsonl and Parquet hold any label), or rename "
            "these labels",
        )


def write_tsv(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.tsv, validation.tsv and test.tsv."""
    _refuse_signs(dataset, " <>\t\r\n", "the labels, which Annif parts at blanks")
    changed: set[str] = set()

    def write_line(doc_id: str, text: str, labels: Sequence[str]) -> str:
        line = _BREAKS.sub(" ", text)
        changed.update([doc_id] if line != text else [])
        return f"{line}\t{' '.join(f'<{label}>' for label in labels)}"

    for split, rows in _documents(dataset):
        _write_lines(folder / f"{split}.tsv{suffix}", (write_line(*row) for row in rows))
    lost = (
        [
            f"line breaks or tabs of {len(changed):,} texts became blanks: this format has one "
            "document a line"
        ]
        if changed
        else []
    )
    return [
        *lost,
        "this format does not hold document ids",
        "this format does not hold titles of labels",
    ]


def write_csv(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.csv, validation.csv and test.csv with the columns document_id, text and
    subject_uris.
    """
    _refuse_signs(dataset, " <>\t\r\n", "the labels, separated by blanks")
    for split, rows in _documents(dataset):
        with writing_text(folder / f"{split}.csv{suffix}") as stream:
            writer = csv.writer(
                stream, lineterminator="\n", quoting=csv.QUOTE_ALL
            )  # else a carriage return alone would not be quoted
            writer.writerow((_ID, _TEXT, _SUBJECTS))
            writer.writerows(
                (doc_id, text, " ".join(f"<{label}>" for label in labels))
                for doc_id, text, labels in rows
            )
    return ["this format does not hold titles of labels"]


def write_jsonl(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.jsonl, validation.jsonl and test.jsonl; nothing is lost."""
    titles = _titles(dataset)

    def write_line(doc_id: str, text: str, labels: Sequence[str]) -> str:
        subjects = [
            {"uri": label, "label": titles[label]} if titles.get(label) else {"uri": label}
            for label in labels
        ]
        return json.dumps(
            {"document_id": doc_id, "text": text, "subjects": subjects}, ensure_ascii=False
        )

    for split, rows in _documents(dataset):
        _write_lines(folder / f"{split}.jsonl{suffix}", (write_line(*row) for row in rows))
    return []


def write_folder(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train/ID.txt and train/ID.tsv, and so on; `DataError` if an id cannot be the name
    of a file.
    """
    _refuse_signs(dataset, "<>\t\r\n", "the labels, in angle brackets")
    titles = {label: _BREAKS.sub(" ", title or "") for label, title in _titles(dataset).items()}
    for split, rows in _documents(dataset):
        ids = dataset.splits[split].select("doc_id").collect()["doc_id"].to_list()
        wrong = [
            name
            for name in ids
            if not name
            or name[0] == "."
            or set("/\\\0\r\n") & set(name)
            or len(name.encode()) > _LONGEST_ID
        ]
        if wrong or len({name.casefold() for name in ids}) < len(ids):
            raise DataError(
                f"the id {wrong[0]!r} cannot be the name of a file"
                if wrong
                else "two ids differ only by case",
                where="the ids of documents",
                expected="ids that can be names of files: each document is a file",
                todo="choose another format, such as annif-jsonl, or other ids with --id-column",
            )
        (folder / split).mkdir()
        for doc_id, text, labels in rows:
            with writing_text(folder / split / f"{doc_id}.txt{suffix}") as stream:
                stream.write(text)
            _write_lines(
                folder / split / f"{doc_id}.tsv{suffix}",
                (f"<{label}>\t{titles.get(label, '')}" for label in labels),
            )
    return []
