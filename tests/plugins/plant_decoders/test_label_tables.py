"""Rows of label tables: those that are asked for, and no other gets a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from plant_decoders.label_tables import fill_up, take_rows

from plant_cli.api import DecoderShape, Reading


def test_rows_of_tables_and_of_vectors() -> None:
    table, labels = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    assert take_rows(table, None, sparse=True) is table
    assert take_rows(table, labels, sparse=False).tolist() == [[4, 5], [0, 1]]
    assert take_rows(table[:, 0], labels, sparse=True).tolist() == [4, 0]


def test_filling_up_repeats_the_last_label() -> None:
    assert fill_up(torch.tensor([3, 1])).tolist() == [3, *[1] * 63]
    assert len(fill_up(torch.arange(64))) == 64


@pytest.mark.parametrize("name", ["caml", "laat", "joint-laat", "plm-icd", "plm-ca"])
def test_chosen_labels_touch_no_other_row_of_a_table(build: Callable[..., Any], reading: Reading, name: str) -> None:
    shape = DecoderShape(hidden=6, labels=5, parents=["a", "a", "b", "b", "b"])
    decoder, labels = build(name, shape), torch.tensor([4, 1])
    decoder.sparse = True
    logs = decoder.rank(reading, labels)
    (decoder(reading, labels).sum() + logs[logs.isfinite()].square().sum()).backward()
    for table in decoder.label_tables():
        assert table.grad.coalesce().indices()[0].tolist() == [1, 4]
