"""Checks of datasets. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from plant_cli.api import Dataset, DatasetSpec, Pieces
from plant_cli.testing import dataset_checks as datasets


def _dataset(**changes: Any) -> DatasetSpec:
    columns = {"doc_id": ["a", "b"], "text": ["x y", "z"], "labels": [["L"], []]} | changes.pop("columns", {})
    fields = {"splits": {"train": pl.LazyFrame(columns, schema_overrides={"labels": pl.List(pl.String)})}} | changes
    return DatasetSpec(name="d", summary="D.", load=lambda data, options: Dataset(**fields))


def test_datasets(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in (
        datasets.train_has_documents,
        datasets.columns_have_their_types,
        datasets.ids_are_unique,
        datasets.two_loads_agree,
    ):
        check(_dataset())
    stopped(datasets.ids_are_unique, _dataset(columns={"doc_id": ["a", "a"]}), "1 ids occur twice")
    stopped(datasets.columns_have_their_types, _dataset(columns={"doc_id": [1, 2]}), "schema")
    stopped(datasets.columns_have_their_types, _dataset(columns={"text": ["x", None]}), "without id or text")
    stopped(datasets.train_has_documents, _dataset(splits={"test": pl.LazyFrame()}), "no train split")
    stopped(datasets.label_table_has_one_row_a_label, _dataset(labels=pl.LazyFrame({"label": ["L", "L"], "title": ["", ""]})), "twice")
    half = pl.LazyFrame({"doc_id": ["a"], "text": ["x"], "labels": [["L"]]})
    cut = Pieces(whole=pl.LazyFrame({"doc_id": ["a", "b"], "text": ["x", "y"], "labels": [["L"], ["L"]]}), parts=[half])
    stopped(datasets.pieces_are_the_splits, _dataset(pieces={"train": cut}), "are not its documents")
    stopped(datasets.excluded_pairs_have_their_columns, _dataset(excluded=pl.LazyFrame({"label": ["L"]})), "excluded pairs have the schema")
    wrong = pl.LazyFrame({"doc_id": ["a"], "label": ["L"], "start": [0], "end": [1], "text": ["q"]})
    stopped(datasets.evidence_quotes_the_text, _dataset(evidence=wrong), "do not quote")
    stopped(datasets.says_where_it_comes_from, _dataset(licence=" "), "licence")


def test_a_reader_of_its_own_format_is_not_given_another_one() -> None:
    spec = replace(_dataset(), recognise=lambda data: None)
    with pytest.raises(pytest.skip.Exception, match="give it `write`"):
        datasets.train_has_documents(spec)
