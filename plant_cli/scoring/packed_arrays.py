"""Arrays as fewer bytes, without loss: what a scorer learned takes a seventh of its room in memory.

Integers that rise or fall, such as the columns of a sparse matrix, are stored by the difference of
each from the one before: a bit says that it is 1, a byte is another one below 255, and those that
are larger (or go the other way) come last. Other arrays are stored by the first byte of every
value, then the second, and so on, since bytes of one place are alike. Each of these parts is
deflated only where that makes it much smaller: others, such as the low bytes of weights, are read
as fast as before.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
AnyArray = npt.NDArray[Any]
LARGE = 255  # a byte that says that the difference is among the large ones
BYTES_TRIED, SMALLER = (
    1 << 16,
    0.7,
)  # bytes by which it is judged whether a part gets so much smaller
DENSEST = 1100  # bytes that deflate can make of one, and a few more
DEFLATE_LEVEL, BLOCK = (
    6,
    1 << 14,
)  # how hard it is deflated, and values that are added up at a time, a multiple of 8


def pack_arrays(arrays: Mapping[str, AnyArray]) -> tuple[dict[str, Bytes], str]:
    """Numeric arrays as bytes, and how they are made of these again, as a text."""
    packed, layouts = {}, {}
    for name, array in arrays.items():
        kind, parts = array.dtype.newbyteorder("<"), []
        step, sizes = _find_step(array), list[int]()
        if step:
            ones, small, array = _differ(array, step)
            parts, sizes = [_deflate(ones), _deflate(small)], [len(small), len(array)]
        planes = np.ascontiguousarray(array, dtype=kind).reshape(-1, 1).view(np.uint8)
        parts += [
            _deflate(np.ascontiguousarray(planes[:, place])) for place in range(kind.itemsize)
        ]
        packed[name] = np.concatenate(parts)
        layouts[name] = {
            "type": kind.str,
            "shape": arrays[name].shape,
            "step": step,
            "sizes": sizes,
            "parts": list(map(len, parts)),
        }
    return packed, json.dumps(layouts)


def unpack_arrays(packed: Mapping[str, Bytes], layouts: str) -> dict[str, AnyArray]:
    """The arrays that `pack_arrays` packed; `ValueError`, `KeyError` or `TypeError` if they are
    damaged.
    """
    return {name: _unpack(packed[name], **layout) for name, layout in json.loads(layouts).items()}


def _find_step(array: AnyArray) -> int:
    """1 for whole numbers that mostly rise, -1 for those that mostly fall, 0 for all others."""
    if array.dtype.kind != "i" or array.ndim != 1 or len(array) < 2:
        return 0
    return 1 if np.count_nonzero(array[1:] >= array[:-1]) * 2 >= len(array) - 1 else -1


def _differ(array: AnyArray, step: int) -> tuple[Bytes, Bytes, AnyArray]:
    """A bit for each difference [n], a byte for each that is not 1 [m], and those that need
    more [l].
    """
    ones, small, large, before = np.zeros(len(array), dtype=np.bool_), [], [], array.dtype.type(0)
    for start in range(0, len(array), BYTES_TRIED):
        block = array[start : start + BYTES_TRIED]
        differences = np.diff(block, prepend=before) * array.dtype.type(step)
        ones[start : start + BYTES_TRIED] = differences == 1
        others = differences[differences != 1]
        fits = (others >= 0) & (others < LARGE)
        small.append(np.where(fits, others, LARGE).astype(np.uint8))
        large.append(others[~fits])
        before = block[-1]
    return np.packbits(ones), np.concatenate(small), np.concatenate(large)


def _deflate(part: Bytes) -> Bytes:
    for some in (part[:BYTES_TRIED], part):
        deflated = zlib.compress(some.data, DEFLATE_LEVEL)
        if len(deflated) > SMALLER * len(some):
            return part
    return np.frombuffer(deflated, dtype=np.uint8)


def _inflate(part: Bytes, count: int) -> Bytes:
    if len(part) == count:
        return part
    if count > DENSEST * len(part):
        raise ValueError("more than was packed")
    try:
        inflated = np.frombuffer(
            zlib.decompressobj().decompress(part.data, count + 1), dtype=np.uint8
        )  # never more
    except zlib.error as error:
        raise ValueError("damaged bytes") from error
    if len(inflated) != count:
        raise ValueError("another number of bytes")
    return inflated


def _unpack(
    packed: Bytes, *, type: str, shape: list[int], step: int, sizes: list[int], parts: list[int]
) -> AnyArray:
    kind, count = np.dtype(type), prod(shape)
    if (
        kind.kind not in "biuf"
        or packed.dtype != np.uint8
        or sum(parts) != len(packed)
        or min([*shape, *sizes, *parts, 0]) < 0
    ):
        raise ValueError("another layout")
    pieces = np.split(packed, np.cumsum(parts)[:-1])
    if not step:
        return _join(pieces, kind, count).reshape(shape)
    if sizes[0] > count or sizes[1] > sizes[0]:
        raise ValueError("more than was packed")
    ones, small, large = (
        _inflate(pieces[0], -(-count // 8)),
        _inflate(pieces[1], sizes[0]),
        _join(pieces[2:], kind, sizes[1]),
    )
    return _add_up(ones, small, large, np.empty(count, dtype=kind), step)


def _add_up(ones: Bytes, small: Bytes, large: AnyArray, array: AnyArray, step: int) -> AnyArray:
    """What `_differ` took apart, into an array; block by block, since memory that is touched
    for the first time is slow.
    """
    smalls = larges = 0
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK]
        others = np.flatnonzero(
            np.unpackbits(ones[start // 8 : (start + BLOCK) // 8], count=len(block)) == 0
        )
        some = small[smalls : smalls + len(others)]
        wide = others[some == LARGE]
        block[:] = 1
        block[others] = some
        block[wide] = large[larges : larges + len(wide)]
        smalls, larges = smalls + len(some), larges + len(wide)
        block *= array.dtype.type(step)
        block[0] += array[start - 1] if start else 0
        np.cumsum(block, dtype=block.dtype, out=block)
    return array


def _join(pieces: list[Bytes], kind: np.dtype[Any], count: int) -> AnyArray:
    """Values of their first bytes, their second ones, and so on."""
    if len(pieces) != kind.itemsize:
        raise ValueError("another size of values")
    if len(pieces) == 1:
        return _inflate(pieces[0], count).view(kind)
    planes = np.empty((count, kind.itemsize), dtype=np.uint8)
    for place, piece in enumerate(pieces):
        planes[:, place] = _inflate(piece, count)
    return planes.view(kind)[:, 0]
