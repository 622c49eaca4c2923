"""Label attention with its head, forward and backward: ours beside the literal network, the
library's attention and the bound.

`python -m tests.benchmarks.attention --labels 8929 --json FILE`. `reference` is the paper's network
step by step; `peer` gathers [B, L, H] with the library's fused attention, as a user would write it;
`bound` is the eight L·T·H matrix products alone (two forward, six backward) at the rate of one
large product; `selected` is ours when the loss looks at 1,256 labels of each document. `--device
cuda` compares the forms of our kernels instead (`tests.benchmarks.tiles`), best with `--dtype
bfloat16`; `--sweep` tries tiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import torch
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import DecoderShape, Reading
from tests.benchmarks import tiles
from tests.benchmarks.contenders import Contender, run
from tests.references import LiteralHead, literal_logits

SELECTED = 1256


def decoder_and_batch(options: argparse.Namespace) -> tuple[LabelAttention, Tensor, Tensor]:
    """A fresh decoder, hidden states [B, T, H] of which documents fill between a half and all
    of T, and their mask.
    """
    torch.manual_seed(0)
    dtype = getattr(torch, options.dtype)
    decoder = LabelAttention(
        LabelAttentionOptions(heads=options.heads),
        DecoderShape(hidden=options.hidden, labels=options.labels),
    ).to(dtype)
    lengths = torch.linspace(options.positions // 2, options.positions, options.documents).long()
    mask = torch.arange(options.positions) < lengths.unsqueeze(1)
    return (
        decoder,
        torch.randn(
            options.documents, options.positions, options.hidden, dtype=dtype
        ).requires_grad_(),
        mask,
    )


def backward_of(
    decoder: nn.Module, hidden: Tensor, forward: Callable[[], Tensor], upstream: Tensor
) -> Callable[[], object]:
    """The step: logits, and their gradient into the hidden states and every parameter that they
    reach.
    """
    inputs = [hidden, *decoder.parameters()]
    return lambda: torch.autograd.grad(
        forward(), inputs, upstream.to(hidden.dtype), allow_unused=True
    )


def ours(options: argparse.Namespace) -> Callable[[], object]:
    decoder, hidden, mask = decoder_and_batch(options)
    return backward_of(
        decoder,
        hidden,
        lambda: decoder(Reading.of(hidden, mask)),
        torch.randn(options.documents, options.labels),
    )


def selected(options: argparse.Namespace) -> Callable[[], object]:
    decoder, hidden, mask = decoder_and_batch(options)
    upstream = torch.randn(options.documents, options.labels)
    chosen = torch.rand(upstream.shape).argsort(1) < min(SELECTED, options.labels)
    return backward_of(
        decoder, hidden, lambda: decoder(Reading.of(hidden, mask)), upstream * chosen
    )


def reference(options: argparse.Namespace) -> Callable[[], object]:
    decoder, hidden, mask = decoder_and_batch(options)
    attention = nn.MultiheadAttention(
        options.hidden, options.heads, batch_first=True, dtype=hidden.dtype
    )
    attention.out_proj = decoder.to_output
    bias = decoder.bias if decoder.bias is not None else torch.zeros(options.labels)
    head = LiteralHead(
        queries=decoder.queries,
        attention=attention,
        boost_scale=decoder.boost_scale,
        boost_shift=decoder.boost_shift,
        projection=decoder.projection,
        bias=bias,
    )
    return backward_of(
        decoder,
        hidden,
        lambda: literal_logits(head, decoder.norm(hidden), mask)[0],
        torch.randn(options.documents, options.labels),
    )


def peer(options: argparse.Namespace) -> Callable[[], object]:
    decoder, hidden, mask = decoder_and_batch(options)

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (options.heads, -1)).transpose(1, 2)

    def forward() -> Tensor:
        states = decoder.norm(hidden)
        queries = split(decoder.to_query(decoder.queries).expand(len(hidden), -1, -1))
        keys, values = split(decoder.to_key(states)), split(decoder.to_value(states))
        attended = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask[:, None, None, :]
        )
        boosted = (
            decoder.boost_shift
            + decoder.to_output(attended.transpose(1, 2).flatten(2)) * decoder.boost_scale
        )
        return functional.adaptive_avg_pool1d(boosted, len(decoder.projection)) @ decoder.projection

    return backward_of(decoder, hidden, forward, torch.randn(options.documents, options.labels))


def places_of(options: argparse.Namespace) -> int:
    """Places that count, of all documents."""
    return int(decoder_and_batch(options)[2].sum())


def bound(options: argparse.Namespace) -> Callable[[], object]:
    places = places_of(options)
    left = torch.randn(options.labels, options.hidden, dtype=getattr(torch, options.dtype))
    right = torch.randn(options.hidden, options.hidden, dtype=left.dtype)

    def products() -> None:
        for _ in range(
            round(8 * places / options.hidden)
        ):  # 8 x places x labels x hidden products in all
            torch.mm(left, right)

    return products


def work(options: argparse.Namespace) -> dict[str, float]:
    """Eight products of labels, places and hidden size; queries, directions, keys, values and
    their gradients, once each.
    """
    places, size = places_of(options), getattr(torch, options.dtype).itemsize
    operations = 8 * 2 * places * options.labels * options.hidden
    return {
        "operations": operations,
        "bytes": 4 * (options.labels + places) * options.hidden * size,
    }


CONTENDERS: dict[str, Contender] = {
    "bound": bound,
    "ours": ours,
    "selected": selected,
    "peer": peer,
    "reference": reference,
}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.attention", description=(__doc__ or "").splitlines()[0]
    )
    for name, size in (
        ("labels", 8929),
        ("documents", 8),
        ("positions", 512),
        ("hidden", 384),
        ("heads", 8),
    ):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="on a graphics card: try sizes of tiles and blocks, and name the fastest",
    )
    small = {"labels": 64, "documents": 1, "positions": 16}

    def on_card(options: argparse.Namespace) -> Mapping[str, object]:
        return (
            tiles.sweep(options)
            if options.sweep
            else tiles.compare(options, {"decoder": ours, "decoder, selected": selected})
        )

    run("tests.benchmarks.attention", parser, CONTENDERS, arguments, work, small, on_card)


if __name__ == "__main__":
    main()
