"""Splitting documents into train, validation and test, at random or so that each label is shared out in proportion."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from plant_cli.api.corpus import SPLITS, SplitName
from plant_cli.corpus.frames import explode_labels

Method = Literal["uniform", "stratified"]
Ints = npt.NDArray[np.int64]
TINY = 1e-9  # documents: what rounding leaves


def split_documents(
    documents: pl.DataFrame,
    shares: Mapping[SplitName, float],
    *,
    seed: int,
    method: Method = "uniform",
    groups: pl.Series | None = None,
) -> dict[SplitName, pl.DataFrame]:
    """Splits of the given shares; documents of equal text, and of one group, stay together, so that nothing leaks.

    Args:
        documents: the corpus schema, labels tidy.
        shares: of all documents for each split, 0 for none; what is left is train.
        seed: equal seeds give equal splits.
        method: `uniform`: at random; `stratified`: iterative stratification (Sechidis, Tsoumakas & Vlahavas 2011), the rarest labels first.
            Unlike there, no split is filled beyond its share, and what is less than a document of a label is drawn by lot: else all labels
            of one document, which are most in a long tail, would go to the largest split.
        groups: the group of each document, such as its patient; None (or a null group): each stands alone [N].
    """
    units = find_units(documents, groups)
    wanted = {name: share for name, share in shares.items() if share > 0}
    if method == "uniform":
        place = _place_uniformly(units, list(wanted.values()), np.random.default_rng(seed))
    else:
        place = _place_stratified(units, documents, list(wanted.values()), np.random.default_rng(seed))
    names: list[SplitName] = [*wanted, "train"]
    parts = {name: documents.filter(place == names.index(name)) for name in SPLITS if name in names}
    return {name: part for name, part in parts.items() if part.height}


def find_units(documents: pl.DataFrame, groups: pl.Series | None) -> Ints:
    """What must stay together: the number of each document's unit, documents of equal text or group having one [N]."""
    texts = documents["text"].rank("dense").to_numpy().astype(np.int64) - 1
    if groups is None:
        return texts
    names = groups.cast(pl.String)
    grouped = np.flatnonzero(names.is_not_null().to_numpy())
    numbers = names.drop_nulls().rank("dense").to_numpy().astype(np.int64) - 1 if len(grouped) else np.empty(0, dtype=np.int64)
    size = documents.height + (int(numbers.max()) + 1 if len(numbers) else 0)
    first = {text: row for row, text in reversed(list(enumerate(texts.tolist())))}
    rows = np.concatenate([np.arange(documents.height), grouped])
    columns = np.concatenate([np.array([first[text] for text in texts.tolist()], dtype=np.int64), documents.height + numbers])
    links = coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][: documents.height], dtype=np.int64)


def _place_uniformly(units: Ints, shares: list[float], rng: np.random.Generator) -> Ints:
    """The split of each document: its place in `shares`, or the number behind them."""
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    before = np.empty(len(sizes), dtype=np.int64)  # documents whose units come earlier in the order
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    ends = np.cumsum([round(share * len(units)) for share in shares])
    return np.searchsorted(ends, before[units], side="right").astype(np.int64)


def _place_stratified(units: Ints, documents: pl.DataFrame, shares: list[float], rng: np.random.Generator) -> Ints:
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
        for unit in sorted((unit for unit in having if place[unit] < 0), key=lambda unit: order[unit]):
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


def _choose(desired: npt.NDArray[np.float64], room: npt.NDArray[np.float64], size: int, lot: float) -> int:
    """The split for a unit: of those that have room for at least half of it, the one that wants the label most.

    Args:
        desired: documents of the label that each split still wants [S].
        room: documents that each split still has room for [S].
        size: documents of the unit.
        lot: a random number in [0, 1), which decides where no split wants a whole document, by how much of one each wants.
    """
    able = np.flatnonzero(room >= size / 2 - TINY)
    if not len(able):
        return int(np.argmax(room))
    most = desired[able].max()
    if most >= 1 - TINY:
        best = able[desired[able] >= most - TINY]
        return int(best[np.argmax(room[best])])
    chances = np.cumsum(np.maximum(desired[able], 0) if most > TINY else room[able])
    return int(able[np.searchsorted(chances, lot * chances[-1], side="right")])


def _count_labels(units: Ints, documents: pl.DataFrame) -> csr_array:
    """How many documents of each unit have each label, csr [U, L]."""
    pairs = explode_labels(documents)
    columns = pairs["label"].rank("dense").to_numpy().astype(np.int64) - 1 if pairs.height else np.empty(0, dtype=np.int64)
    rows = units[pairs["row"].to_numpy()]
    shape = (int(units.max()) + 1 if len(units) else 0, int(columns.max()) + 1 if len(columns) else 0)
    return csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))
