"""Datasets of Hugging Face: a folder that `save_to_disk` left, or a data set of the hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from polars.exceptions import PolarsError

from plant_cli.api import (
    SPLITS,
    DataError,
    DataSection,
    Dataset,
    SplitName,
    first_line,
    missing_column,
    missing_package,
)
from plant_cli.kit import join_columns
from plant_formats import HubOptions
from plant_formats.corpus_reader import ALIASES, CorpusReader, split_by_hash
from plant_formats.label_columns import find_columns
from plant_formats.label_forms import find_label_form
from plant_formats.numbered_columns import label_field

_DESCRIBED = 1 << 24  # bytes of a description that is read


def load(data: DataSection, options: HubOptions) -> Dataset:
    """Read PATH, a folder or else an id of the hub; numbers of classes become their names. No
    code of the data set is run.
    """
    reader = CorpusReader.of(data)
    opened = _open(reader.path, options)
    tables: Mapping[str, Any] = dict(opened) if hasattr(opened, "keys") else {"": opened}
    named, others = _find_splits(tables, reader.path)
    chosen = [named[split] for split in SPLITS if split in named] or others
    tables, data = _require_labels({name: tables[name] for name in chosen}, data, reader)
    parts = _read_labels(tables, _name_prefixes(named, others), data, reader)
    splits: dict[SplitName, pl.LazyFrame] = {
        split: parts[named[split]].lazy() for split in SPLITS if split in named
    }
    if named and others:
        reader.remarks.append(f"splits of other names are left out: {', '.join(others)}")
    if not named:
        reader.remarks.append(_tell_unsplit(others, reader.path))
        pieces = split_by_hash([part.lazy() for part in parts.values()], str(reader.path))
        splits = {split: pl.concat(frames) for split, frames in pieces.items()}
    local = reader.path.is_dir()
    return Dataset(
        splits=splits,
        access="local" if local else "hub",
        files=_list_files(reader.path) if local else [],
        remarks=[*reader.remarks, *reader.bad.close()],
    )


def _list_files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def _require_labels(
    tables: Mapping[str, Any], data: DataSection, reader: CorpusReader
) -> tuple[Mapping[str, Any], DataSection]:
    """The same, if they have the column of labels that was asked for; else with the columns that
    are found by what is in them.
    """
    features = list(next(iter(tables.values())).features)
    if label_field(data.labels_column, features)[0] in features:
        return tables, data
    frames = {
        name: (_read_frame(table, list(table.features), _place(reader, name)).lazy(), "")
        for name, table in tables.items()
    }
    united, data, reader.remarks[:] = find_columns(frames, data)
    if not reader.remarks:
        return tables, data
    return {
        name: type(tables[name]).from_polars(frame.collect()) for name, (frame, _) in united.items()
    }, data


def _place(reader: CorpusReader, split: str) -> str:
    return f"{reader.path}, split {split}"


def _name_prefixes(named: Mapping[SplitName, str], others: Sequence[str]) -> dict[str, str]:
    """What ids of a split begin with where rows have none: its usual name, or its own if none of
    them has one; nothing of the only split.
    """
    if named:
        return {name: f"{split}-" for split, name in named.items()}
    return {name: f"{name}-" for name in others if len(others) > 1}


def _read_labels(
    tables: Mapping[str, Any], prefixes: Mapping[str, str], data: DataSection, reader: CorpusReader
) -> dict[str, pl.DataFrame]:
    """The tables in our columns, with labels in the form that all of them show."""
    read = {
        name: _map_columns(table, data, _place(reader, name), prefixes.get(name, ""))
        for name, table in tables.items()
    }
    features = next(iter(tables.values())).features
    held, key = label_field(data.labels_column, list(features))
    form = find_label_form(
        {f"split {name}": frame["labels"] for name, frame in read.items()},
        data.label_separator,
        _name_classes(features[held]),
        key=key,
    )
    reader.remarks += [form.remark] if form.remark else []
    parts = {}
    for name, frame in read.items():
        labels, faults = form.read(frame["labels"], _place(reader, name))
        for fault in (fault for fault in faults if fault.left_out):
            reader.bad.add(
                reader.path / name,
                fault.row,
                fault.why,
                fault.content,
                unit="row",
                expected="labels in the form of other rows",
            )
        labelled = frame.with_columns(labels.alias("labels"))
        parts[name] = labelled.filter(pl.col("labels").is_not_null())
    return parts


def _name_classes(feature: Any) -> Sequence[str]:
    """The names of classes by number, of a column of one class or of lists of them."""
    return getattr(getattr(feature, "feature", feature), "names", None) or ()


def _tell_unsplit(names: Sequence[str], path: Path) -> str:
    held = (
        f"has no split of a known name, only {', '.join(names)}"
        if any(names)
        else "is in no splits"
    )
    return f"{path} {held}: split 80/10/10 by a hash of each text"


def recognise(data: DataSection) -> str | None:
    """The file dataset_dict.json, or state.json and dataset_info.json, in a folder."""
    folder = Path(data.path or "")
    if data.path is not None and (folder / "dataset_dict.json").is_file():
        return "a Hugging Face data set with splits (dataset_dict.json)"
    one = (
        data.path is not None
        and (folder / "state.json").is_file()
        and (folder / "dataset_info.json").is_file()
    )
    return "a Hugging Face data set (dataset_info.json and state.json)" if one else None


def _open(path: Path, options: HubOptions) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing_package(
            "datasets", "which reads this format", "datasets", where=str(path)
        ) from error
    datasets.disable_progress_bars()
    try:
        if path.is_dir():
            return datasets.load_from_disk(str(path))
        return datasets.load_dataset(str(path), options.configuration, revision=options.revision)
    except Exception as error:
        expected = (
            "a folder that save_to_disk wrote, or the id of a data set of the hub that needs "
            "no code"
        )
        raise _unreadable(
            error, str(path), expected, "check the path; without a network, name a folder"
        ) from error


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


def _read_frame(table: Any, columns: Sequence[str], where: str) -> pl.DataFrame:
    try:
        return pl.DataFrame(table.select_columns(columns).to_dict())
    except Exception as error:  # whatever a damaged file makes of its reader
        raise _unreadable(
            error,
            where,
            "columns of one type each, texts in UTF-8",
            "copy or make the data set again",
        ) from error


def _map_columns(table: Any, data: DataSection, where: str, prefix: str) -> pl.DataFrame:
    """The table in our columns, labels as they are; where it has no ids, they are the prefix
    and the number of the row.
    """
    features: Mapping[str, Any] = table.features
    texts = DataSection.named(data.text_column, list(features))
    held, _ = label_field(data.labels_column, list(features))
    for name in (*texts, held):
        if name not in features:
            raise missing_column(
                name,
                features,
                where=where,
                todo="name the right one with --text-column or --labels-column",
            )
    ids = data.id_column or ("doc_id" if "doc_id" in features else None)
    frame = _read_frame(table, [*texts, held, *([ids] if ids else [])], where)
    nested = next(
        (name for name in (*texts, *([ids] if ids else [])) if frame.schema[name].is_nested()), None
    )
    if nested is not None:
        raise DataError(
            f"the column '{nested}' holds lists or objects",
            where=where,
            expected="one text, and one id, a document",
            todo="name the right columns with --text-column and --id-column, or join each list "
            "into a text",
        )
    row = pl.lit(prefix) + pl.int_range(1, pl.len() + 1).cast(pl.String)
    return frame.select(
        (pl.col(ids).cast(pl.String) if ids else row).alias("doc_id"),
        join_columns(texts).cast(pl.String).fill_null("").alias("text"),
        pl.col(held).alias("labels"),
    )


def find_class_names(path: Path, column: str) -> list[str]:
    """The names of the classes of a column by number, as the file, or the description of its
    data set, says; none where neither does.
    """
    described: list[object] = []
    with suppress(OSError, PolarsError):  # of what is no Parquet file, whatever its name
        described.append(_parse(pl.read_parquet_metadata(path).get("huggingface", "")))
    for folder in list(path.absolute().parents)[:2]:
        described += [
            _parse(_read_small(folder / name))
            for name in ("dataset_info.json", "dataset_infos.json")
        ]
        _, _, front = _read_small(folder / "README.md").partition("---\n")
        described.append(_parse(front.partition("\n---")[0], yaml.safe_load))
    return next(
        (
            names
            for one in described
            for features in _find_all(one, "features")
            if (names := _names_of(features, column))
        ),
        [],
    )


def _read_small(path: Path) -> str:
    return (
        path.read_text("utf-8", "replace")
        if path.is_file() and path.stat().st_size < _DESCRIBED
        else ""
    )


def _parse(text: str, read: Callable[[str], object] = json.loads) -> object:
    try:
        return read(text) if text else None
    except (ValueError, RecursionError, yaml.YAMLError):
        return None


def _find_all(described: object, key: str) -> Iterator[object]:
    """The values of a key, wherever it stands."""
    if isinstance(described, dict):
        yield from (described[key] for _ in range(key in described))
    for inner in (
        described.values()
        if isinstance(described, dict)
        else described
        if isinstance(described, list)
        else ()
    ):
        yield from _find_all(inner, key)


def _names_of(features: object, column: str) -> list[str]:
    """The names of classes of one feature: `{"labels": {"names": […]}}`, or `[{"name":
    "labels", "class_label": {"names": {"0": …}}}]`.
    """
    if isinstance(features, list):
        features = {one.get("name"): one for one in features if isinstance(one, dict)}
    names = (
        next(_find_all(features.get(column), "names"), None) if isinstance(features, dict) else None
    )
    if isinstance(names, dict):
        numbered = {int(number): name for number, name in names.items() if str(number).isdigit()}
        names = (
            [numbered[number] for number in sorted(numbered)]
            if sorted(numbered) == list(range(len(names)))
            else None
        )
    return [str(name) for name in names] if isinstance(names, list) else []


def _unreadable(error: Exception, where: str, expected: str, todo: str) -> DataError:
    return DataError(
        f"the data set cannot be read: {first_line(error)}",
        where=where,
        expected=expected,
        todo=todo,
    )
