"""`OpenModel.label`: batches of tables, in this process and in others."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from plant_cli import fit, load
from plant_cli.api import UsageError
from plant_cli.scoring.opened_models import OpenModel

WORDS = ("fever", "cough", "fracture", "rash")
ASKED = ["a fracture of the arm", "", "cough and fever"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model of four labels."""
    texts = [f"The patient has {word}, number {n}." for word in WORDS for n in range(5)]
    saved = tmp_path_factory.mktemp("model") / "saved"
    fit(texts, [[word.upper()] for word in WORDS for _ in range(5)], scorers=["words"]).save(saved)
    return saved


@pytest.fixture(scope="module")
def model(folder: Path) -> OpenModel:
    return load(folder)


def expect(model: OpenModel, k: int) -> dict[str, list[list[Any]]]:
    """The three columns, by `suggest`."""
    found = model.suggest(ASKED, k=k)
    return {
        f"{name}s": [[getattr(one, name) for one in row] for row in found]
        for name in ("label", "score", "band")
    }


def test_a_batch_of_every_kind_comes_back_as_it_is_with_three_columns(model: OpenModel) -> None:
    pa, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    wanted = {"id": [1, 2, 3], "text": ASKED, **expect(model, 2)}
    assert wanted["labels"][0][0] == "FRACTURE"
    assert wanted["labels"][1] == []
    plain = {"id": [1, 2, 3], "text": ASKED}
    frame = model.label(pl.DataFrame(plain), k=2)
    assert frame.equals(pl.DataFrame(wanted))
    table = pa.table(plain)
    for batch in (table, table.to_batches()[0]):
        found = model.label(batch, k=2)
        assert type(found) is type(batch)
        assert found.to_pydict() == wanted
    found = model.label(pandas.DataFrame(plain), k=2)
    assert found.to_dict("list") == wanted
    by_column = {"id": np.array([1, 2, 3]), "text": np.array(ASKED, dtype=object)}
    found = model.label(by_column, k=2)
    assert {name: list(values) for name, values in found.items()} == wanted
    assert found["scores"].dtype == object
    alike = model.label({"text": ["fever", "cough"]}, k=2)  # lists of one length
    assert [len(one) for one in alike["labels"]] == [2, 2]
    assert model.label(ASKED, k=2) == {name: wanted[name] for name in wanted if name != "id"}


def test_a_missing_text_gets_no_labels(model: OpenModel) -> None:
    found = model.label(pl.DataFrame({"note": ["fever", None]}), text="note")
    assert found["labels"].list.len().to_list()[1] == 0
    assert found["labels"][0][0] == "FEVER"


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (pl.DataFrame({"note": ["fever"]}), "no column 'text'"),
        (pl.DataFrame({"text": ["fever"], "scores": [1]}), "a column 'scores' already"),
        ("fever", "given as str"),
        (3, "given as int"),
    ],
)
def test_what_cannot_be_labelled_is_said(model: OpenModel, batch: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        model.label(batch)


def test_it_is_sent_by_its_path_and_opened_once(model: OpenModel) -> None:
    sent = pickle.dumps(model.label)
    assert len(sent) < 1000
    first, second = (pickle.loads(sent) for _ in range(2))  # noqa: S301 - as workers do
    assert first.__self__ is second.__self__
    assert first(ASKED) == model.label(ASKED)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(model.label, ASKED).result() == model.label(ASKED)


def test_a_model_that_was_not_saved_is_not_sent() -> None:
    kept = fit(["fever", "cough"] * 10, [["A"], ["B"]] * 10, scorers=["words"])
    with pytest.raises(UsageError, match="was not saved"):
        pickle.dumps(kept.label)
