"""The weights format: every number where its description says, and nothing that does not fit the model."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from plant_backbones.packed_weights import AT_ONCE, dequantise, read_header, read_weights

from plant_cli.api import ArtefactError

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


def test_the_header_describes_the_model(weights_file: Callable[..., Path], tensors: Tensors) -> None:
    header = read_header(weights_file(tensors))
    config = header.config()
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.intermediate_size) == (32, 2, 4, 64)
    assert (config.vocab_size, config.max_position_embeddings, config.type_vocab_size) == (37, 48, 2)
    assert config.layer_norm_eps == pytest.approx(1e-12)
    assert header.entries.keys() == tensors.keys()
    assert {name for name, entry in header.entries.items() if entry.quantised} == {
        "emb.word",
        *(f"l{layer}.{part}.w" for layer in (0, 1) for part in ("q", "k", "v", "ao", "fi", "fo")),
    }


def test_the_tensors_fill_a_bert_encoder_without_remainder(weights_file: Callable[..., Path], tensors: Tensors) -> None:
    from transformers import BertModel

    path = weights_file(tensors)
    header = read_header(path)
    weights = read_weights(path, header)
    BertModel(header.config(), add_pooling_layer=False).load_state_dict(weights, strict=True)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    np.testing.assert_array_equal(weights["embeddings.position_embeddings.weight"], tensors["emb.pos"])
    np.testing.assert_array_equal(weights["encoder.layer.1.output.dense.bias"], tensors["l1.fo.b"])
    pairs = {
        "embeddings.word_embeddings": "emb.word",
        "encoder.layer.0.attention.self.key": "l0.k.w",
        "encoder.layer.1.output.dense": "l1.fo.w",
    }
    for theirs, ours in pairs.items():
        blocks = tensors[ours].reshape(-1, 32)
        step = np.abs(blocks).max(1, keepdims=True) / 7
        assert (np.abs(weights[f"{theirs}.weight"].numpy().reshape(-1, 32) - blocks) <= 0.51 * step).all()


@pytest.mark.parametrize(("head", "what"), [({"magic": b"E5S2"}, "b'E5S2'"), ({"block": 64}, "blocks hold 64 weights")])
def test_another_format_is_refused(weights_file: Callable[..., Path], tensors: Tensors, head: dict[str, object], what: str) -> None:
    with pytest.raises(ArtefactError, match=what) as caught:
        read_header(weights_file(tensors, **head))
    assert "E5S1" in caught.value.expected


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.pop("l1.v.b"), r"l1\.v\.b is missing"),
        (lambda t: t.update({"pooler.w": t["emb.ln.w"]}), r"pooler\.w is unknown"),
        (lambda t: t.update({"emb.pos": t["emb.pos"][1:]}), r"emb\.pos has 1504 numbers"),
    ],
)
def test_tensors_of_another_model_are_refused(
    weights_file: Callable[..., Path], tensors: Tensors, change: Callable[[Tensors], object], what: str
) -> None:
    change(tensors)
    with pytest.raises(ArtefactError, match=what):
        read_header(weights_file(tensors))


@pytest.mark.parametrize(("kept", "what"), [(-1, "bytes from byte"), (200, "ends within its header"), (0, "ends within its header")])
def test_a_file_that_ends_too_early_is_refused(weights_file: Callable[..., Path], tensors: Tensors, kept: int, what: str) -> None:
    path = weights_file(tensors)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ArtefactError, match=what):
        read_header(path)
