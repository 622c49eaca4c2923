"""A small model in the packages' formats, and packages that hold it, as pip would leave them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plant_backbones import packaged
from plant_backbones.packaged import PackagedFile

from plant_cli.data.files import hash_file

WORDS = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "▁",
    "▁passage",
    "▁query",
    ":",
    "▁fever",
    "▁cough",
    "▁patient",
    *"abcdefghijklmnopqrstuvwxyz",
]
HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 32, 2, 4, 64, 48, 2
MAPS = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "ao": (32, 32), "fi": (64, 32), "fo": (32, 64)}
Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def quantised(values: Array) -> bytes:
    """Blocks of 4 bits, written number by number: scale in float16, then weight j in the low
    and weight j + 16 in the high half.
    """
    stored = b""
    for block in values.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        numbers = [int(np.clip(np.rint(float(v) / float(scale)) + 8, 0, 15)) for v in block]
        stored += struct.pack("<e", scale) + bytes(
            numbers[j] | numbers[j + 16] << 4 for j in range(16)
        )
    return stored


def draw_tensors() -> dict[str, Array]:
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(WORDS), HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
    }
    for layer in range(LAYERS):
        for name, shape in MAPS.items():
            shapes |= {f"l{layer}.{name}.w": shape, f"l{layer}.{name}.b": shape[:1]}
    found = {name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    for norm in (
        "emb.ln",
        *(f"l{layer}.{name}" for layer in range(LAYERS) for name in ("aln", "oln")),
    ):
        found |= {
            f"{norm}.w": np.ones(HIDDEN, dtype=np.float32),
            f"{norm}.b": np.zeros(HIDDEN, dtype=np.float32),
        }
    return found


def write_weights(
    path: Path, values: dict[str, Array], *, magic: bytes = b"E5S1", block: int = 32
) -> Path:
    """A file in the packages' format, with a tokenizer of three pieces that nobody reads."""
    head = magic + struct.pack(
        "<i7ifi", 1, HIDDEN, LAYERS, HEADS, INNER, len(WORDS), POSITIONS, TYPES, 1e-12, block
    )
    head += (
        struct.pack("<5iQ", 3, 0, 2, 1, 3, 6)
        + struct.pack("<4I3f", 0, 2, 4, 6, 0, 0, 0)
        + b"aabbcc"
    )
    head += struct.pack("<iI", 1, 5) + b"rules"
    matrices = {
        name
        for name, value in values.items()
        if value.ndim > 1 and name not in ("emb.pos", "emb.type")
    }
    stored = {
        name: quantised(value) if name in matrices else value.tobytes()
        for name, value in values.items()
    }
    start = len(head) + 4 + sum(2 + len(name) + 21 for name in stored)
    directory, body = struct.pack("<i", len(stored)), b""
    for name, data in stored.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack(
            "<BIQQ", name in matrices, values[name].size, start + len(body), len(data)
        )
        body += data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + directory + body)
    return path


def write_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    plain = Tokenizer(
        models.Unigram(
            [(word, -float(len(WORDS) - n)) for n, word in enumerate(WORDS)],
            unk_id=3,
            byte_fallback=False,
        )
    )
    plain.pre_tokenizer = pre_tokenizers.Metaspace()
    plain.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    plain.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(json.loads(plain.to_str())), encoding="utf-8")


@pytest.fixture
def tensors() -> dict[str, Array]:
    """Values of every tensor of the small model, by their names in the file."""
    return draw_tensors()


@pytest.fixture
def weights_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of weights: `weights_file(tensors, magic=…, block=…)`."""
    return lambda values, **head: write_weights(tmp_path / "small.bin", values, **head)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[PackagedFile], Path]:
    """Leaves an installed package where Python looks first: `install(file)` gives the path to
    write the file to.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def put(file: PackagedFile) -> Path:
        described = site / f"{file.package.replace('-', '_')}-{file.version}.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {file.package}\nVersion: {file.version}\n"
        )
        (site / file.path).parent.mkdir(parents=True, exist_ok=True)
        return site / file.path

    return put


@pytest.fixture
def small_packages(
    install: Callable[[PackagedFile], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both packages, with a small model in them that the plugin takes for the real one."""
    weights, tokenizer = install(packaged.PACKAGED_WEIGHTS), install(packaged.TOKENIZER)
    write_weights(weights, draw_tensors())
    write_tokenizer(tokenizer)
    monkeypatch.setattr(
        packaged, "PACKAGED_WEIGHTS", replace(packaged.PACKAGED_WEIGHTS, sha256=hash_file(weights))
    )
    monkeypatch.setattr(
        packaged, "TOKENIZER", replace(packaged.TOKENIZER, sha256=hash_file(tokenizer))
    )
