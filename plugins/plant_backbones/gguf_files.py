"""Files in the format GGUF (versions 2 and 3), as llama.cpp writes them: metadata, and tensors in 2
to 32 bits.

All numbers are little-endian. The file is: `GGUF`, uint32 version, uint64 tensors, uint64 values;
the values, each a key, uint32 type and content; the tensors, each a name, uint32 axes, uint64 sizes
(the fastest axis first), uint32 type and uint64 offset from the start of the data; then, at the
next multiple of `general.alignment`, the data. Keys, names and texts are uint64 length and UTF-8.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import importlib
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from plant_cli.api import ArtefactError, ComponentError

GGUF_MAGIC = b"GGUF"
GGUF_VERSIONS = (2, 3)
MOST_AXES = 4
TEXT, LIST = 8, 9
NUMBERS = {
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
"""Types of values that are numbers, as numpy names them."""


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """Where a tensor lies, and in which form."""

    shape: tuple[int, ...]  # the slowest axis first, as torch has it
    form: Any  # `gguf.GGMLQuantizationType`
    start: int  # byte in the file
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class GgufFile:
    """What a file holds: metadata by key, tensors by name."""

    path: Path
    values: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]

    def read(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor, unpacked to float32."""
        tensor = self.tensors[name]
        stored = np.memmap(
            self.path, dtype=np.uint8, mode="r", offset=tensor.start, shape=(tensor.size,)
        )
        unpacked: npt.NDArray[np.float32] = _package(self.path).dequantize(
            stored.reshape(*tensor.shape[:-1], -1), tensor.form
        )
        return np.array(unpacked, dtype=np.float32).reshape(tensor.shape)


class _Cursor:
    """Reads on in a file; `ValueError` where it ends too early."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError("it ends within its header")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> int:
        return int(struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0])

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind in NUMBERS:
            return self.numbers(kind, 1)[0]
        if kind != LIST:
            raise ValueError(f"a value in its header is of the unknown type {kind}")
        inner, count = self.number("I"), self.number("Q")
        return (
            self.numbers(inner, count)
            if inner in NUMBERS
            else [self.value(inner) for _ in range(count)]
        )

    def numbers(self, kind: int, count: int) -> list[Any]:
        form = np.dtype(NUMBERS[kind])
        found: list[Any] = np.frombuffer(self.take(count * form.itemsize), form).tolist()
        return found


def read_gguf(path: Path) -> GgufFile:
    """Metadata and directory of a file, whose tensors must lie within it.

    Raises:
        ArtefactError: the file is missing, no GGUF, damaged or cut off, or holds a form of tensor
            that cannot be unpacked.
        ComponentError: the package `gguf` is not installed.
    """
    package = _package(path)
    if not path.is_file():
        refuse_gguf(path, "there is no such file")
    with path.open("rb") as stream:
        length = stream.seek(0, 2)
        if length < len(GGUF_MAGIC):
            refuse_gguf(path, "it is empty")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _read(_Cursor(data), path, package)
            except (ValueError, RecursionError) as error:
                refuse_gguf(path, str(error))


def _read(cursor: _Cursor, path: Path, package: Any) -> GgufFile:
    magic = cursor.take(4)
    if magic != GGUF_MAGIC:
        raise ValueError("it is in another format")
    version = cursor.number("I")
    if version not in GGUF_VERSIONS:
        raise ValueError(f"it is of version {version}")
    tensors, count = cursor.number("Q"), cursor.number("Q")
    values = {}
    for _ in range(count):
        key = cursor.text()
        values[key] = cursor.value(cursor.number("I"))
    entries = [_read_entry(cursor) for _ in range(tensors)]
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError("its alignment is no size")
    begin = -(-cursor.at // alignment) * alignment
    found = {}
    for name, shape, kind, offset in entries:
        form, size = _measure_stored(package, name, shape, kind)
        start = begin + offset
        if start + size > len(cursor.data):
            missing = start + size - len(cursor.data)
            raise ValueError(
                f"it was cut off: the tensor {name} ends {missing:,} bytes behind its end"
            )
        found[name] = StoredTensor(shape=shape, form=form, start=start, size=size)
    return GgufFile(path=path, values=values, tensors=found)


def _read_entry(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = cursor.text(), cursor.number("I")
    if not 1 <= axes <= MOST_AXES:
        raise ValueError(f"the tensor {name} has {axes} axes")
    shape = tuple(cursor.number("Q") for _ in range(axes))[::-1]
    return name, shape, cursor.number("I"), cursor.number("Q")


def _measure_stored(package: Any, name: str, shape: tuple[int, ...], kind: int) -> tuple[Any, int]:
    """The form of a tensor, and its bytes."""
    try:
        form = package.GGMLQuantizationType(kind)
        weights, size = package.GGML_QUANT_SIZES[form]
        package.dequantize(np.zeros((1, size), dtype=np.uint8), form)
    except (ValueError, KeyError, NotImplementedError):
        raise ValueError(
            f"the tensor {name} is in a form (number {kind}) that the package gguf cannot unpack"
        ) from None
    if shape[-1] % weights:
        raise ValueError(
            f"rows of the tensor {name} hold {shape[-1]} weights, and no multiple of {weights}"
        )
    return form, prod(shape) // weights * size


def _package(path: Path) -> Any:
    """The package `gguf`, which knows the forms of tensors."""
    if find_spec("gguf") is None:
        raise ComponentError(
            "files in the format GGUF need the package gguf, which is not installed",
            where=str(path),
            expected="the package gguf",
            todo="pip install 'plant-cli[smollm2]', or pip install gguf",
        )
    return importlib.import_module("gguf")


def refuse_gguf(path: Path, what: str, todo: str = "") -> NoReturn:
    """Say what is wrong with a file, and what to do (default: take another copy)."""
    raise ArtefactError(
        f"the GGUF file cannot be read: {what}",
        where=str(path),
        expected="a whole GGUF file of version 2 or 3 with a model of the architecture llama, "
        "qwen2 or phi3",
        todo=todo
        or "copy or download the file again, or give a folder with config.json and safetensors: "
        "--set model.backbone.model=FOLDER",
    )
