"""Annif's folder of full texts: document.txt with document.tsv (`<uri><TAB>label`) or document.key (a label on each line)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from plant_cli.api import DataError, DataSection, Dataset, NoOptions
from plant_cli.kit import BadRows, bare_name, read_lines, refuse_many, writing_text
from plant_datasets.formats.documents import Document, Part, Reading, find_file
from plant_datasets.formats.writing import Output
from plant_datasets.layout import ALIASES

_KEYS = (".tsv", ".key")
_LONGEST = 200  # bytes of an id


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a folder of documents, or of the folders train, validation and test; a file's name is the id of its document."""
    reading = Reading.of(data)
    titles: dict[str, str | None] = {}
    parts: dict[Part, Iterator[Document]] = {part: _read(reading, folder, titles) for part, folder in _folders(reading.path).items()}
    if not parts:
        raise DataError(
            "the folder holds no documents with labels",
            where=str(reading.path),
            expected="document.txt beside document.tsv or document.key, in the folder itself or in train/, validation/ and test/",
            todo="name the folder of the documents, or another format with --dataset",
        )
    frames = reading.read(parts)  # fills the titles
    columns = {"label": list(titles), "title": list(titles.values())}
    table = pl.DataFrame(columns, schema={"label": pl.String, "title": pl.String})
    return reading.gather(frames, table if any(titles.values()) else None)


def recognise(data: DataSection) -> str | None:
    """Texts with .tsv or .key files of the same names."""
    folders = {} if data.path is None else _folders(Path(data.path))
    if not folders:
        return None
    folder = next(iter(folders.values()))
    text = next(path for path in _texts(folder) if _key_of(path))
    return f"Annif's folder of full texts ({folder.name}/{text.name} and {_key_of(text).name})"  # type: ignore[union-attr]


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train/ID.txt and train/ID.tsv, and so on; `DataError` if an id can be no name of a file."""
    output = Output(dataset, folder, suffix)
    output.refuse_signs("<>\t\r\n", "the labels, in angle brackets")
    titles = {label: output.flatten(title or "") for label, title in output.labels.iter_rows()}
    for split in output.splits:
        _refuse_ids(output.column(split, "doc_id").to_list())
        (folder / split).mkdir()
        for doc_id, text, labels in output.documents(split):
            with writing_text(folder / split / f"{doc_id}.txt{suffix}") as stream:
                stream.write(text)
            with writing_text(folder / split / f"{doc_id}.tsv{suffix}") as stream:
                stream.writelines(f"<{label}>\t{titles[label]}\n" for label in labels)
    return []


def _refuse_ids(ids: Sequence[str]) -> None:
    wrong = next(
        (name for name in ids if not name or set("/\\\0\r\n") & set(name) or name.startswith(".") or len(name.encode()) > _LONGEST), None
    )
    folded = {name.casefold() for name in ids}
    if wrong is not None or len(folded) < len(ids):
        raise DataError(
            "two ids differ by case alone" if wrong is None else f"the id {wrong!r} can be no name of a file",
            where="the ids of documents",
            expected="ids that are names of files: a document is a file",
            todo="choose another format, such as annif-jsonl, or other ids with --id-column",
        )


def _folders(path: Path) -> dict[Part, Path]:
    if not path.is_dir():
        return {}
    if any(_key_of(text) for text in _texts(path)):
        return {None: path}
    below = {
        ALIASES[folder.name.lower()]: folder for folder in sorted(path.iterdir()) if folder.is_dir() and folder.name.lower() in ALIASES
    }
    found: dict[Part, Path] = {split: folder for split, folder in below.items() if any(_key_of(text) for text in _texts(folder))}
    return found if "train" in found else {}


def _texts(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if bare_name(path).endswith(".txt") and path.is_file()]


def _key_of(text: Path) -> Path | None:
    return find_file(text.parent, *(bare_name(text).removesuffix(".txt") + key for key in _KEYS))


def _read(reading: Reading, folder: Path, titles: dict[str, str | None]) -> Iterator[Document]:
    unlabelled, broken = 0, 0
    for number, path in enumerate(_texts(folder), start=1):
        key = _key_of(path)
        if key is None:
            unlabelled += 1
            continue
        known = len(reading.bad.rows)
        lines = list(read_lines(path, reading.bad, reading.data.encoding, ends=True))
        if len(reading.bad.rows) > known:  # a text without some of its lines would be another one
            broken += 1
            refuse_many(broken, reading.bad.rows[-1], (reading.data.encoding or "utf-8").upper(), texts=True)
            continue
        labels = list(_read_key(reading, key, titles))
        reading.files += [path, key]
        yield Document(number, "".join(line for _, line in lines), labels, bare_name(path).removesuffix(".txt"))
    if broken:
        reading.remarks.append(f"{folder}: {broken:,} texts have lines that cannot be read and are left out whole")
    if unlabelled:
        reading.remarks.append(f"{folder}: {unlabelled:,} texts have neither a .tsv nor a .key file and are left out")


def _read_key(reading: Reading, path: Path, titles: dict[str, str | None]) -> Iterator[str]:
    for number, line in read_lines(path, BadRows(strict=True), reading.data.encoding):
        uri, _, title = line.partition("\t")
        plain = bare_name(path).endswith(".key")
        if not line.strip():
            continue
        if not plain and not (uri.startswith("<") and uri.endswith(">")):
            reading.bad.add(path, number, "no URI in angle brackets", line, column=1, expected="<uri><TAB>label")
            continue
        label = line.strip() if plain else uri[1:-1]
        titles[label] = titles.get(label) or (None if plain else title or None)
        yield label
