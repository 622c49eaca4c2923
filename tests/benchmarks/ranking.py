"""The stage 1 loss with its gradient: ours beside the plain pairwise form and the bound, in one
run.

`python -m tests.benchmarks.ranking --items 256 --lists 128 --json FILE`. `reference` holds all
pairs of all lists as tensors and lets autograd differentiate; `bound` is one logistic function for
each pair that counts. `--device cuda` measures the Triton kernel.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import torch
from plant_losses.list_ranking import lambda_loss
from torch import Tensor
from torch.nn import functional

from tests.benchmarks.contenders import Contender, run


def draw(options: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, relevances (a share of them above 0) and offsets of lists of equal length."""
    torch.manual_seed(0)
    n = options.lists * options.items
    scores = torch.randn(n).requires_grad_()
    relevance = torch.rand(n) * (torch.rand(n) < options.relevant)
    return scores, relevance, torch.arange(0, n + 1, options.items)


def ours(options: argparse.Namespace) -> Callable[[], object]:
    scores, relevance, offsets = draw(options)
    return lambda: torch.autograd.grad(lambda_loss(scores, relevance, offsets), scores)


def reference(options: argparse.Namespace) -> Callable[[], object]:
    scores, relevance, _ = draw(options)

    def loss() -> Tensor:
        s, r = scores.view(options.lists, -1), relevance.view(options.lists, -1)
        discount = 1 / torch.log2(torch.argsort(torch.argsort(s.detach(), descending=True)) + 2.0)
        gain = 2**r - 1
        ideal = (
            gain.sort(descending=True).values / torch.log2(torch.arange(options.items) + 2.0)
        ).sum(1)
        change = (
            (gain[:, :, None] - gain[:, None]) * (discount[:, :, None] - discount[:, None])
        ).abs() / ideal[:, None, None]
        cost = functional.softplus(s[:, None] - s[:, :, None]) / math.log(2)
        return (change * (r[:, :, None] > r[:, None]) * cost).sum() / options.lists

    return lambda: torch.autograd.grad(loss(), scores)


def bound(options: argparse.Namespace) -> Callable[[], object]:
    _, relevance, _ = draw(options)
    r = relevance.view(options.lists, -1)
    pairs = sum(int((row[:, None] > row).sum()) for row in r)
    tile = torch.randn(1 << 16)

    def logistics() -> None:
        for _ in range(max(1, round(pairs / len(tile)))):
            torch.sigmoid(tile)

    return logistics


def work(options: argparse.Namespace) -> dict[str, float]:
    """Scores and relevances are read, gradients are written, 4 bytes each."""
    return {"bytes": 12 * options.lists * options.items}


CONTENDERS: dict[str, Contender] = {"bound": bound, "ours": ours, "reference": reference}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.ranking", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--items", type=int, default=256, help="items of a list")
    parser.add_argument(
        "--lists", type=int, default=512, help="512: eight documents and 64 labels of each"
    )
    parser.add_argument(
        "--relevant", type=float, default=1.0, help="share of the items with relevance above 0"
    )
    run(
        "tests.benchmarks.ranking",
        parser,
        CONTENDERS,
        arguments,
        work,
        small={"lists": 2, "items": 8},
    )


if __name__ == "__main__":
    main()
