from __future__ import annotations

import shutil

import polars as pl
import pytest

from plant_cli.api import ArtefactError, DataError
from plant_cli.data.files import read_json


@pytest.fixture
def prepared(laboratory):
    """A laboratory whose first stage has read the corpus."""
    laboratory.on["alpha"] = lambda context: context.corpus()
    _run(laboratory, laboratory.data)
    return laboratory


def _run(laboratory, path, **request):
    return laboratory.run("alpha", flags={"data": {"path": str(path)}}, **request)


def _change(laboratory, path):
    pl.read_parquet(laboratory.data).with_columns(text=pl.col("text") + " changed").write_parquet(path)
    return path


@pytest.mark.parametrize("request_", [{}, {"force": True}, {"tag": "other"}, {"resume": True}])
def test_another_corpus_is_told_before_anything_is_said_or_done(prepared, tmp_path, request_):
    other = _change(prepared, tmp_path / "other.parquet")
    with pytest.raises(ArtefactError, match="the split 'train' has other texts") as caught:
        _run(prepared, other, **request_)
    assert "--run NEW" in caught.value.todo
    assert prepared.calls == ["alpha"]
    assert not prepared.reporter.warnings
    assert not (prepared.path / "alpha-other").exists()


def test_a_corpus_that_moved_or_changed_its_format_is_the_same(prepared, tmp_path):
    moved, table = tmp_path / "moved.parquet", tmp_path / "data.jsonl"
    shutil.copyfile(prepared.data, moved)
    pl.read_parquet(prepared.data).write_ndjson(table)
    known = read_json(prepared.path / "run.json", "the run")["data_hash"]
    for path in (moved, table):
        _run(prepared, path, force=True)
    assert prepared.calls == 3 * ["alpha"]
    assert read_json(prepared.path / "run.json", "the run")["data_hash"] == known


def test_a_corpus_that_is_not_there_is_told_so(prepared, tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        _run(prepared, tmp_path / "nowhere.parquet")


@pytest.mark.parametrize("request_", [{}, {"force": True}, {"tag": "other"}])
def test_the_run_of_a_made_up_corpus_takes_no_file(clinic, laboratory, request_):
    clinic("mig", "mig.k=5")
    named = f"data.path={laboratory.data}"
    with pytest.raises(ArtefactError, match="this run belongs to another corpus, made by 'synthetic-clinic'") as caught:
        clinic("mig", "mig.k=5", named, **request_)
    assert "--run NEW" in caught.value.todo
    with pytest.raises(DataError, match="there is no such file"):
        clinic("mig", "mig.k=5", f"{named}x", **request_)
