"""Splits and subsets: which documents train, validate and test."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import coo_array, csr_array

from plant_cli.api import (
    SPLITS,
    DataError,
    DataSection,
    Dataset,
    SplitName,
    UsageError,
    missing_column,
)
from plant_cli.api.functions import Named
from plant_cli.data.documents import (
    TEXT_KEY,
    explode_labels,
    read_frame,
    tidy,
)
from plant_cli.data.labels import count_labels
from plant_cli.data.tables import (
    collect,
    trim,
)

Parts = dict[SplitName, pl.DataFrame]
CHANGES = {"split": pl.String(), "doc_id": pl.String(), "change": pl.String()}
Method = Literal["uniform", "stratified"]
_CONNECT = Named(
    "scipy.sparse.csgraph:connected_components"
)  # with scipy.linalg, which takes long to import
Ints = npt.NDArray[np.int64]
TINY_SHARE = 1e-9  # documents: what rounding leaves


def split_documents(
    documents: pl.DataFrame,
    shares: Mapping[SplitName, float],
    *,
    seed: int,
    method: Method = "uniform",
    groups: pl.Series | None = None,
) -> dict[SplitName, pl.DataFrame]:
    """Splits of the given shares; documents of equal text, and of one group, stay together, so
    that nothing leaks.
    """
    units = find_units(documents, groups)
    wanted = {name: share for name, share in shares.items() if share > 0}
    given, rng = list(wanted.values()), np.random.default_rng(seed)
    place = (
        _place_uniformly(units, given, rng)
        if method == "uniform"
        else _place_stratified(units, documents, given, rng)
    )
    names: list[SplitName] = [*wanted, "train"]
    parts = {name: documents.filter(place == names.index(name)) for name in SPLITS if name in names}
    return {name: part for name, part in parts.items() if part.height}


def find_units(documents: pl.DataFrame, groups: pl.Series | None) -> Ints:
    """What must stay together: the number of each document's unit, documents of equal text or
    group having one [N].
    """
    texts = documents["text"].rank("dense").to_numpy().astype(np.int64) - 1
    if groups is None:
        return texts
    names = groups.cast(pl.String)
    grouped = np.flatnonzero(names.is_not_null().to_numpy())
    numbers = (
        names.drop_nulls().rank("dense").to_numpy().astype(np.int64) - 1
        if len(grouped)
        else np.empty(0, dtype=np.int64)
    )
    size = documents.height + (int(numbers.max()) + 1 if len(numbers) else 0)
    first = np.unique(texts, return_index=True)[1]  # the first document of each text
    rows = np.concatenate([np.arange(documents.height), grouped])
    columns = np.concatenate([first[texts], documents.height + numbers])
    links = coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(size, size))
    return np.asarray(_CONNECT(links, directed=False)[1][: documents.height], dtype=np.int64)


def _place_uniformly(units: Ints, shares: list[float], rng: np.random.Generator) -> Ints:
    """The split of each document: its place in `shares`, or the number behind them."""
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    before = np.empty(len(sizes), dtype=np.int64)  # documents whose units come earlier in the order
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    ends = np.cumsum([round(share * len(units)) for share in shares])
    return np.searchsorted(ends, before[units], side="right").astype(np.int64)


def _place_stratified(
    units: Ints, documents: pl.DataFrame, shares: list[float], rng: np.random.Generator
) -> Ints:
    """As `_place_uniformly`, by iterative stratification of units."""
    table = _count_labels(units, documents)
    sizes = np.bincount(units)
    every = np.array([*shares, 1 - sum(shares)])
    desired = np.outer(every, table.sum(axis=0))  # [S, L] assignments that each split still wants
    room = every * len(units)  # [S] documents
    place = np.full(len(sizes), -1, dtype=np.int64)
    by_label = table.tocsc()
    left = np.diff(by_label.indptr).astype(np.int64)  # units without a place that have each label
    lots = rng.permutation(len(left)).tolist()  # the order of labels that equally many units have
    heap = [(int(count), lots[label], label) for label, count in enumerate(left) if count]
    heapq.heapify(heap)
    order = rng.permutation(len(sizes))
    while heap:
        count, lot, label = heapq.heappop(heap)
        if count != left[label]:  # it has changed since it was put there
            if left[label]:
                heapq.heappush(heap, (int(left[label]), lot, label))
            continue
        having = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for unit in sorted(
            (unit for unit in having if place[unit] < 0), key=lambda unit: order[unit]
        ):
            chosen = _choose(desired[:, label], room, sizes[unit], rng.random())
            place[unit] = chosen
            owned = slice(table.indptr[unit], table.indptr[unit + 1])
            desired[chosen, table.indices[owned]] -= table.data[owned]
            room[chosen] -= sizes[unit]
            left[table.indices[owned]] -= 1
    for unit in order:
        if place[unit] < 0:
            place[unit] = int(np.argmax(room))
            room[place[unit]] -= sizes[unit]
    return place[units]


def _choose(
    desired: npt.NDArray[np.float64], room: npt.NDArray[np.float64], size: int, lot: float
) -> int:
    """The split for a unit: of those that have room for at least half of it, the one that wants
    the label most.
    """
    able = np.flatnonzero(room >= size / 2 - TINY_SHARE)
    if not len(able):
        return int(np.argmax(room))
    most = desired[able].max()
    if most >= 1 - TINY_SHARE:
        best = able[desired[able] >= most - TINY_SHARE]
        return int(best[np.argmax(room[best])])
    chances = np.cumsum(np.maximum(desired[able], 0) if most > TINY_SHARE else room[able])
    return int(able[np.searchsorted(chances, lot * chances[-1], side="right")])


def _count_labels(units: Ints, documents: pl.DataFrame) -> csr_array:
    """How many documents of each unit have each label, csr [U, L]."""
    pairs = explode_labels(documents)
    columns = (
        pairs["label"].rank("dense").to_numpy().astype(np.int64) - 1
        if pairs.height
        else np.empty(0, dtype=np.int64)
    )
    rows = units[pairs["row"].to_numpy()]
    shape = (
        int(units.max()) + 1 if len(units) else 0,
        int(columns.max()) + 1 if len(columns) else 0,
    )
    return csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))


GROUP_COLUMN = "group"
_RANKED = re.compile(r"(top|rare):(\d+)")
_RANGE = re.compile(r"(\d+)-(\d*)")


def take_subset(dataset: Dataset, data: DataSection) -> tuple[Dataset, list[str]]:
    """The part of a dataset that the section asks for, and what was left out; the dataset
    itself if it asks for nothing.
    """
    steps: dict[Callable[[Parts, DataSection], tuple[Parts, list[str]]], bool] = {
        _resplit: data.resplit,
        _hold_out_groups: data.group_column is not None and not data.resplit,
        _drop_duplicates: data.duplicates == "drop",
        _drop_leaks: data.leaks == "drop",
        _thin_train: data.train_share < 1,
        _keep_labels: data.keep_labels is not None,
        _take_first: data.documents is not None,
    }
    if not any(steps.values()):
        return dataset, []
    parts = {name: _read(dataset, name, data) for name in SPLITS if name in dataset.splits}
    remarks = []
    for step in (step for step, wanted in steps.items() if wanted):
        parts, said = step(parts, data)
        remarks += said
    if not parts.get("train", pl.DataFrame()).height:
        what, todo = (
            "no training document is left",
            "ask for less: see --keep-labels, --train-share, --duplicates and --leaks",
        )
        raise DataError(
            what,
            where="; ".join([str(data.path), *remarks]),
            expected="a part of the corpus that is not empty",
            todo=todo,
        )
    remarks += [f"no document of {name} is left" for name, part in parts.items() if not part.height]
    kept = {
        name: part.drop(GROUP_COLUMN, strict=False) for name, part in parts.items() if part.height
    }
    return replace(
        dataset,
        splits={name: part.lazy() for name, part in kept.items()},
        evidence=None if dataset.evidence is None else _keep_spans(dataset.evidence, kept),
    ), remarks


def _keep_spans(evidence: pl.LazyFrame, kept: Parts) -> pl.LazyFrame:
    """Spans of the documents and labels that are left."""
    pairs = pl.concat(explode_labels(part).select("doc_id", "label") for part in kept.values())
    return evidence.with_columns(trim(pl.col("label"))).join(
        pairs.lazy(), on=["doc_id", "label"], how="semi", maintain_order="left"
    )


def select_labels(counts: pl.DataFrame, wanted: str) -> pl.Series:
    """The labels that an option such as `top:50`, `rare:50`, `1-5` or `10-` names."""
    ranked, between = _RANKED.fullmatch(wanted), _RANGE.fullmatch(wanted)
    if ranked:
        order = counts.sort("count", "label", descending=[ranked[1] == "top", False])
        return order.head(int(ranked[2]))["label"]
    if between:
        low, high = int(between[1]), int(between[2]) if between[2] else None
        return counts.filter(
            (pl.col("count") >= low) & (pl.lit(high is None) | (pl.col("count") <= (high or 0)))
        )["label"]
    expected, todo = (
        "top:50, rare:50, or a range of training documents such as 1-5 or 10-",
        "correct it",
    )
    raise UsageError(
        f"'{wanted}' names no labels", where="--keep-labels", expected=expected, todo=todo
    )


def split_again(
    dataset: Dataset, data: DataSection, shares: Mapping[SplitName, float], seed: int
) -> Parts:
    """All documents of a dataset in other splits."""
    pooled = pl.concat(_read(dataset, name, data) for name in SPLITS if name in dataset.splits)
    parts = split_documents(pooled, shares, seed=seed, method=data.sampling, groups=_groups(pooled))
    return {name: part.drop(GROUP_COLUMN, strict=False) for name, part in parts.items()}


def _read(dataset: Dataset, name: SplitName, data: DataSection) -> pl.DataFrame:
    frame = tidy(read_frame(dataset, name))
    if data.group_column is None:
        return frame
    columns = dataset.splits[name].collect_schema().names()
    if data.group_column not in columns:
        where, todo = (
            f"split {name} of {', '.join(dataset.files) or 'the dataset'}",
            "name the column of the groups with --group-column",
        )
        raise missing_column(data.group_column, columns, where=where, todo=todo)
    groups = collect(
        dataset.splits[name].select(pl.col(data.group_column).cast(pl.String)), name
    ).to_series()
    return frame.with_columns(groups.alias(GROUP_COLUMN))


def _resplit(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    pooled = pl.concat(parts.values())
    if data.validation_share + data.test_share >= 1:
        what = (
            f"test {data.test_share} and validation {data.validation_share} leave no document "
            "to train on"
        )
        expected = "shares whose sum is below 1"
        raise UsageError(
            what,
            where="--test-share, --validation-share",
            expected=expected,
            todo="lower one of them",
        )
    shares: dict[SplitName, float] = {"test": data.test_share, "validation": data.validation_share}
    found = split_documents(
        pooled, shares, seed=data.subset_seed, method=data.sampling, groups=_groups(pooled)
    )
    return found, [
        f"split again ({data.sampling}): "
        f"{', '.join(f'{name} {part.height:,}' for name, part in found.items())}"
    ]


def _hold_out_groups(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    """Refuse nothing, but say how many groups occur in several splits; make a validation split
    that keeps groups together.
    """
    places = (
        pl.concat(part.select(GROUP_COLUMN, split=pl.lit(name)) for name, part in parts.items())
        .drop_nulls()
        .unique()
    )
    shared = places.filter(pl.col(GROUP_COLUMN).is_duplicated())[GROUP_COLUMN].n_unique()
    remarks = (
        [f"{shared:,} groups of {data.group_column} occur in more than one split"] if shared else []
    )
    if "validation" in parts:
        return parts, remarks
    train = parts["train"]
    share = min(max(data.validation_share, data.validation_minimum / max(1, train.height)), 0.2)
    found = split_documents(
        train,
        {"validation": share},
        seed=data.subset_seed,
        method=data.sampling,
        groups=_groups(train),
    )
    if "train" not in found or not found["train"].height:  # a single group
        return parts, [
            *remarks,
            "no validation split: no group can be held out without all of train",
        ]
    held_out = found["validation"].height if "validation" in found else 0
    remarks.append(
        f"no validation split: {held_out:,} training documents are held out, whole groups"
    )
    return {**found, **{name: part for name, part in parts.items() if name != "train"}}, remarks


def _drop_duplicates(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    kept, remarks = {}, []
    for name, part in parts.items():
        keyed = part.with_columns(key=TEXT_KEY)
        kept[name] = keyed.unique("key", keep="first", maintain_order=True).drop("key")
        dropped = part.height - kept[name].height
        if dropped:
            remarks.append(
                f"{name}: {dropped:,} documents repeat a text but for case, blanks and "
                "punctuation, and are left out"
            )
    return kept, remarks


def _drop_leaks(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    kept, dropped = drop_leaks(parts)
    remark = (
        f"{dropped.height:,} training documents have a text of another split and are left out "
        "of train"
    )
    return kept, [remark] if dropped.height else []


def _thin_train(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    train = parts["train"]
    # the part that is kept is the one that is split off, so that shares are met from the kept side
    halves = split_documents(
        train,
        {"test": data.train_share},
        seed=data.subset_seed,
        method=data.sampling,
        groups=_groups(train),
    )
    kept = halves.get("test", train.clear())
    return {**parts, "train": kept}, [
        f"{kept.height:,} of {train.height:,} training documents are used ({data.sampling} sample)"
    ]


def _keep_labels(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    counts = count_labels(parts["train"])
    wanted = select_labels(counts, str(data.keep_labels))
    has_one = pl.col("labels").list.eval(pl.element().is_in(wanted.implode())).list.any()
    labels = pl.col("labels").list.eval(pl.element().filter(pl.element().is_in(wanted.implode())))
    restricted: Parts = {}
    for name, part in parts.items():
        if name == "test" and data.label_scope == "training":
            restricted[name] = part
            continue
        chosen = part if data.keep_unlabelled else part.filter(has_one)
        restricted[name] = (
            chosen if data.label_scope == "documents" else chosen.with_columns(labels)
        )
    lost = ", ".join(
        f"{name} {parts[name].height - part.height:,}" for name, part in restricted.items()
    )
    kept = f"{wanted.len():,} of {counts.height:,} labels of train are kept ({data.keep_labels})"
    every = ", which leaves none out" if wanted.len() == counts.height else ""
    return restricted, [f"{kept}{every}; documents left out: {lost}"]


def _take_first(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    cut = [name for name, part in parts.items() if part.height > (data.documents or 0)]
    remark = f"only the first {data.documents:,} documents of {', '.join(cut)} are used"
    return {name: part.head(data.documents or 0) for name, part in parts.items()}, [
        remark
    ] if cut else []


def _groups(documents: pl.DataFrame) -> pl.Series | None:
    return None if GROUP_COLUMN not in documents.columns else documents[GROUP_COLUMN]


def drop_leaks(parts: Parts) -> tuple[Parts, pl.DataFrame]:
    """The splits without training documents whose text another split has; and which those are."""
    others = [part.select(key=TEXT_KEY) for name, part in parts.items() if name != "train"]
    if "train" not in parts or not others:
        return parts, pl.DataFrame(schema=CHANGES)
    train, keys = parts["train"].with_columns(key=TEXT_KEY), pl.concat(others).unique()
    gone = train.join(keys, on="key", how="semi", maintain_order="left")
    kept = train.join(keys, on="key", how="anti", maintain_order="left").drop("key")
    return {**parts, "train": kept}, list_changes(
        "train", gone, "left out: another split has its text"
    )


def list_changes(split: str, rows: pl.DataFrame, what: str) -> pl.DataFrame:
    """One change of all rows, as `CHANGES`."""
    return rows.select(split=pl.lit(split), doc_id="doc_id", change=pl.lit(what))
