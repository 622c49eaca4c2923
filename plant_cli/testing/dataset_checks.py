"""Checks of datasets: splits with the three columns, unique ids, labels and evidence that fit
the texts.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import (
    SPLITS,
    ComponentError,
    DataError,
    DataSection,
    Dataset,
    DatasetSpec,
    ResourceError,
)
from plant_cli.testing.checklist import check, default_options

EXAMPLE = (
    ("train", "fever and cough", ["A", "B"]),
    ("train", "broken arm", ["C"]),
    ("train", "broken leg and fever", ["A", "C"]),
    ("validation", "cough", ["B"]),
    ("test", "fever", ["A"]),
)


@check(DatasetSpec)
def train_has_documents(spec: DatasetSpec) -> None:
    """There is a train split, and it is not empty."""
    splits = _loaded(spec).splits
    assert "train" in splits, "there is no train split"
    assert splits["train"].collect().height > 0, "train is empty"


@check(DatasetSpec)
def columns_have_their_types(spec: DatasetSpec) -> None:
    """`doc_id: str, text: str, labels: list[str]`, without nulls in id and text."""
    for name, frame in _loaded(spec).splits.items():
        schema = frame.collect_schema()
        wanted = {"doc_id": pl.String(), "text": pl.String(), "labels": pl.List(pl.String())}
        assert {column: schema.get(column) for column in wanted} == wanted, (
            f"split {name} has the schema {dict(schema)}"
        )
        nulls = frame.select(pl.col("doc_id", "text").null_count()).collect()
        assert nulls.row(0) == (0, 0), f"split {name} has documents without id or text"


@check(DatasetSpec)
def ids_are_unique(spec: DatasetSpec) -> None:
    """No id occurs twice, in one split or in two."""
    ids = [
        i
        for frame in _loaded(spec).splits.values()
        for i in frame.select("doc_id").collect()["doc_id"].to_list()
    ]
    assert len(ids) == len(set(ids)), f"{len(ids) - len(set(ids))} ids occur twice"


@check(DatasetSpec)
def two_loads_agree(spec: DatasetSpec) -> None:
    """Reading twice gives the same documents in the same order."""
    first, second = _load(spec), _load(spec)
    for name, frame in first.splits.items():
        assert frame.collect().equals(second.splits[name].collect()), (
            f"split {name} differs from load to load"
        )


@check(DatasetSpec)
def label_table_has_one_row_a_label(spec: DatasetSpec) -> None:
    """The label table, where there is one, has unique labels and a title column."""
    labels = _loaded(spec).labels
    if labels is None:
        pytest.skip("no label table")
    frame = labels.collect()
    assert {"label", "title"} <= set(frame.columns), (
        f"the label table has the columns {frame.columns}"
    )
    assert frame["label"].n_unique() == frame.height, "a label occurs twice in the label table"


@check(DatasetSpec)
def evidence_quotes_the_text(spec: DatasetSpec) -> None:
    """Gold evidence spans, where there are any, hold exactly the characters they quote."""
    dataset = _loaded(spec)
    if dataset.evidence is None:
        pytest.skip("no evidence")
    texts = {
        i: t
        for frame in dataset.splits.values()
        for i, t in frame.select("doc_id", "text").collect().iter_rows()
    }
    spans = dataset.evidence.select("doc_id", "start", "end", "text").collect()
    wrong = [
        doc
        for doc, start, end, quoted in spans.iter_rows()
        if texts.get(doc, "")[start:end] != quoted
    ]
    assert not wrong, (
        f"{len(wrong)} spans that do not quote their document, such as one of {wrong[0]}"
    )


@check(DatasetSpec)
def pieces_are_the_splits(spec: DatasetSpec) -> None:
    """Where a split comes in pieces, these give its rows one after the other."""
    for name, pieces in _loaded(spec).pieces.items():
        documents = pieces.whole.collect()
        assert pl.concat([part.collect() for part in pieces.parts]).equals(documents), (
            f"the pieces of {name} are not its documents"
        )


@check(DatasetSpec)
def excluded_pairs_have_their_columns(spec: DatasetSpec) -> None:
    """Pairs to leave out, where there are any, are `doc_id, label`."""
    excluded = _loaded(spec).excluded
    if excluded is None:
        pytest.skip("no pairs to leave out")
    schema = excluded.collect_schema()
    wrong = [name for name in ("doc_id", "label") if schema.get(name) != pl.String()]
    assert not wrong, f"excluded pairs have the schema {dict(schema)}"


@check(DatasetSpec)
def what_it_writes_it_recognises(spec: DatasetSpec) -> None:
    """A format with a writer recognises what it wrote, and reads the texts and labels of it."""
    if spec.write is None:
        pytest.skip("it writes nothing")
    assert spec.recognise is not None, "it writes a format that it does not recognise"
    said = spec.recognise(DataSection(path=str(_source(spec))))
    assert said, "it does not recognise what it wrote"
    splits = _loaded(spec).splits
    documents = sorted(
        (name, text)
        for name, frame in splits.items()
        for text in frame.select("text").collect()["text"]
    )
    assert documents == sorted((split, text) for split, text, _ in EXAMPLE), (
        f"other documents come back: {documents}"
    )


@check(DatasetSpec)
def says_where_it_comes_from(spec: DatasetSpec) -> None:
    """Licence and access are stated."""
    assert _loaded(spec).licence.strip(), "the licence is empty"
    assert _loaded(spec).access in ("local", "bundled", "hub"), (
        f"access is {_loaded(spec).access!r}"
    )


@cache
def _loaded(spec: DatasetSpec) -> Dataset:
    return _load(spec)


def _load(spec: DatasetSpec) -> Dataset:
    options, source = default_options(spec), DataSection(path=str(_source(spec)))
    if spec.write is None and spec.recognise is not None and not spec.recognise(source):
        pytest.skip(
            "it recognises no table of JSON lines, and writes no example of its own format: give "
            "it `write` to have it checked"
        )
    try:
        return spec.load(source, options)
    except (
        ComponentError,
        ResourceError,
    ) as error:  # a package or a download that this machine does not have
        pytest.skip(str(error))
    except DataError as error:  # a published corpus reads its own files alone
        if spec.card is None:
            raise
        pytest.skip(str(error))


@cache
def _source(spec: DatasetSpec) -> Path:
    """What the dataset is to read: the example as a table, or as it writes it itself; it lasts
    as long as the process.
    """
    folder = Path(tempfile.mkdtemp(prefix="plant-conformance-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rows = [
        {"doc_id": f"d{i}", "text": text, "labels": labels, "split": split}
        for i, (split, text, labels) in enumerate(EXAMPLE)
    ]
    if spec.write is None:
        file = folder / "corpus.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file
    parts = pl.DataFrame(rows).partition_by("split", as_dict=True, include_key=False)
    spec.write(Dataset(splits={split: parts[(split,)].lazy() for split in SPLITS}), folder, "")
    return folder
