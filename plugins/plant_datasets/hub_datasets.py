"""Datasets of Hugging Face: a folder that `save_to_disk` left, or a data set of the hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, SplitName, first_line, missing_column, missing_package
from plant_cli.kit import join_columns, text_columns
from plant_datasets import HubOptions
from plant_datasets.corpus_reader import ALIASES, CorpusReader, split_by_hash


def load(data: DataSection, options: HubOptions) -> Dataset:
    """Read PATH, a folder or else an id of the hub; numbers of classes become their names. No code of the data set is run."""
    reader = CorpusReader.of(data)
    opened = _open(reader.path, options)
    tables = dict(opened) if hasattr(opened, "keys") else {"": opened}
    named, others = _find_splits(tables, reader.path)
    chosen = [named[split] for split in SPLITS if split in named] or others
    prefixes = {name: f"{split}-" for split, name in named.items()} if named else {name: f"{name}-" for name in others if len(others) > 1}
    parts = {name: _map_columns(tables[name], data, f"{reader.path}, split {name}", prefixes.get(name, "")) for name in chosen}
    splits: dict[SplitName, pl.LazyFrame] = {split: parts[named[split]].lazy() for split in SPLITS if split in named}
    if named and others:
        reader.remarks.append(f"splits of other names are left out: {', '.join(others)}")
    if not named:
        held = f"has no split of a known name, only {', '.join(others)}" if any(others) else "is in no splits"
        reader.remarks.append(f"{reader.path} {held}: split 80/10/10 by a hash of each text")
        pieces = split_by_hash([part.lazy() for part in parts.values()], str(reader.path))
        splits = {split: pl.concat(frames) for split, frames in pieces.items()}
    local = reader.path.is_dir()
    files = sorted(str(path) for path in reader.path.rglob("*") if path.is_file()) if local else []
    return Dataset(splits=splits, access="local" if local else "hub", files=files, remarks=reader.remarks)


def recognise(data: DataSection) -> str | None:
    """The file dataset_dict.json, or state.json and dataset_info.json, in a folder."""
    folder = Path(data.path or "")
    if data.path is not None and (folder / "dataset_dict.json").is_file():
        return "a Hugging Face data set with splits (dataset_dict.json)"
    one = data.path is not None and (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    return "a Hugging Face data set (dataset_info.json and state.json)" if one else None


def _open(path: Path, options: HubOptions) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing_package("datasets", "which reads this format", "datasets", where=str(path)) from error
    datasets.disable_progress_bars()
    try:
        if path.is_dir():
            return datasets.load_from_disk(str(path))
        return datasets.load_dataset(str(path), options.configuration, revision=options.revision)
    except Exception as error:
        expected = "a folder that save_to_disk wrote, or the id of a data set of the hub that needs no code"
        raise _unreadable(error, str(path), expected, "check the path; without a network, name a folder") from error


def _find_splits(names: Iterable[str], path: Path) -> tuple[dict[SplitName, str], list[str]]:
    """The name of each split, and the names that mean none; `DataError` if two mean one."""
    named: dict[SplitName, str] = {}
    others = []
    for name in names:
        split = ALIASES.get(name.lower())
        if split is None:
            others.append(name)
        elif named.setdefault(split, name) != name:
            raise DataError(
                f"'{named[split]}' and '{name}' both name the split {split}",
                where=str(path),
                expected="one name for each of train, validation and test",
                todo="rename one of them, or join the two, and save the data set again",
            )
    return named, others


def _map_columns(table: Any, data: DataSection, where: str, prefix: str) -> pl.DataFrame:
    """The table in our columns; where it has no ids, they are the prefix and the number of the row."""
    features: Mapping[str, Any] = table.features
    texts = text_columns(data.text_column, list(features))
    for name in (*texts, data.labels_column):
        if name not in features:
            raise missing_column(name, features, where=where, todo="name the right one with --text-column or --labels-column")
    ids = data.id_column or ("doc_id" if "doc_id" in features else None)
    try:
        frame = pl.DataFrame(table.select_columns([*texts, data.labels_column, *([ids] if ids else [])]).to_dict())
    except Exception as error:  # whatever a damaged file makes of its reader
        raise _unreadable(error, where, "columns of one type each, texts in UTF-8", "copy or make the data set again") from error
    nested = next((name for name in (*texts, *([ids] if ids else [])) if frame.schema[name].is_nested()), None)
    if nested is not None:
        raise DataError(
            f"the column '{nested}' holds lists or objects",
            where=where,
            expected="one text, and one id, a document",
            todo="name the right columns with --text-column and --id-column, or join each list into a text",
        )
    row = pl.lit(prefix) + pl.int_range(1, pl.len() + 1).cast(pl.String)
    return frame.select(
        (pl.col(ids).cast(pl.String) if ids else row).alias("doc_id"),
        join_columns(texts).cast(pl.String).fill_null("").alias("text"),
        _name_classes(frame[data.labels_column], features[data.labels_column]).alias("labels"),
    )


def _name_classes(column: pl.Series, feature: Any) -> pl.Series:
    """Label lists: names in place of numbers of classes, of which -1 is no label; one label a document becomes a list."""
    names = getattr(getattr(feature, "feature", feature), "names", None)
    rows = [([] if cell is None else cell if isinstance(cell, list) else [cell]) for cell in column.to_list()]
    if names:
        kept = [[value for value in row if not (isinstance(value, int) and value < 0)] for row in rows]
        rows = [[names[value] if isinstance(value, int) else value for value in row] for row in kept]
    return pl.Series(column.name, [[str(value) for value in row if value is not None] for row in rows], dtype=pl.List(pl.String))


def _unreadable(error: Exception, where: str, expected: str, todo: str) -> DataError:
    return DataError(f"the data set cannot be read: {first_line(error)}", where=where, expected=expected, todo=todo)
