"""Frozen language models in 4 bits that compute in bf16 throughout: weights, norms and residual
stream.

Adapters stay in fp32 for the optimiser. peft makes, saves and restores them; their products are
here: few calls, and no casts but one of all adapters before each batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
import transformers
from plant_network.hardware import free_memory, sharing_mode
from torch import Tensor, nn
from torch.nn import functional

from plant_backbones.profile import HuggingFaceOptions

ADAPTER = "default"  # peft's name of the one adapter
UNMASKED = "plant_causal"
"""The library's fused attention under a name for which transformers makes no mask, and looks
for no padding.
"""
EXPANDED_SHARE = 0.4
"""Part of a card's free memory that weights in bf16 may take in the place of 4 bits."""
PROBE = 4
"""Tokens that a model reads once, to see whether it computes in bf16."""


def wants_bf16(options: HuggingFaceOptions, dtype: torch.dtype) -> bool:
    """Whether a model of these options should compute in bf16 throughout, on hardware whose
    products are of `dtype`.
    """
    plain = options.adapter in ("lora", "none") and options.quantization == "nf4"
    return plain and dtype == torch.bfloat16 and sharing_mode() == "whole"


@torch.no_grad()
def answers_in_bf16(network: Any) -> bool:
    """Whether a model whose weights are in 4 bits and in bf16 reads a few tokens; some
    architectures mix bf16 and fp32.
    """
    device = network.get_input_embeddings().weight.device
    try:
        with torch.autocast(device.type, enabled=False):
            states = network(
                input_ids=torch.ones(1, PROBE, dtype=torch.int64, device=device)
            ).last_hidden_state
    except RuntimeError:  # products of two types
        return False
    return bool(states.dtype == torch.bfloat16)


def is_short(network: Any, options: HuggingFaceOptions) -> bool:
    """Whether a quantised model was left in bf16 when it was frozen."""
    return (
        options.quantization == "nf4"
        and network.get_input_embeddings().weight.dtype == torch.bfloat16
    )


@contextmanager
def unmasked(config: Any, positions: int) -> Iterator[bool]:
    """Whether a causal model reads so many positions by fused attention without a mask. It has
    read a text before its padding comes.
    """
    attention = (
        transformers.AttentionInterface
    )  # looked up here: models of transformers take seconds to import
    attention.register(UNMASKED, attention()["sdpa"])
    chosen, window = config._attn_implementation, getattr(config, "sliding_window", None)
    able = chosen == "sdpa" and (window is None or positions <= window)
    config._attn_implementation = UNMASKED if able else chosen
    try:
        yield able
    finally:
        config._attn_implementation = chosen


class Bf16Model:
    """A frozen network in bf16; its adapters, which peft made, have copies in the type of its
    products.
    """

    def __init__(self, network: nn.Module, dtype: torch.dtype = torch.bfloat16) -> None:
        self.dtype = dtype
        self.layers: list[Any] = [
            part
            for part in network.modules()
            if hasattr(part, "lora_A") and hasattr(part, "base_layer")
        ]
        self.copies: list[Tensor] = []  # A and B of each layer, and s A and s B for its scale s
        for layer in self.layers:
            layer.forward = MethodType(_adapted, layer)
        for norm in find_norms(network):
            norm.forward = MethodType(_normed, norm)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """A and B of each layer."""
        return [
            half[ADAPTER].weight for layer in self.layers for half in (layer.lora_A, layer.lora_B)
        ]

    @contextmanager
    def fresh_leaves(self) -> Iterator[list[Tensor]]:
        """Inside, gradients go to leaves that stand for the adapters that learn, in the order
        of `parameters`.
        """
        leaves = [
            parameter.detach().requires_grad_(parameter.requires_grad)
            for parameter in self.parameters
        ]
        for layer, *halves in zip(self.layers, leaves[::2], leaves[1::2], strict=True):
            layer.leaves = halves
        try:
            yield [leaf for leaf in leaves if leaf.requires_grad]
        finally:
            for layer in self.layers:
                del layer.leaves

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """For a batch: the adapters as they are now, and no casts."""
        self._copy_adapters()
        with torch.autocast(device.type, enabled=False):
            yield

    @torch.inference_mode(False)
    @torch.no_grad()
    def _copy_adapters(self) -> None:
        wide: list[Tensor] = [*self.parameters]
        if not wide:
            return
        if not self.copies or self.copies[0].device != wide[0].device:
            self.copies = [torch.empty_like(half, dtype=self.dtype) for half in wide * 2]
            pairs = iter(zip(self.copies[::2], self.copies[1::2], strict=True))
            plain = [next(pairs) for _ in self.layers]
            for layer, (down, up), (scaled_down, scaled_up) in zip(
                self.layers, plain, pairs, strict=True
            ):
                layer.copies = down, up.t(), scaled_down.t(), scaled_up
        torch._foreach_copy_(self.copies, wide * 2)
        torch._foreach_mul_(
            self.copies[len(wide) :],
            [layer.scaling[ADAPTER] for layer in self.layers for _ in range(2)],
        )


def _adapted(layer: Any, states: Tensor) -> Tensor:
    """What peft's layer computes, in place of its `forward`."""
    dropout = layer.lora_dropout[ADAPTER]
    share = dropout.p if layer.training and isinstance(dropout, nn.Dropout) else 0.0
    down, up = getattr(layer, "leaves", None) or (
        layer.lora_A[ADAPTER].weight,
        layer.lora_B[ADAPTER].weight,
    )
    result: Tensor = _AdaptedProduct.apply(states, down, up, layer.base_layer, layer.copies, share)  # type: ignore[no-untyped-call]
    return result


class _AdaptedProduct(torch.autograd.Function):
    """W x + s B A dropout(x) and its gradients of x, A and B; `copies`: A, B transposed, s A
    transposed and s B, in the type of x.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        down: Tensor,
        up: Tensor,
        base: nn.Module,
        copies: Sequence[Tensor],
        dropout: float,
    ) -> Tensor:
        rows, kept = states.flatten(0, -2), None
        result: Tensor = base(rows)
        if dropout:
            rows, kept = torch.native_dropout(rows, dropout, True)
        low = torch.mm(rows, copies[2])
        result.addmm_(low, copies[1])
        ctx.save_for_backward(rows, low, kept)
        ctx.base, ctx.copies, ctx.dropout = base, copies, dropout
        return result.view(*states.shape[:-1], -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, low, kept = ctx.saved_tensors
        down, _, _, scaled_up = ctx.copies
        upstream = gradient.flatten(0, -2)
        to_low = torch.mm(upstream, scaled_up)
        d_states = d_down = d_up = None
        if ctx.needs_input_grad[1]:
            d_down = torch.mm(to_low.t(), rows).float()
        if ctx.needs_input_grad[2]:
            d_up = torch.mm(upstream.t(), low).float()
        if ctx.needs_input_grad[0]:
            d_rows = torch.mm(upstream, frozen_weight(ctx.base))
            if kept is None:
                d_rows.addmm_(to_low, down)
            else:
                d_rows += torch.ops.aten.native_dropout_backward(
                    torch.mm(to_low, down), kept, 1 / (1 - ctx.dropout)
                )
            d_states = d_rows.view(*gradient.shape[:-1], -1)
        return d_states, d_down, d_up, None, None, None


def frozen_weight(layer: Any) -> Tensor:
    """The numbers of a frozen map [out, in]; 4-bit ones written out."""
    weight: Tensor = layer.weight
    state = getattr(weight, "quant_state", None)
    if state is None:
        return weight
    from bitsandbytes.functional import dequantize_4bit

    written: Tensor = dequantize_4bit(weight.data, state)
    return written


def wants_expansion(network: Any, options: HuggingFaceOptions) -> bool:
    """Whether the numbers of a model's 4-bit maps are kept in bf16; by default on a card where
    they take little of its free memory.
    """
    if not is_short(network, options) or options.expand_weights is not None:
        return is_short(network, options) and bool(options.expand_weights)
    device = network.get_input_embeddings().weight.device
    size = 2 * sum(
        part.in_features * part.out_features
        for part in network.modules()
        if isinstance(part, nn.Linear)
    )
    return device.type == "cuda" and size <= EXPANDED_SHARE * free_memory(device)


def find_norms(network: nn.Module) -> list[Any]:
    """Frozen norms by the root mean square, of the common kind: each number over the root,
    times its weight.
    """
    found = [
        part
        for part in network.modules()
        if type(part).__name__.endswith("RMSNorm") and hasattr(part, "variance_epsilon")
    ]
    return [part for part in found if _is_plain(part)]


@torch.no_grad()
def _is_plain(norm: Any) -> bool:
    tried = torch.linspace(
        -2, 2, len(norm.weight), device=norm.weight.device, dtype=norm.weight.dtype
    )
    expected = functional.rms_norm(tried, norm.weight.shape, norm.weight, norm.variance_epsilon)
    return torch.allclose(norm(tried).float(), expected.float(), rtol=2**-6, atol=2**-6)


def _normed(norm: Any, states: Tensor) -> Tensor:
    """What a norm computes, in place of its `forward`; on a card in one kernel."""
    if states.is_cuda:
        return functional.rms_norm(states, norm.weight.shape, norm.weight, norm.variance_epsilon)
    result: Tensor = _Normed.apply(states, norm.weight, norm.variance_epsilon)  # type: ignore[no-untyped-call]
    return result


class _Normed(torch.autograd.Function):
    """x / √(mean x² + ε) times a frozen weight, in fp32 within."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, least: float) -> Tensor:
        exact = states.float()
        factor = exact.square().mean(-1, keepdim=True).add_(least).rsqrt_()
        ctx.save_for_backward(states, weight, factor)
        return (exact * factor).mul_(weight).to(states.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        states, weight, factor = ctx.saved_tensors
        unit = states * factor
        pull = gradient * weight.float()
        pull -= unit.mul(pull).mean(-1, keepdim=True).mul(unit)
        return pull.mul_(factor).to(states.dtype), None, None
