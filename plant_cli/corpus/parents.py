"""Parents of labels, where the table of labels names them: the groups that two-level decoders score."""

from __future__ import annotations

import polars as pl

from plant_cli.api.corpus import Dataset
from plant_cli.corpus.frames import trim
from plant_cli.kit.tables import collect

PARENTS = "parents"


def read_parents(dataset: Dataset) -> pl.DataFrame | None:
    """`label` and `parent` (null where there is none), each label once; None if the table of labels has no column `parents`.

    The column holds a name, or a list of names of which the first counts.
    """
    if dataset.labels is None or PARENTS not in dataset.labels.collect_schema():
        return None
    several = isinstance(dataset.labels.collect_schema()[PARENTS], pl.List)
    parent = pl.col(PARENTS).list.first() if several else pl.col(PARENTS)
    columns = (trim(pl.col("label").cast(pl.String)), trim(parent.cast(pl.String)).replace("", None).alias("parent"))
    return collect(dataset.labels.select(*columns), "the table of labels").unique("label", keep="first", maintain_order=True)
