"""What stands above the labels of a corpus in its vocabulary, up to the top: also above labels that the label index does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from plant_cli.artefacts.corpus import PARENTS


def find_further_parents(titles: pl.DataFrame, labels: pl.Series, indexed: pl.Series) -> pl.DataFrame | None:
    """The parents that `labels.parquet` cannot hold.

    Args:
        titles: `label`, and `parents`, a list; everything that the vocabulary knows.
        labels: those of documents of any split.
        indexed: those of the label index, whose own parents are known there.

    Returns:
        `label`, `parent`, sorted, of labels that are not in the index and are at or above any label of the corpus; None: there are none.
    """
    known = dict(titles.filter(pl.col("parents").list.len() > 0).select("label", "parents").iter_rows())
    own = set(indexed)
    found = own.union(labels)
    waiting = list(found)
    while waiting:
        further = [parent for parent in known.get(waiting.pop(), ()) if parent not in found]
        found.update(further)
        waiting += further
    pairs = sorted((label, parent) for label in found - own for parent in known.get(label, ()))
    return pl.DataFrame(pairs, schema=PARENTS, orient="row") if pairs else None


def group_parents(pairs: pl.DataFrame | None) -> Mapping[str, Sequence[str]]:
    """The parents of each label of `find_further_parents`."""
    return {} if pairs is None else dict(pairs.group_by("label", maintain_order=True).agg("parent").iter_rows())
