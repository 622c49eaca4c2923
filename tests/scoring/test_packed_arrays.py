"""Arrays in fewer bytes are the same afterwards; damaged ones, and those that would fill the
memory, are refused.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pytest

from plant_cli.scoring.packed_arrays import pack_arrays, unpack_arrays

CHANCE = np.random.default_rng(0)
COLUMNS = np.concatenate(
    [np.sort(CHANCE.choice(100_000, 500, replace=False)) for _ in range(400)]
).astype(np.int32)
FLAT = CHANCE.random(200_000, dtype=np.float32)
ARRAYS: dict[str, tuple[Any, float]] = {  # and how many of 1000 bytes remain, at most
    "columns, rising": (COLUMNS, 375),
    "columns, falling": (COLUMNS[::-1], 375),
    "ends of rows": (np.cumsum(np.full(10_000, 70)), 20),
    "one step after another": (np.arange(200_000), 17),
    "steps beyond a byte": (np.arange(20_000, dtype=np.int64) ** 2 * 3, 700),
    "beyond the largest": (np.array([2**31 - 1, -(2**31), 5] * 100, dtype=np.int32), 2000),
    "weights": (FLAT, 900),
    "few weights": (np.round(FLAT, 1), 500),
    "half": (FLAT.astype(np.float16), 1001),
    "not a number": (np.array([np.nan, -0.0, np.inf], dtype=np.float64), 2000),
    "bytes": (np.frombuffer(b"a text that is there again. " * 500, dtype=np.uint8), 100),
    "booleans": (FLAT > 0.5, 1001),
    "unsigned": (np.array([2**64 - 1, 0], dtype=np.uint64), 2000),
    "big end": (np.arange(300, dtype=">i4").reshape(3, 100), 1000),
    "strided": (COLUMNS.reshape(400, 500)[:, ::2], 1000),
    "none": (np.zeros(0, dtype=np.int32), 0),
    "no rows": (np.zeros((0, 2), dtype=np.float32), 0),
    "one": (np.array([-7]), 2000),
    "a number": (np.array(1.5), 2000),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_the_same_afterwards(name: str) -> None:
    array, most = ARRAYS[name]
    packed, layouts = pack_arrays({name: array})
    assert len(packed[name]) * 1000 <= most * array.nbytes + 1
    found = unpack_arrays(packed, layouts)[name]
    assert (found.dtype, found.shape) == (array.dtype.newbyteorder("<"), array.shape)
    assert found.tobytes() == array.astype(found.dtype).tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [4]},
        {"shape": [1 << 40]},
        {"shape": [-1]},
        {"type": "O"},
        {"type": "<i8"},
        {"type": "nothing"},
        {"step": 0},
        {"sizes": [1 << 40, 0]},
        {"sizes": []},
        {"parts": [1]},
        {"more": 1},
    ],
    ids=json.dumps,
)
def test_another_layout_is_refused(change: dict[str, Any]) -> None:
    packed, layouts = pack_arrays({"columns": COLUMNS})
    layout = {**json.loads(layouts)["columns"], **change}
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        unpack_arrays(packed, json.dumps({"columns": layout}))


def test_bytes_that_would_become_too_many_are_not_read() -> None:
    bomb = np.frombuffer(zlib.compress(bytes(50_000_000)), dtype=np.uint8)
    layout = {
        "type": "|u1",
        "shape": [len(bomb) * 1000],
        "step": 0,
        "sizes": [],
        "parts": [len(bomb)],
    }
    with pytest.raises(ValueError, match="another number of bytes"):
        unpack_arrays({"bomb": bomb}, json.dumps({"bomb": {**layout, "shape": [20_000_000]}}))
    with pytest.raises(ValueError, match="more than was packed"):
        unpack_arrays({"bomb": bomb}, json.dumps({"bomb": {**layout, "shape": [1 << 40]}}))
    with pytest.raises(ValueError, match="damaged bytes"):
        unpack_arrays(
            {"bomb": bomb[::-1].copy()}, json.dumps({"bomb": {**layout, "shape": [20_000_000]}})
        )
