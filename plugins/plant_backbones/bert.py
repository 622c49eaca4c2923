"""Frozen encoders of BERT's form, read with torch only: importing the models of transformers
takes longer than labelling a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WEIGHTS, CONFIG = "model.safetensors", "config.json"
NEEDED = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "auto_map": None,
}
"""Values of a configuration, named or by default, for which `Bert` computes what transformers'
`BertModel` computes.
"""
LAYER_NAMES = {
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm",
}
"""Parts of a layer as published weights name them, and as `Layer` does."""


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """The sizes in a model's configuration, by their names there."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    model_type: str = "bert"

    @classmethod
    def of(cls, config: object) -> BertShape | None:
        """Of a configuration; None where only transformers can make the model."""
        if not isinstance(config, dict) or any(
            config.get(name, value) != value for name, value in NEEDED.items()
        ):
            return None
        sizes = {name: config[name] for name in cls.__annotations__ if name in config}
        needed = {part.name for part in fields(cls) if part.default is MISSING}
        return cls(**sizes) if needed <= sizes.keys() else None


@dataclass(frozen=True)
class States:
    """Hidden states of the last layer [B, T, H]."""

    last_hidden_state: Tensor


class Layer(nn.Module):
    """Self-attention, then two linear maps; each is added to what came in and normed (Devlin et
    al. 2019).
    """

    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        size, inner = shape.hidden_size, shape.intermediate_size
        self.heads = shape.num_attention_heads
        self.query_key_value, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, inner), nn.Linear(inner, size)
        self.attention_norm, self.norm = (
            nn.LayerNorm(size, eps=shape.layer_norm_eps) for _ in range(2)
        )

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """States [B, T, H]; the mask [B, 1, 1, T] is false at padding."""
        batch, positions, size = states.shape
        query, key, value = (
            self.query_key_value(states)
            .view(batch, positions, 3, self.heads, -1)
            .permute(2, 0, 3, 1, 4)
        )
        gathered = (
            functional.scaled_dot_product_attention(query, key, value, mask)
            .transpose(1, 2)
            .reshape(batch, positions, size)
        )
        states = self.attention_norm(states + self.out(gathered))
        normed: Tensor = self.norm(states + self.down(functional.gelu(self.up(states))))
        return normed


class Bert(nn.Module):
    """The encoder without pooling; for reading, not for training: it has no dropout."""

    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.config = shape
        rows = (shape.vocab_size, shape.max_position_embeddings, shape.type_vocab_size)
        self.words, self.positions, self.types = (
            nn.Parameter(torch.empty(count, shape.hidden_size)) for count in rows
        )
        self.norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))

    def forward(self, *, input_ids: Tensor, attention_mask: Tensor | None = None) -> States:
        """Hidden states of token ids [B, T]; the mask [B, T] is 0 at padding (None: there is
        none).
        """
        states = self.norm(
            functional.embedding(input_ids, self.words)
            + self.positions[: input_ids.shape[1]]
            + self.types[0]
        )
        mask = None if attention_mask is None else attention_mask[:, None, None].bool()
        for layer in self.layers:
            states = layer(states, mask)
        return States(states)


def load_bert(folder: Path) -> Bert | None:
    """A local model of BERT's form, frozen; None where only transformers can read it. Under
    `torch.device("meta")` it has only shapes.
    """
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        return None
    return make_bert(
        json.loads((folder / CONFIG).read_text("utf-8")), lambda: load_file(folder / WEIGHTS)
    )


def make_bert(config: object, weights: Callable[[], Mapping[str, Tensor]]) -> Bert | None:
    """A frozen model; None where it is not of BERT's form. `weights` by published names are not
    read where shapes are enough.
    """
    shape = BertShape.of(config)
    if shape is None:
        return None
    if torch.get_default_device().type == "meta":
        return Bert(shape).requires_grad_(False)
    with torch.device("meta"):
        network = Bert(shape)
    named = {name.removeprefix("bert."): tensor.float() for name, tensor in weights().items()}
    try:
        network.load_state_dict(_rename(named, shape.num_hidden_layers), assign=True)
    except (
        KeyError,
        RuntimeError,
    ):  # other names or shapes: transformers knows more of them, or says what is wrong
        return None
    return network.requires_grad_(False)


def _rename(weights: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Published weights by their names in `Bert`."""
    tables = {"words": "word", "positions": "position", "types": "token_type"}
    found = {
        ours: weights[f"embeddings.{theirs}_embeddings.weight"] for ours, theirs in tables.items()
    }
    for kind in ("weight", "bias"):
        found[f"norm.{kind}"] = weights[f"embeddings.LayerNorm.{kind}"]
        for layer in range(layers):
            theirs, ours = f"encoder.layer.{layer}.", f"layers.{layer}."
            found |= {
                f"{ours}{name}.{kind}": weights[f"{theirs}{part}.{kind}"]
                for part, name in LAYER_NAMES.items()
            }
            joined = [
                weights[f"{theirs}attention.self.{part}.{kind}"]
                for part in ("query", "key", "value")
            ]
            found[f"{ours}query_key_value.{kind}"] = torch.cat(joined)
    return found
