"""Predictions and scores as files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api import ArtefactError, ResourceError
from plant_cli.api.corpus import LabelIndex, Split
from plant_cli.data.files import hash_strings, read_json, replacing, show_size, write_json
from plant_cli.data.parquet import panics_as_errors
from plant_cli.data.records import find_finished, require_recorded, require_same, stamp

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PREDICTIONS = "predictions.parquet"
INDICES = "label_indices"
PARTS_FOLDER = "parts"  # folder of the predictions by each part of a model alone
NETWORK, ALL_SCORERS, ALL_PARTS = (
    "network",
    "scorers together",
    "all together",
)  # what parts are called, beside the names of scorers


def write_predictions(
    path: Path,
    top: Integers,
    scores: Floats,
    split: Split,
    labels: LabelIndex,
    decisions: Sequence[Sequence[str]] | None = None,
) -> None:
    """Write the predictions of one split."""
    ids = pl.Series("label", list(labels.ids), dtype=pl.String)
    names = ids.gather(top.ravel()).reshape(top.shape).arr.to_list()
    indices = pl.Series(INDICES, top.astype("uint32")).arr.to_list()
    frame = pl.DataFrame(
        {
            "doc_id": list(split.doc_ids),
            "labels": names,
            "scores": pl.Series(scores).arr.to_list(),
            INDICES: indices,
        }
    )
    if decisions is not None:
        frame = frame.with_columns(pl.Series("decisions", decisions, dtype=pl.List(pl.String)))
    with replacing(path) as partial:
        frame.write_parquet(partial, metadata={**stamp(labels=labels.hash), "split": split.name})


def read_indexed(path: Path, label_hash: str) -> pl.DataFrame | None:
    """`doc_id`, `label_indices`, `scores` of predictions of ours; None if the file is another
    tool's or has another label order.

    Names are then what there is to go by: another run may have the same documents under another
    label order. So it is for files that were written before there was `label_indices`.
    """
    try:
        with panics_as_errors():
            rows = pl.scan_parquet(path.absolute(), glob=False)
            if (
                pl.read_parquet_metadata(path).get("label_hash") != label_hash
                or INDICES not in rows.collect_schema()
            ):
                return None
            return rows.select("doc_id", INDICES, "scores").collect()
    except (
        OSError,
        pl.exceptions.PolarsError,
    ):  # whoever reads the names says what is wrong with the file
        return None


def list_parts(folder: Path) -> dict[str, Path]:
    """The predictions by each part of the model alone in the folder of `predict`, by the name of
    the part; empty if there are none.

    Of a finished stage they are those that it recorded.
    """
    record = find_finished(folder)
    paths = (
        (folder / PARTS_FOLDER).glob("[!.]*.parquet")
        if record is None
        else map(folder.joinpath, record.outputs)
    )
    return {path.stem: path for path in sorted(paths) if path.parent == folder / PARTS_FOLDER}


def write_part_predictions(
    folder: Path, parts: Mapping[str, tuple[Integers, Floats]], split: Split, labels: LabelIndex
) -> None:
    """Write the predictions by each part of the model alone, labels and scores [N, K]; those of
    an earlier attempt are removed.
    """
    for old in (folder / PARTS_FOLDER).glob("[!.]*.parquet"):
        old.unlink()
    if parts:
        (folder / PARTS_FOLDER).mkdir(exist_ok=True)
    for name, (top, scores) in parts.items():
        write_predictions(folder / PARTS_FOLDER / f"{name}.parquet", top, scores, split, labels)


SCORES_FILE = "scores.bin"
SCORES_DESCRIPTION_FILE = "scores.json"
STORED = np.dtype("<f4")
COMMAND = "plant predict --auc"


class ScoreWriter:
    """Writes the logits of documents at their rows of [N, L], in any order, and reads back what it
    wrote.

    Written, not mapped: on a full disk a write raises an error, and a mapped page ends the process.
    """

    def __init__(self, file: BinaryIO, labels: int) -> None:
        self._file = file
        self._labels = labels
        self._row_bytes = labels * STORED.itemsize

    def write(self, rows: npt.NDArray[np.int64], logits: npt.NDArray[np.float32]) -> None:
        """Keep logits [B, L] of the documents of these rows [B]."""
        for row, scores in zip(rows, logits, strict=True):
            self._file.seek(int(row) * self._row_bytes)
            self._file.write(scores.astype(STORED).tobytes())

    def read(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """What was kept of the documents of these rows [B, L]; zeros where nothing was."""
        logits = np.empty((len(rows), self._labels), dtype=np.float32)
        for number, row in enumerate(rows):
            self._file.seek(int(row) * self._row_bytes)
            logits[number] = np.frombuffer(self._file.read(self._row_bytes), dtype=STORED)
        return logits


@contextmanager
def writing_scores(
    folder: Path, doc_ids: Sequence[str], labels: int, label_hash: str
) -> Iterator[ScoreWriter]:
    """A writer of the scores of documents; the files are whole when the block ends well, and
    not there when it does not.
    """
    (folder / SCORES_DESCRIPTION_FILE).unlink(missing_ok=True)
    with replacing(folder / SCORES_FILE) as partial, partial.open("w+b") as file:
        file.truncate(len(doc_ids) * labels * STORED.itemsize)
        yield ScoreWriter(file, labels)
    write_json(
        folder / SCORES_DESCRIPTION_FILE,
        {**stamp(labels=label_hash), "documents": hash_strings(doc_ids), "labels": labels},
    )


def remove_scores(folder: Path) -> None:
    """Remove the scores of a folder, and the folder itself if nothing else is in it."""
    for name in (SCORES_DESCRIPTION_FILE, SCORES_FILE):
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def open_scores(
    folder: Path, doc_ids: Sequence[str], label_hash: str
) -> npt.NDArray[np.float32] | None:
    """The scores [N, L] of a predict folder, memory-mapped; None if they were not kept."""
    if not (folder / SCORES_DESCRIPTION_FILE).exists():
        return None
    known = read_json(folder / SCORES_DESCRIPTION_FILE, "the description of the scores")
    labels = known.get("labels") if isinstance(known, dict) else None
    if not isinstance(labels, int):
        raise _refused(
            "the description of the scores is damaged: it lacks the number of labels",
            folder / SCORES_DESCRIPTION_FILE,
            "format, labels and hashes",
        )
    todo = f"`{COMMAND} --force` writes them again"
    require_same(
        known,
        path=folder / SCORES_DESCRIPTION_FILE,
        what="the file of scores",
        todo=todo,
        labels=label_hash,
    )
    if known.get("documents") != hash_strings(doc_ids):
        raise _refused(
            "the scores are of other documents",
            folder / SCORES_DESCRIPTION_FILE,
            "the documents of this split, in their order",
        )
    require_recorded(folder, SCORES_DESCRIPTION_FILE, SCORES_FILE)
    path = folder / SCORES_FILE
    need, size = (
        len(doc_ids) * labels * STORED.itemsize,
        path.stat().st_size if path.exists() else 0,
    )
    if size != need:
        raise _refused(
            f"the file of scores has {size} bytes, not {need}",
            path,
            f"{len(doc_ids)} documents of {labels} labels, 4 bytes each",
        )
    return np.memmap(path, dtype=STORED, mode="r", shape=(len(doc_ids), labels))


def require_room(folder: Path, documents: int, labels: int, budget: int) -> None:
    """Refuse scores that exceed the budget in bytes, or the free space of the disk."""
    need, free = documents * labels * STORED.itemsize, shutil.disk_usage(folder).free
    if need <= min(budget, free):
        return
    exceeded = (
        f"the limit is {show_size(budget)}" if need > budget else f"{show_size(free)} are free"
    )
    enough = f"--auc-disk {-(-need // 10**9)}GB" if need <= free else "--run DIR on a larger disk"
    raise ResourceError(
        f"every score of {documents} documents and {labels} labels takes {show_size(need)}: "
        f"{exceeded}",
        where=str(folder / SCORES_FILE),
        expected=f"room for {show_size(need)} (4 bytes a score); {show_size(free)} are free, the "
        f"limit is {show_size(budget)}",
        todo=f"`{COMMAND}` with {enough}, or leave --auc out: all other metrics need the best "
        "labels only",
    )


def _refused(what: str, where: Path | str, expected: str) -> ArtefactError:
    return ArtefactError(
        what, where=str(where), expected=expected, todo=f"`{COMMAND} --force` writes them again"
    )
