"""Causal models in GGUF files: configuration, tokenizer and weights as transformers has them, built
from the file alone.

The file is read here because what transformers makes of it depends on its version: bounds of
tokens, special tokens and how words are split differ, so that a model trained with one version
would not fit the next; factors of rotary positions are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from torch import Tensor

from plant_backbones.gguf_files import GgufFile, read_gguf, refuse_gguf
from plant_backbones.profile import Packed

CLASSES = {"llama": "Llama", "qwen2": "Qwen2", "phi3": "Phi3"}
"""Architectures by their names in the file, and how the names of their classes begin; Mistral's
models are `llama` there.
"""
SIZES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "max_position_embeddings": "context_length",
}
UNREAD = {
    "output.weight",
    "output.bias",
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
}
"""Tensors that do not become weights: the head over the vocabulary, and factors that go into
the configuration.
"""
NORMAL_TOKEN, CONTROL_TOKEN, WHOLE_TOKEN = 1, 3, 4  # types of tokens in the file
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORD_SPLITS = {
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), LLAMA3_WORDS),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), LLAMA3_WORDS.replace("{1,3}", "")),
    "gpt-2": "",  # the words of GPT-2, which `ByteLevel` knows
    "smollm": r"\p{N}",  # each digit alone, then the words of GPT-2
}
"""How texts are cut before bytes are joined, by the name that the file gives
(`tokenizer.ggml.pre`), as llama.cpp cuts them.
"""
Array = npt.NDArray[np.float32]


def read_gguf_model(path: Path, *, short: bool, published: str | None = None) -> Packed:
    """A causal model of one file.

    Args:
        path: of the file. A `tokenizer.json` beside it is read where the file has no tokenizer, or
            one of an unknown kind.
        short: weights are given in bf16 (they are quantised again), and not in fp32.
        published: hub id of the model that the file was made from, if it is known.

    Raises:
        ArtefactError: the file is missing, damaged, cut off, or of another architecture.
        ComponentError: the package `gguf` is not installed.
    """
    file = read_gguf(path)
    kind = file.values.get("general.architecture")
    if kind not in CLASSES:
        refuse_gguf(path, f"its architecture is {kind or 'not named'}")
    values = {
        key.removeprefix(f"{kind}."): value
        for key, value in file.values.items()
        if key.startswith(f"{kind}.")
    }
    settings = _settings(file, kind, values)
    names = dict(_names(kind, settings))
    for name in sorted(names.keys() ^ (file.tensors.keys() - UNREAD)):
        refuse_gguf(path, f"the tensor {name} is " + ("missing" if name in names else "unknown"))
    for name, (_, shape) in names.items():
        if file.tensors[name].shape != shape:
            refuse_gguf(
                path,
                f"the tensor {name} is {list(file.tensors[name].shape)}, and not {list(shape)}",
            )
    form = Counter(tensor.form.name for tensor in file.tensors.values()).most_common(1)[0][0]
    return Packed(
        architecture=f"{CLASSES[kind]}Model",
        config=getattr(transformers, f"{CLASSES[kind]}Config")(**settings),
        tokenizer=_read_tokenizer(file, settings["vocab_size"]),
        weights=partial(
            _read_weights, file, kind, settings, torch.bfloat16 if short else torch.float32
        ),
        origin=f"{published + ' in ' if published else ''}{path} ({form})",
        readable=True,
    )


def _settings(file: GgufFile, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of transformers' configuration."""
    found: dict[str, Any] = {name: values.get(key) for name, key in SIZES.items()}
    heads = found["num_attention_heads"]
    found["num_key_value_heads"] = values.get("attention.head_count_kv", heads)
    wrong = next(
        (name for name, value in found.items() if not isinstance(value, int) or value < 1), None
    )
    if wrong is not None:
        refuse_gguf(
            file.path,
            f"{kind}.{SIZES.get(wrong, 'attention.head_count_kv')} is {found[wrong] or 'missing'}",
        )
    if found["num_hidden_layers"] > len(file.tensors):
        refuse_gguf(
            file.path,
            f"{kind}.block_count is {found['num_hidden_layers']:,}, and it holds "
            f"{len(file.tensors)} tensors",
        )
    if "token_embd.weight" not in file.tensors:
        refuse_gguf(file.path, "the tensor token_embd.weight is missing")
    size = values.get("attention.key_length", found["hidden_size"] // heads)
    found |= {
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "pad_token_id": None,
        "head_dim": size,
    }
    found["rms_norm_eps"] = values.get("attention.layer_norm_rms_epsilon", 1e-5)
    found["rope_theta"] = values.get("rope.freq_base", 10000.0)
    if kind == "phi3":
        found["sliding_window"] = values.get("attention.sliding_window")
    turned = values.get("rope.dimension_count", size)
    if turned != size:
        found["partial_rotary_factor"] = turned / size
    scaling = _scaling(file, values, found["max_position_embeddings"])
    return found | ({"rope_scaling": scaling} if scaling else {})


def _scaling(file: GgufFile, values: Mapping[str, Any], positions: int) -> dict[str, Any] | None:
    """How rotary positions are stretched. Factors for each frequency, as LLaMA 3.1 has them,
    are those of `longrope` at any length.
    """
    short, long = (
        (("rope_freqs.weight",) * 2)
        if "rope_freqs.weight" in file.tensors
        else ("rope_factors_short.weight", "rope_factors_long.weight")
    )
    original = values.get("rope.scaling.original_context_length", positions)
    if short in file.tensors and long in file.tensors:
        factors = {
            "short_factor": file.read(short).tolist(),
            "long_factor": file.read(long).tolist(),
        }
        attention = values.get("rope.scaling.attn_factor", 1.0)
        return {
            "rope_type": "longrope",
            **factors,
            "attention_factor": attention,
            "original_max_position_embeddings": original,
        }
    kind = values.get("rope.scaling.type")
    if kind not in ("linear", "yarn"):
        return None
    stretched = {"rope_type": kind, "factor": values.get("rope.scaling.factor", 1.0)}
    return stretched | ({"original_max_position_embeddings": original} if kind == "yarn" else {})


def _names(
    kind: str, settings: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """Every tensor by its name in the file: transformers' name and the shape."""
    hidden, inner, size = (
        settings["hidden_size"],
        settings["intermediate_size"],
        settings["head_dim"],
    )
    query, key = (settings[name] * size for name in ("num_attention_heads", "num_key_value_heads"))
    parts = {
        "attn_output": ("self_attn.o_proj", (hidden, query)),
        "ffn_down": ("mlp.down_proj", (hidden, inner)),
    }
    if kind == "phi3":
        parts |= {
            "attn_qkv": ("self_attn.qkv_proj", (query + 2 * key, hidden)),
            "ffn_up": ("mlp.gate_up_proj", (2 * inner, hidden)),
        }
    else:
        parts |= {
            f"attn_{part}": (f"self_attn.{part}_proj", (key if part in "kv" else query, hidden))
            for part in "qkv"
        }
        parts |= {f"ffn_{part}": (f"mlp.{part}_proj", (inner, hidden)) for part in ("gate", "up")}
    yield "token_embd.weight", ("embed_tokens.weight", (settings["vocab_size"], hidden))
    yield "output_norm.weight", ("norm.weight", (hidden,))
    for layer in range(settings["num_hidden_layers"]):
        ours, theirs = f"blk.{layer}.", f"layers.{layer}."
        yield f"{ours}attn_norm.weight", (f"{theirs}input_layernorm.weight", (hidden,))
        yield f"{ours}ffn_norm.weight", (f"{theirs}post_attention_layernorm.weight", (hidden,))
        for part, (name, shape) in parts.items():
            yield f"{ours}{part}.weight", (f"{theirs}{name}.weight", shape)
            if kind == "qwen2" and part in ("attn_q", "attn_k", "attn_v"):
                yield f"{ours}{part}.bias", (f"{theirs}{name}.bias", shape[:1])


def _read_weights(
    file: GgufFile, kind: str, settings: Mapping[str, Any], dtype: torch.dtype
) -> dict[str, Tensor]:
    """All tensors by transformers' names."""
    heads = (
        {"attn_q": settings["num_attention_heads"], "attn_k": settings["num_key_value_heads"]}
        if kind == "llama"
        else {}
    )
    found = {}
    for name, (theirs, _) in _names(kind, settings):
        values = file.read(name)
        count = next((count for part, count in heads.items() if f".{part}." in name), 0)
        found[theirs] = torch.from_numpy(_pair_halves(values, count) if count else values).to(dtype)
    return found


def _pair_halves(rows: Array, heads: int) -> Array:
    """Rows of queries or keys in transformers' order: llama.cpp lays the two numbers that turn
    together side by side.
    """
    return np.ascontiguousarray(rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2)).reshape(
        rows.shape
    )


def _read_tokenizer(file: GgufFile, vocabulary: int) -> Any:
    """The tokenizer in the file, or else the one beside it; its ids must be rows of the
    embedding.
    """
    values = {
        key.removeprefix("tokenizer.ggml."): value
        for key, value in file.values.items()
        if key.startswith("tokenizer.ggml.")
    }
    tokens, beside = values.get("tokens"), file.path.with_name("tokenizer.json")
    joined = (
        values.get("model") == "gpt2" and values.get("pre") in WORD_SPLITS and "merges" in values
    )
    scored = values.get("model") == "llama" and len(values.get("scores", ())) == len(tokens or ())
    if tokens and (joined or scored):
        try:
            made = _make_tokenizer(values, joined=joined)
        except Exception as error:  # tokenizers has no class of its own for what it refuses
            refuse_gguf(file.path, f"no tokenizer can be made of what it holds: {error}")
    elif beside.is_file():
        made = transformers.AutoTokenizer.from_pretrained(str(beside.parent))
    else:
        kind = f"{values.get('model')}, {values.get('pre', 'not named how words are cut')}"
        what = (
            f"its tokenizer is of an unknown kind ({kind})"
            if tokens
            else "its tokenizer is missing"
        )
        refuse_gguf(
            file.path, what, "put the model's tokenizer.json, as it is published, beside the file"
        )
    if len(made) > vocabulary:
        refuse_gguf(
            file.path,
            f"its tokenizer has {len(made):,} tokens, and its embedding {vocabulary:,} rows",
        )
    return made


def _make_tokenizer(values: Mapping[str, Any], *, joined: bool) -> Any:
    """A fast tokenizer: bytes joined by a list of merges, or pieces of SentencePiece joined by
    their scores.
    """
    tokens: list[str] = values["tokens"]
    kinds = values.get("token_type", [NORMAL_TOKEN] * len(tokens))
    ids = {token: i for i, token in reversed([*enumerate(tokens)])}
    roles = {
        f"{role}_token": values.get(f"{key}_token_id")
        for role, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    named = {role: tokens[i] for role, i in roles.items() if i is not None and i < len(tokens)}
    if joined:
        split = WORD_SPLITS[values["pre"]]
        merges = [
            (left, right) for left, _, right in (merge.partition(" ") for merge in values["merges"])
        ]
        backend = Tokenizer(
            models.BPE(vocab=ids, merges=merges, ignore_merges=split == LLAMA3_WORDS)
        )
        cut = [pre_tokenizers.Split(Regex(split), behavior="isolated")] if split else []
        own = split in ("", WORD_SPLITS["smollm"])
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [*cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own)]
        )
        backend.decoder = decoders.ByteLevel()
    else:
        merges = _merges(tokens, values["scores"], kinds)
        unknown = named.get("unk_token")
        backend = Tokenizer(
            models.BPE(
                vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True
            )
        )
        first = [normalizers.Prepend("▁")] if values.get("add_space_prefix", True) else []
        backend.normalizer = normalizers.Sequence([*first, normalizers.Replace(" ", "▁")])
        backend.decoder = decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )
    backend.add_special_tokens(
        [
            AddedToken(t, normalized=False, special=True)
            for t, kind in zip(tokens, kinds, strict=False)
            if kind == CONTROL_TOKEN
        ]
    )
    backend.add_tokens(
        [
            AddedToken(t, normalized=False)
            for t, kind in zip(tokens, kinds, strict=False)
            if kind == WHOLE_TOKEN
        ]
    )
    framed = (
        [named["bos_token"]]
        if values.get("add_bos_token", not joined) and "bos_token" in named
        else []
    )
    framed = [
        *framed,
        "$A",
        *([named["eos_token"]] if values.get("add_eos_token") and "eos_token" in named else []),
    ]
    special = [(token, ids[token]) for token in framed if token != "$A"]
    backend.post_processor = processors.TemplateProcessing(single=framed, special_tokens=special)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, **{"pad_token": named.get("eos_token"), **named}
    )


def _merges(tokens: list[str], scores: list[float], kinds: list[int]) -> list[tuple[str, str]]:
    """The pairs that make up pieces, best first."""
    known = {token for token, kind in zip(tokens, kinds, strict=False) if kind == NORMAL_TOKEN}
    pairs = [
        (-score, -len(left), -len(right), left, right)
        for token, score, kind in zip(tokens, scores, kinds, strict=False)
        if kind == NORMAL_TOKEN
        for left, right in ((token[:i], token[i:]) for i in range(1, len(token)))
        if left in known and right in known
    ]
    return [(left, right) for *_, left, right in sorted(pairs, key=lambda pair: pair[:3])]
