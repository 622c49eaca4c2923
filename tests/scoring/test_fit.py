"""A model from texts and labels in Python: `from plant_cli import fit, load`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli import fit, load
from plant_cli.api import UsageError
from plant_cli.scoring.opened_models import OpenModel

TEXTS = [
    f"{word} and {other}"
    for word in ("fever", "cough", "fracture", "rash")
    for other in ("pain", "chills", "nausea", "fatigue", "age")
]
LABELS = [["FEVER"]] * 5 + [["COUGH"]] * 5 + [["BONE"]] * 5 + [["SKIN", "FEVER"]] * 5
OPTIONS = {"scorers": ["words", "neighbours"], "validation": 0.2}


@pytest.fixture(scope="module")
def model() -> OpenModel:
    return fit(TEXTS, LABELS, {"FEVER": "High temperature", "BONE": "Broken bone"}, **OPTIONS)


def test_a_model_suggests_and_says_why(model: OpenModel) -> None:
    (first, *_), none = model.suggest(["a fracture with pain", ""], k=2, why=True)
    assert (first.label, first.title, none) == ("BONE", "Broken bone", [])
    assert "fracture" in first.why
    assert model.suggest(["a fracture"], k=1)[0][0].why == ""


def test_a_saved_model_is_the_same_when_it_is_loaded(model: OpenModel, tmp_path: Path) -> None:
    model.save(tmp_path / "kept")
    assert load(tmp_path / "kept").suggest(TEXTS) == model.suggest(TEXTS)
    with pytest.raises(UsageError, match="there already"):
        model.save(tmp_path / "kept")


def with_zeros(rows: Any) -> csr_array:
    """A sparse matrix that stores its zeros."""
    matrix = csr_array(rows + 1)
    matrix.data -= 1
    return matrix


def ids(rows: Any) -> pl.Series:
    return pl.Series([np.flatnonzero(row).tolist() for row in rows])


@pytest.mark.parametrize("form", [np.array, with_zeros, ids])
def test_labels_may_be_zeros_and_ones_or_a_column_of_numbers(form: Any) -> None:
    rows = [[label in one for label in ("FEVER", "COUGH", "BONE", "SKIN")] for one in LABELS]
    assert (
        fit(TEXTS, form(np.array(rows, dtype=int)), **OPTIONS)
        .suggest(["fracture"], k=1)[0][0]
        .label
        == "2"
    )


@pytest.mark.parametrize(
    ("texts", "labels", "what"),
    [
        ("a text", [["A"]], "texts is one string"),
        (["a text"], ["A"], r"labels\[0\] is one string"),
        (["a text"], [["A"], ["B"]], "there are 1 texts and 2 lists of labels"),
    ],
)
def test_what_does_not_fit_is_told(texts: Any, labels: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        fit(texts, labels)


def test_the_package_alone_imports_nothing() -> None:
    code = "import sys, plant_cli; print({'numpy', 'pydantic', 'polars'} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "set()\n"
    )
