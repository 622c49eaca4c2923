"""Weights in the format `E5S1`: matrices in blocks of 4 bits with a scale each, vectors in float32.

All numbers are little-endian. The file is: `E5S1`, int32 version; int32 × 7 (hidden size, layers,
heads, inner size, vocabulary, positions, token types), float32 ε of the layer norms, int32 block
size; a tokenizer, which is skipped; a directory of tensors, each uint16 length and name, uint8 type
(0 float32, 1 4-bit), uint32 count, uint64 offset and uint64 bytes, from the file's start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import Tensor

from plant_cli.api import ArtefactError

MAGIC = b"E5S1"
VERSION = 1
WEIGHTS_PER_BLOCK = 32  # weights that share a scale
BLOCK_BYTES = 18  # the scale in float16, then 16 bytes of two weights each
AT_ONCE = 1 << 16  # blocks unpacked at once: the arrays on the way stay in the processor's cache
EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
PACKED_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The position of a tensor in the file."""

    quantised: bool  # whether it is in blocks of 4 bits, else in float32
    count: int  # of its numbers
    offset: int  # its first byte
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class Header:
    """The sizes of the model, and the positions of its tensors by their names in the file."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    entries: Mapping[str, Entry]

    def config(self) -> Any:
        """The configuration of transformers' BERT."""
        return transformers.BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.inner,
            max_position_embeddings=self.positions,
            type_vocab_size=self.types,
            layer_norm_eps=self.epsilon,
            pad_token_id=1,
        )

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every tensor that the model must have, by its name in the file."""
        hidden, inner = self.hidden, self.inner
        square, norm = (hidden, hidden), (hidden,)
        maps = {
            **dict.fromkeys(("q", "k", "v", "ao"), square),
            "fi": (inner, hidden),
            "fo": (hidden, inner),
        }
        parts: dict[str, tuple[int, ...]] = {**maps, "aln": norm, "oln": norm}
        rows = {"emb.word": self.vocabulary, "emb.pos": self.positions, "emb.type": self.types}
        shapes: dict[str, tuple[int, ...]] = {name: (count, hidden) for name, count in rows.items()}
        shapes |= {"emb.ln.w": norm, "emb.ln.b": norm}
        for layer in range(self.layers):
            for part, shape in parts.items():
                shapes |= {f"l{layer}.{part}.w": shape, f"l{layer}.{part}.b": shape[:1]}
        return shapes


def read_header(path: Path) -> Header:
    """Sizes and directory of a weights file, whose tensors must fill the model without
    remainder and lie within the file.
    """
    with path.open("rb") as stream:
        try:
            header = _read_beginning(stream, path)
        except struct.error:
            _refuse(path, "it ends within its header")
    shapes, length = header.shapes(), path.stat().st_size
    for name in shapes.keys() ^ header.entries.keys():
        _refuse(path, f"the tensor {name} is " + ("missing" if name in shapes else "unknown"))
    for name, entry in header.entries.items():
        expected = (
            entry.count // WEIGHTS_PER_BLOCK * BLOCK_BYTES if entry.quantised else entry.count * 4
        )
        if (
            entry.count != np.prod(shapes[name])
            or entry.size != expected
            or entry.offset + entry.size > length
        ):
            _refuse(
                path,
                f"the tensor {name} has {entry.count} numbers in {entry.size} bytes from byte "
                f"{entry.offset}",
            )
    return header


def _read_beginning(stream: BinaryIO, path: Path) -> Header:
    magic, version = struct.unpack("<4si", stream.read(8))
    if magic != MAGIC or version != VERSION:
        _refuse(path, f"it begins with {magic!r}, version {version}")
    *sizes, epsilon, block = struct.unpack("<7ifi", stream.read(36))
    if block != WEIGHTS_PER_BLOCK:
        _refuse(path, f"its blocks hold {block} weights")
    pieces, text = struct.unpack(
        "<i16xQ", stream.read(28)
    )  # between them the ids of four special tokens
    stream.seek(
        (pieces + 1) * 4 + pieces * 4 + text, 1
    )  # offsets, scores and the text of the pieces
    (rules,) = struct.unpack("<4xI", stream.read(8))
    stream.seek(rules, 1)
    (count,) = struct.unpack("<i", stream.read(4))
    names = ("hidden", "layers", "heads", "inner", "vocabulary", "positions", "types")
    entries = dict(_read_entry(stream) for _ in range(count))
    return Header(**dict(zip(names, sizes, strict=True)), epsilon=epsilon, entries=entries)


def _read_entry(stream: BinaryIO) -> tuple[str, Entry]:
    (length,) = struct.unpack("<H", stream.read(2))
    name = stream.read(length).decode()
    kind, count, offset, size = struct.unpack("<BIQQ", stream.read(21))
    return name, Entry(quantised=kind == 1, count=count, offset=offset, size=size)


def _refuse(path: Path, what: str) -> NoReturn:
    raise ArtefactError(
        f"the weights cannot be read: {what}",
        where=str(path),
        expected=f"format {MAGIC.decode()}, version {VERSION}, blocks of {WEIGHTS_PER_BLOCK} "
        "weights, "
        "all tensors of a BERT encoder and no other",
        todo="reinstall the package that it belongs to, or read the original: --set "
        "model.backbone.model=intfloat/multilingual-e5-small",
    )


def read_packed_weights(path: Path, header: Header) -> dict[str, Tensor]:
    """All tensors in float32, by the names that transformers' `BertModel` has for them."""
    stored = np.memmap(path, dtype=np.uint8, mode="r")
    shapes = header.shapes()
    return {
        theirs: _read_tensor(stored, header.entries[ours], shapes[ours])
        for ours, theirs in _names(header.layers)
    }


def _names(layers: int) -> Iterator[tuple[str, str]]:
    """Names in the file and in transformers."""
    yield from EMBEDDINGS.items()
    for layer in range(layers):
        for ours, theirs in PACKED_NAMES.items():
            yield f"l{layer}.{ours}.w", f"encoder.layer.{layer}.{theirs}.weight"
            yield f"l{layer}.{ours}.b", f"encoder.layer.{layer}.{theirs}.bias"


def _read_tensor(stored: npt.NDArray[np.uint8], entry: Entry, shape: tuple[int, ...]) -> Tensor:
    part = stored[entry.offset : entry.offset + entry.size]
    values = dequantise(part) if entry.quantised else np.array(part).view("<f4")
    return torch.from_numpy(values).view(shape)


def dequantise(stored: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Weights [32·n] of n blocks: scale times (4-bit number − 8); low halves of the bytes
    first, then the high halves (`Q4_0`).
    """
    blocks = stored.reshape(-1, BLOCK_BYTES)
    weights = np.empty((len(blocks), 2, WEIGHTS_PER_BLOCK // 2), dtype=np.float32)
    for start in range(0, len(blocks), AT_ONCE):
        some = np.ascontiguousarray(blocks[start : start + AT_ONCE])
        scale = some[:, :2].copy().view("<f2").astype(np.float32)
        halves = some[:, 2:]
        out = weights[start : start + AT_ONCE]
        np.multiply((halves & 15).astype(np.int8) - 8, scale, out=out[:, 0])
        np.multiply((halves >> 4).astype(np.int8) - 8, scale, out=out[:, 1])
    return weights.reshape(-1)
