"""What machines that count together hand to one another: digests of a corpus and shards of counts, with one file spoilt."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from plant_cli.api import DataSection, SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.data.digests import read_digest_files, write_digests
from plant_cli.data.files import hash_file
from plant_cli.data.splits import Shard
from plant_cli.relevance.counting import SparseCounting, count_terms
from plant_cli.relevance.shards import RECORD, open_shards, write_shard
from tests.faults.fuzzing.inputs import Files, changed_json, mutations

HASHES = {"data_hash": "d" * 64, "label_hash": "l" * 64, "analyser": "a" * 64}
TEXTS = [["fever", "cough"], ["cough", "pain", "fever"], ["pain"], ["fever", "fever", "arm"], ["arm", "pain"]]
SECTION = DataSection(path="good.csv")


@cache
def _dataset() -> Dataset:
    import polars as pl

    rows = {"doc_id": [f"d{n}" for n in range(5)], "text": [" ".join(words) for words in TEXTS], "labels": [["A"], ["B"], [], ["A"], ["B"]]}
    return Dataset(splits={"train": pl.LazyFrame(rows, schema_overrides={"labels": pl.List(pl.String)})})


@cache
def _written() -> Files:
    """Digests and shards as they are when nobody spoilt them, by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for number in (1, 2):
            shard = Shard(number, 2)
            write_digests(place / f"digests-{number}.parquet", _dataset(), SECTION, shard, SilentReporter())
            (place / f"shard-{number}").mkdir()
            gold = csr_array(np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]], dtype=np.int32)[shard.rows])
            counting = SparseCounting(count_terms(TEXTS[shard.rows], 1), gold, with_occurrences=True)
            write_shard(place / f"shard-{number}", shard, counting, memory=10_000, jobs=1, **HASHES)
        return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


@st.composite
def shares(draw: st.DrawFn) -> Files:
    """All files, one of them spoilt; the record of its shard is made to fit, as a stranger may do, unless the case says otherwise."""
    files = dict(_written())
    name = draw(st.sampled_from(sorted(files)))
    ways = mutations([files[name]])
    files[name] = draw(ways | changed_json([files[name]]) if name.endswith(RECORD) else ways)
    return {**files, "fits": b"" if draw(st.integers(0, 3)) else b"no"}


def read_shares(files: Files, folder: Path) -> None:
    """As `plant data check --digests` and `plant mig --shards`."""
    if not files["fits"]:
        for record in folder.glob(f"*/{RECORD}"):
            _let_fit(record)
    try:
        read_digest_files([str(folder / "digests-*.parquet")], _dataset(), SECTION)
    finally:
        merged = open_shards([folder / "shard-1", folder / "shard-2"], with_occurrences=True, min_df=1, keep=set(), **HASHES)
        merged.count(0, 2)


def _let_fit(record: Path) -> None:
    try:
        content = json.loads(record.read_bytes())
        content["files"] = {name: hash_file(record.parent / name) for name in content["files"]}
    except (ValueError, TypeError, KeyError, OSError, RecursionError):  # the record itself is spoilt
        return
    record.write_text(json.dumps(content))
