"""`predictions.parquet`: the best labels of every document of a split with their scores, best first.

`labels` holds names, for people and other tools; `label_indices` holds the same labels as rows of the run's label index, so that our
own stages need no look-up of names. The file carries the hash of the label order that the indices belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api.corpus import LabelIndex, Split
from plant_cli.artefacts.guard import stamp
from plant_cli.base.files import replacing
from plant_cli.base.parquet import panics_as_errors
from plant_cli.runs.stage import VALIDATION

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PREDICTIONS = "predictions.parquet"
INDICES = "label_indices"
PARTS = "parts"  # folder of the predictions by each part of a model alone
NETWORK, SCORERS, WHOLE = "network", "scorers together", "all together"  # what parts are called, beside the names of scorers


def write_predictions(
    path: Path, top: Integers, scores: Floats, split: Split, labels: LabelIndex, decisions: Sequence[Sequence[str]] | None = None
) -> None:
    """Write the predictions of one split.

    Args:
        path: the file.
        top: rows of the label index [N, K], best first.
        scores: their scores [N, K] (probabilities).
        split: the documents that were scored, N of them.
        labels: the label index.
        decisions: what to do with each label [N, K]; None: nothing was decided.
    """
    ids = pl.Series("label", list(labels.ids), dtype=pl.String)
    names = ids.gather(top.ravel()).reshape(top.shape).arr.to_list()
    indices = pl.Series(INDICES, top.astype("uint32")).arr.to_list()
    frame = pl.DataFrame({"doc_id": list(split.doc_ids), "labels": names, "scores": pl.Series(scores).arr.to_list(), INDICES: indices})
    if decisions is not None:
        frame = frame.with_columns(pl.Series("decisions", decisions, dtype=pl.List(pl.String)))
    with replacing(path) as partial:
        frame.write_parquet(partial, metadata={**stamp(labels=labels.hash), "split": split.name})


def read_indexed(path: Path, label_hash: str) -> pl.DataFrame | None:
    """`doc_id`, `label_indices`, `scores` of predictions of ours; None if the file is another tool's or has another label order.

    Names are then what there is to go by: another run may have the same documents under another label order. So it is for files that
    were written before there was `label_indices`.

    Args:
        path: the file.
        label_hash: hash of the ordered label ids that indices must belong to.
    """
    try:
        with panics_as_errors():
            rows = pl.scan_parquet(path, glob=False)
            if pl.read_parquet_metadata(path).get("label_hash") != label_hash or INDICES not in rows.collect_schema():
                return None
            return rows.select("doc_id", INDICES, "scores").collect()
    except (OSError, pl.exceptions.PolarsError):  # whoever reads the names says what is wrong with the file
        return None


def list_parts(folder: Path) -> dict[str, Path]:
    """The predictions by each part of the model alone, by its name; empty if there are none.

    Args:
        folder: of the stage `predict`.
    """
    return {path.stem: path for path in sorted((folder / PARTS).glob("[!.]*.parquet"))}


def write_parts(folder: Path, parts: Mapping[str, tuple[Integers, Floats]], split: Split, labels: LabelIndex) -> None:
    """Write the predictions by each part of the model alone; those of an earlier attempt are taken away.

    Args:
        folder: of the stage `predict`.
        parts: best labels and scores [N, K] by the name of the part.
        split: the documents that were scored.
        labels: the label index.
    """
    for old in list_parts(folder).values():
        old.unlink()
    if parts:
        (folder / PARTS).mkdir(exist_ok=True)
    for name, (top, scores) in parts.items():
        write_predictions(folder / PARTS / f"{name}.parquet", top, scores, split, labels)
