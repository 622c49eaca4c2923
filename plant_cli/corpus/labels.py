"""The label index: labels of train in sorted order, so that a row number means the same label everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
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
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", hash_strings(self.ids))
        for name, nothing in (("descriptions", None), ("alternatives", ()), ("parents", ())):
            if not getattr(self, name):
                object.__setattr__(self, name, [nothing] * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: position for position, label in enumerate(self.ids)}

    def position(self, label: str) -> int:
        """See `LabelIndex.position`."""
        try:
            return self._positions[label]
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


def encode_labels(frame: pl.DataFrame, ids: Sequence[str]) -> tuple[csr_array, csr_array, list[str]]:
    """The gold of a tidy frame as sparse 0/1 matrices.

    Returns:
        [N, L] over `ids`, [N, U] over the labels that are not in `ids`, and these labels, sorted.
    """
    pairs = explode_labels(frame)
    known, unknown = (
        pairs.join(pl.DataFrame({"label": ids}, schema={"label": pl.String}), on="label", how=how, maintain_order="left")
        for how in ("semi", "anti")
    )
    unseen = unknown["label"].unique().sort().to_list()
    return _incidence(known, ids, frame.height), _incidence(unknown, unseen, frame.height), unseen


def _incidence(pairs: pl.DataFrame, ids: Sequence[str], documents: int) -> csr_array:
    index = pl.DataFrame({"label": ids}, schema={"label": pl.String}).with_row_index("column")
    numbered = pairs.join(index, on="label", how="left").sort("row", "column")
    ones = np.ones(numbered.height, dtype=np.int32)
    coordinates = (numbered["row"].cast(pl.Int64).to_numpy(), numbered["column"].cast(pl.Int64).to_numpy())
    return csr_array((ones, coordinates), shape=(documents, len(ids)))
