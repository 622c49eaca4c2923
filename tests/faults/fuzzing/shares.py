"""What machines that count together hand to one another: shards of counts, with one file spoilt."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from plant_cli.data.files import hash_file
from plant_cli.data.shares import Shard
from plant_cli.data.words import number_words
from plant_cli.relevance.cooccurrence import MemoryCounts, count_terms
from plant_cli.relevance.shards import RECORD, open_shards, write_shard
from tests.faults.fuzzing.inputs import Files, changed_json, mutations

HASHES = {"data_hash": "d" * 64, "label_hash": "l" * 64, "analyser": "a" * 64}
TEXTS = [
    ["fever", "cough"],
    ["cough", "pain", "fever"],
    ["pain"],
    ["fever", "fever", "arm"],
    ["arm", "pain"],
]


@cache
def _written() -> Files:
    """Shards as they are when nobody spoilt them, by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for number in (1, 2):
            shard = Shard(number, 2)
            (place / f"shard-{number}").mkdir()
            gold = csr_array(
                np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]], dtype=np.int32)[shard.rows]
            )
            counting = MemoryCounts(
                count_terms(number_words(TEXTS[shard.rows]), 1), gold, with_occurrences=True
            )
            write_shard(place / f"shard-{number}", shard, counting, memory=10_000, jobs=1, **HASHES)
        return {
            str(path.relative_to(place)): path.read_bytes()
            for path in sorted(place.rglob("*"))
            if path.is_file()
        }


@st.composite
def shares(draw: st.DrawFn) -> Files:
    """All files, one of them spoilt; the record of its shard is made to fit, as a stranger may
    do, unless the case says otherwise.
    """
    files = dict(_written())
    name = draw(st.sampled_from(sorted(files)))
    ways = mutations([files[name]])
    files[name] = draw(ways | changed_json([files[name]]) if name.endswith(RECORD) else ways)
    return {**files, "fits": b"" if draw(st.integers(0, 3)) else b"no"}


def read_shares(files: Files, folder: Path) -> None:
    """As `plant mig --merge`."""
    if not files["fits"]:
        for record in folder.glob(f"*/{RECORD}"):
            _let_fit(record)
    merged = open_shards(
        [folder / "shard-1", folder / "shard-2"],
        with_occurrences=True,
        min_df=1,
        keep=set(),
        **HASHES,
    )
    merged.count(0, 2)


def _let_fit(record: Path) -> None:
    try:
        content = json.loads(record.read_bytes())
        content["files"] = {name: hash_file(record.parent / name) for name in content["files"]}
    except (
        ValueError,
        TypeError,
        KeyError,
        OSError,
        RecursionError,
    ):  # the record itself is spoilt
        return
    record.write_text(json.dumps(content))
