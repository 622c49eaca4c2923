"""Training of stage 2 on the hidden states of a frozen backbone: ours beside PLM-CA written
plainly, same batch, same labels.

`python -m tests.benchmarks.training --labels 8929 --json FILE`. A step is forward, loss, backward,
clipping and AdamW. `ours` looks for hard negatives among all labels, `sparse` does so with
`--sparse-updates`. `shortlist` scores a document's candidates, positives and random negatives
alone, `sparse shortlist` with row-wise updates; `bound` is no more than their matrix products.
`reference` is PLM-CA (Edin et al. 2024): cross-attention of label queries, layer norm, a vector per
label, cross-entropy over all labels; `peer` is the paper's network through the library's fused
attention, with our loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_losses import FocalOptions
from plant_losses.label_losses import Focal
from plant_network.candidates import score_all, score_pairs
from plant_network.optimiser import RowAdamW
from plant_network.stage2 import add_random
from plant_network.strategies import clip_gradients
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import DecoderShape, Reading
from tests.benchmarks.contenders import Contender, run

POSITIVES = 16


class PlmCa(nn.Module):
    """PLM-CA's decoder: softmax(E (H W_k)ᵀ) (H W_v), layer norm, a vector and a bias per label."""

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(labels, hidden) * 0.03)
        self.keys, self.values = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.weights = nn.Parameter(torch.randn(labels, hidden) * 0.03)
        self.bias = nn.Parameter(torch.zeros(labels))

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Logits [B, L]."""
        scores = self.queries @ self.keys(hidden).mT
        attention = torch.softmax(scores.masked_fill(~mask.unsqueeze(1), -torch.inf), dim=-1)
        return (self.norm(attention @ self.values(hidden)) * self.weights).sum(-1) + self.bias


def batch(options: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states [B, T, H] of documents that fill between a half and all of T, their mask,
    and targets [B, L].
    """
    torch.manual_seed(0)
    lengths = torch.linspace(options.positions // 2, options.positions, options.documents).long()
    mask = torch.arange(options.positions) < lengths.unsqueeze(1)
    targets = torch.zeros(options.documents, options.labels)
    targets.scatter_(1, torch.randint(options.labels, (options.documents, POSITIVES)), 1.0)
    return torch.randn(options.documents, options.positions, options.hidden), mask, targets


def training(
    options: argparse.Namespace, network: nn.Module, loss: Callable[[], Tensor], *, fused: bool
) -> Callable[[], object]:
    """A whole step; label tables of a sparse decoder are updated row by row."""
    tables = (
        network.label_tables() if isinstance(network, LabelAttention) and network.sparse else ()
    )
    entries = [{"params": list(network.parameters()), "lr": 1e-4}]
    optimizer = (
        RowAdamW(entries, tables, weight_decay=0.01)
        if tables
        else torch.optim.AdamW(network.parameters(), lr=1e-4, fused=fused)
    )
    parameters = list(network.parameters())

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bfloat16"):
            value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        clip_gradients(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def ours(options: argparse.Namespace) -> Callable[[], object]:
    hidden, mask, targets = batch(options)
    reading, decoder = Reading.of(hidden, mask), _decoder(options)
    focal = Focal(FocalOptions())

    def loss() -> Tensor:
        logits = decoder(reading)
        return focal(
            logits,
            targets,
            focal.select(logits.detach(), targets, torch.Generator().manual_seed(0)),
        )

    return training(options, decoder, loss, fused=True)


def sparse(options: argparse.Namespace) -> Callable[[], object]:
    """Scored without gradient, the selected pairs once more with it; label tables are updated
    row by row.
    """
    hidden, mask, targets = batch(options)
    reading, decoder = Reading.of(hidden, mask), _decoder(options)
    decoder.sparse = True
    focal = Focal(FocalOptions())

    def loss() -> Tensor:
        with torch.no_grad():
            logits = score_all(decoder, reading, options.labels)
        selected = focal.select(logits, targets, torch.Generator().manual_seed(0))
        return focal(score_pairs(decoder, reading, selected), targets, selected)

    return training(options, decoder, loss, fused=True)


def shortlist(options: argparse.Namespace, *, sparse: bool = False) -> Callable[[], object]:
    """Candidates, positives and random negatives are scored once, with gradient; nothing else
    is.
    """
    hidden, mask, targets = batch(options)
    reading, decoder, selected, focal = (
        Reading.of(hidden, mask),
        _decoder(options),
        pairs(options, targets),
        Focal(FocalOptions()),
    )
    decoder.sparse = sparse
    return training(
        options,
        decoder,
        lambda: focal(score_pairs(decoder, reading, selected), targets, selected),
        fused=True,
    )


def bound(options: argparse.Namespace) -> Callable[[], object]:
    """Eight matrix products of the same pairs: labels of a document x its positions x hidden
    size.
    """
    _, mask, targets = batch(options)
    selected, kind = pairs(options, targets), getattr(torch, options.dtype)
    right = torch.randn(options.hidden, options.hidden, dtype=kind)
    left = [torch.randn(labels, options.hidden, dtype=kind) for labels in selected.sum(1).tolist()]
    rounds = [max(1, round(8 * places / options.hidden)) for places in mask.sum(1).tolist()]

    def products() -> None:
        for rows, times in zip(left, rounds, strict=True):
            for _ in range(times):
                torch.mm(rows, right)

    return products


def pairs(options: argparse.Namespace, targets: Tensor) -> Tensor:
    """Positives, `--candidates` drawn candidates, and random negatives in the loss's proportion
    to them, of each document [B, L].
    """
    draw = torch.Generator().manual_seed(0)
    candidates = (
        torch.rand(targets.shape, generator=draw)
        .topk(min(options.candidates, options.labels), dim=1)
        .indices
    )
    chosen = (targets > 0).scatter(1, candidates, True)
    loss = FocalOptions()
    return add_random(
        chosen, loss.random_negatives * options.candidates // loss.hard_negatives, draw
    )


def peer(options: argparse.Namespace) -> Callable[[], object]:
    hidden, mask, targets = batch(options)
    decoder = _decoder(options)
    focal = Focal(FocalOptions())

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (options.heads, -1)).transpose(1, 2)

    def loss() -> Tensor:
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
        logits = (
            functional.adaptive_avg_pool1d(boosted, len(decoder.projection)) @ decoder.projection
        ).float()
        return focal(
            logits,
            targets,
            focal.select(logits.detach(), targets, torch.Generator().manual_seed(0)),
        )

    return training(options, decoder, loss, fused=False)


def reference(options: argparse.Namespace) -> Callable[[], object]:
    hidden, mask, targets = batch(options)
    network = PlmCa(options.labels, options.hidden)
    return training(
        options,
        network,
        lambda: functional.binary_cross_entropy_with_logits(network(hidden, mask).float(), targets),
        fused=False,
    )


def _decoder(options: argparse.Namespace) -> LabelAttention:
    return LabelAttention(
        LabelAttentionOptions(heads=options.heads),
        DecoderShape(hidden=options.hidden, labels=options.labels),
    )


CONTENDERS: dict[str, Contender] = {
    "ours": ours,
    "sparse": sparse,
    "shortlist": shortlist,
    "sparse shortlist": partial(shortlist, sparse=True),
    "bound": bound,
    "reference": reference,
    "peer": peer,
}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.training", description=(__doc__ or "").splitlines()[0]
    )
    for name, size in (
        ("labels", 8929),
        ("documents", 8),
        ("positions", 512),
        ("hidden", 384),
        ("heads", 8),
    ):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument(
        "--candidates",
        type=int,
        default=384,
        help="labels that a shortlist proposes for a document",
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="bfloat16")
    run("tests.benchmarks.training", parser, CONTENDERS, arguments)


if __name__ == "__main__":
    main()
