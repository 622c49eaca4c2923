"""The label index: labels of train in sorted order, so that a row number means the same label everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError, near_names
from plant_cli.base.hashing import hash_strings
from plant_cli.corpus.frames import explode_labels


@dataclass(frozen=True, kw_only=True)
class LabelTable:
    """See `plant_cli.api.LabelIndex`."""

    ids: Sequence[str]
    titles: Sequence[str | None]
    train_counts: Sequence[int]
    descriptions: Sequence[str | None] = ()
    alternatives: Sequence[Sequence[str]] = ()
    parents: Sequence[Sequence[str]] = ()
    further_parents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", hash_strings(self.ids))
        for name, nothing in (("descriptions", None), ("alternatives", ()), ("parents", ())):
            if not getattr(self, name):
                object.__setattr__(self, name, [nothing] * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The row number of each label."""
        return {label: position for position, label in enumerate(self.ids)}

    def position(self, label: str) -> int:
        """See `LabelIndex.position`."""
        try:
            return self.positions[label]
        except KeyError as error:
            raise DataError(
                f"no training document has the label '{label}'",
                where=f"the label index, {len(self)} labels",
                expected=near_names(label, self.ids),
                todo="give its id as it stands in the corpus; `plant mig show` finds a label by part of its title",
            ) from error


def count_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Documents of each label of a tidy frame: `label`, `count`, sorted by label."""
    return explode_labels(frame).group_by("label").agg(count=pl.len()).sort("label")


def encode_labels(frame: pl.DataFrame, positions: Mapping[str, int]) -> tuple[csr_array, csr_array, list[str]]:
    """The gold of a tidy frame as sparse 0/1 matrices.

    Args:
        frame: some documents; many frames of a corpus are encoded one after the other, so a frame costs no more than its own labels.
        positions: the column of each of L labels.

    Returns:
        [N, L] over these labels, [N, U] over the labels that are not among them, and these, sorted.
    """
    pairs = explode_labels(frame)
    labels, rows = pairs["label"].to_list(), pairs["row"].to_numpy()
    unseen = sorted({label for label in labels if label not in positions})
    others = {label: position for position, label in enumerate(unseen)}
    known, unknown = ([table.get(label, -1) for label in labels] for table in (positions, others))
    return _incidence(rows, known, (frame.height, len(positions))), _incidence(rows, unknown, (frame.height, len(unseen))), unseen


def _incidence(rows: npt.NDArray[np.uint32], columns: Sequence[int], shape: tuple[int, int]) -> csr_array:
    """Ones at some places; those whose column is -1 do not count."""
    places = np.asarray(columns, dtype=np.int64)
    kept = places >= 0
    coordinates = (rows[kept].astype(np.int64), places[kept])
    found = csr_array((np.ones(int(kept.sum()), dtype=np.int32), coordinates), shape=shape)
    found.sort_indices()
    return found
