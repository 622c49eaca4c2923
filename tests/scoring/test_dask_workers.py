"""Scorers fitted by blocks on workers are those that one process fits."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from plant_scorers.ridge import regress_on_own_terms
from scoring.conftest import clinic, fit

from plant_cli.api import ResourceError
from plant_cli.data.blocks import checking, using_workers
from plant_cli.runs.dask_workers import working_at


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of labels and of documents, even here."""
    monkeypatch.setattr("plant_scorers.lexical.WORD_LABEL_PAIRS", 20)
    monkeypatch.setattr("plant_cli.api.scorers.DOCUMENTS_COUNTED", 7)


def require_same(working: AbstractContextManager[None]) -> None:
    """Arrays and left-out scores of all scorers are the same within and without."""
    here = fit(documents=60)
    with working:
        there = fit(documents=60)
    for one, other in zip(here.scorers.scorers, there.scorers.scorers, strict=True):
        arrays, others = one.scorer.tensors(), other.scorer.tensors()
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            np.testing.assert_allclose(others[name], array, atol=1e-5, err_msg=f"{one.name} {name}")
    np.testing.assert_allclose(there.left_out.pairs.values, here.left_out.pairs.values, atol=1e-4)


@pytest.mark.usefixtures("small_blocks")
def test_what_is_sent_away_and_comes_back_is_the_same() -> None:
    sent: list[int] = []

    def send(value: Any) -> Any:
        sent.append(1)
        return pickle.loads(pickle.dumps(value))  # noqa: S301 - as Dask does

    def share(work: Callable[[Any], Any], blocks: Iterable[Any]) -> Iterator[Any]:
        there = send(work)
        return (send(there(send(block))) for block in blocks)

    require_same(using_workers(3, share))
    assert (
        len(sent) > 60
    )  # words: relevance and left-out scores; vectors of two kinds, twice; linear for three workers


@pytest.mark.parametrize("frequent", [1, 200])
def test_linear_by_labels_in_three_parts(frequent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_scorers.ridge.FREQUENT", frequent)
    split, _ = clinic(30)
    train, labels = split.gold.astype(np.float32), split.gold  # a term for each label
    terms, done = np.array([1, 2, 3, 4]), list[float]()
    whole = regress_on_own_terms(train, labels, 1.0, terms).toarray()
    with using_workers(3, map):
        np.testing.assert_allclose(
            regress_on_own_terms(train, labels, 1.0, terms, done.append).toarray(), whole, atol=1e-6
        )
    assert whole.any()
    assert sum(done) == pytest.approx(4)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("plant_cli.runs.dask_workers.SECONDS_TO_CONNECT", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(ResourceError, match="no Dask scheduler answers") as caught,
            working_at(address),
        ):
            pass
    assert caught.value.where == f"machine.scheduler: {address}"
    assert "dask scheduler" in caught.value.todo


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_two_workers_of_dask() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        require_same(working_at(cluster.scheduler_address))

        def stop() -> None:
            raise KeyboardInterrupt

        with (
            pytest.raises(KeyboardInterrupt),
            working_at(cluster.scheduler_address),
            checking(stop),
        ):
            fit(documents=60)
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=None)
    with (
        cluster,
        pytest.raises(ResourceError, match="has no workers"),
        working_at(cluster.scheduler_address),
    ):
        pass
