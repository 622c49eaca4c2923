"""Both forms of label attention on a graphics card, tile by tile, beside the library's attention
and the plain formula.

`python -m tests.benchmarks.attention --device cuda --dtype bfloat16` compares them; `--sweep` tries
tiles for each fused kernel and block sizes for the products, and names the fastest: what
`plant_decoders.attention_kernels` holds in its constants. All that must be compiled is compiled
first, in as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from plant_decoders.attention import label_attention
from plant_network.throughput import MATRIX_SIDE
from torch import Tensor
from torch.nn import functional

from tests.benchmarks.contenders import Contender

Step = Callable[[], object]
SHAPES = {
    "hidden 384, 1 head": (384, 1),
    "hidden 384, 8 heads": (384, 8),
    "hidden 1024, 4 heads": (1024, 4),
    "hidden 4096, 32 heads": (4096, 32),
}
SELECTED = 1256  # labels of each document that the loss looks at
WIDEST_SWEPT = 128  # places of a head
BACKWARD = (
    (128, 64, 8, 2),
    (128, 64, 8, 3),
    (128, 32, 8, 3),
    (64, 64, 4, 2),
    (64, 64, 4, 3),
    (64, 64, 8, 2),
    (64, 32, 4, 3),
)
PASSES: Mapping[str, Sequence[Sequence[int]]] = {
    "forward": (
        (128, 64, 8, 3),
        (128, 64, 8, 2),
        (128, 64, 4, 3),
        (128, 128, 8, 2),
        (128, 32, 8, 3),
        (128, 32, 8, 2),
        (64, 128, 4, 2),
        (64, 64, 4, 3),
        (64, 64, 4, 2),
        (256, 64, 8, 2),
    ),
    "labels": BACKWARD,
    "positions": BACKWARD,
}
BLOCKS = {
    "LABELS_WALKED": [1024, 2048, 4096, 16384],
    "SCORES_HELD": [1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25],
}


class Inputs(NamedTuple):
    """Of one call, and what comes back from its result."""

    tensors: list[Tensor]
    mask: Tensor
    heads: int
    upstream: Tensor
    chosen: Tensor

    @classmethod
    def draw(cls, options: argparse.Namespace, shape: str) -> Inputs:
        """Documents fill between a half and all of T."""
        (hidden, heads), dtype = SHAPES[shape], getattr(torch, options.dtype)
        sizes = [(options.labels, hidden)] * 2 + [
            (options.documents, options.positions, hidden)
        ] * 2
        tensors = [
            torch.randn(size, dtype=dtype, device=options.device).requires_grad_() for size in sizes
        ]
        lengths = torch.linspace(
            options.positions // 2, options.positions, options.documents
        ).long()
        mask = (torch.arange(options.positions) < lengths.unsqueeze(1)).to(options.device)
        upstream = torch.randn(options.documents, options.labels, device=options.device)
        chosen = torch.rand(upstream.shape, device=options.device).argsort(1) < min(
            SELECTED, options.labels
        )
        return cls(tensors, mask, heads, upstream, chosen)

    def steps(self, attend: Callable[..., Tensor], *, ours: bool) -> dict[str, Step]:
        """Forward alone; with the gradient of all logits; of selected ones; of selected ones
        where only they are wanted.
        """

        def back(upstream: Tensor, **wanted: Tensor) -> Step:
            return lambda: torch.autograd.grad(
                attend(*self.tensors, self.mask, heads=self.heads, **wanted), self.tensors, upstream
            )

        def forward() -> None:
            with torch.no_grad():
                attend(*self.tensors, self.mask, heads=self.heads)

        some = self.upstream * self.chosen
        steps: dict[str, Step] = {"forward": forward, "all": back(self.upstream)}
        return (
            {**steps, "selected": back(some), "wanted": back(some, wanted=self.chosen)}
            if ours
            else steps
        )


def library(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int
) -> Tensor:
    """Gathers [B, L, H] by the library's fused attention."""
    q = queries.expand(len(keys), -1, -1)
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, keys, values))
    gathered = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
    return (gathered.transpose(1, 2).flatten(2) * directions).sum(-1, dtype=torch.float32)


def plain(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int
) -> Tensor:
    """Holds all scores and worths."""
    q, g, k, v = (x.unflatten(-1, (heads, -1)) for x in (queries, directions, keys, values))
    scores = torch.einsum("lhd,bthd->bhlt", q, k).float() * q.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(-1)
    return (weights * torch.einsum("lhd,bthd->bhlt", g, v)).sum((1, 3))


@contextmanager
def form(name: str) -> Iterator[None]:
    """Lets the kernels take a form: `products`, or any other name for what they choose
    themselves.
    """
    from plant_decoders import attention_kernels as kernels

    with patch.object(kernels, "FUSED", {} if name == "products" else kernels.FUSED):
        yield


def settle(device: str) -> None:
    """Wait for the card."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(step: Step, device: str, budget: float = 0.03) -> float:
    """Of a step, in a row of steps; the better of two rows."""
    step()
    settle(device)
    begin = time.perf_counter()
    step()
    settle(device)
    count = min(20, max(1, int(budget / (time.perf_counter() - begin))))
    found = []
    for _ in range(2):
        begin = time.perf_counter()
        for _ in range(count):
            step()
        settle(device)
        found.append((time.perf_counter() - begin) / count)
    return min(found)


def replayed(step: Step) -> float:
    """Seconds of a step that is started from the card's own record of it, without Python; it
    may not wait for the card.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return seconds(graph.replay, "cuda")


def measure_steps(steps: Mapping[str, Step], device: str, *, waits: bool) -> dict[str, float]:
    """Seconds of each step, those with gradients also without Python; memory added by `all`
    (GB).
    """
    found = {name: seconds(step, device) for name, step in steps.items()}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        steps["all"]()
        found["gb"] = (torch.cuda.max_memory_allocated() - before) / 1e9
        if not waits:
            for name in steps.keys() & {"all", "selected"}:
                with suppress(RuntimeError):  # a step that waits for the card has no record
                    found[f"{name}*"] = replayed(steps[name])
    return found


def compile_form(job: tuple[argparse.Namespace, str, str]) -> None:
    """Take every step once, so that its kernels are compiled and kept on disk; what fails here
    fails again where it is told.
    """
    options, shape, name = job
    with form(name), suppress(Exception):
        for step in Inputs.draw(options, shape).steps(label_attention, ours=True).values():
            step()
    settle(options.device)


def in_processes(work: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    """The results of jobs, each in one of as many processes as there are cores."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        max(1, min(len(jobs), (os.cpu_count() or 2) - 1)), mp_context=context
    ) as pool:
        return list(pool.map(work, jobs))


def forms_of(shape: str) -> list[str]:
    """The forms that are measured: the products where heads are few or wide, the fused one
    where they are narrow.
    """
    hidden, heads = SHAPES[shape]
    return [*(["products"] if heads <= 8 else []), *(["fused"] if hidden // heads <= 256 else [])]


def compare(options: argparse.Namespace, decoders: Mapping[str, Contender]) -> dict[str, Any]:
    """Milliseconds of each form, memory, and the share of the rate of a large product that its
    eight products reach; printed and given.
    """
    began = time.perf_counter()
    jobs = [(options, shape, name) for shape in SHAPES for name in forms_of(shape)]
    if options.device == "cuda":
        in_processes(compile_form, jobs)
    side = MATRIX_SIDE[options.device]
    left, right = (
        torch.randn(side, side, dtype=getattr(torch, options.dtype), device=options.device)
        for _ in range(2)
    )
    rate = 2 * side**3 / seconds(lambda: left @ right, options.device)
    print(
        f"compiled in {time.perf_counter() - began:.0f} s; a large product: {rate / 1e12:.3g} "
        "TFLOP/s; milliseconds (*: without Python):"
    )
    print(
        f"{'':38}{'forward':>9}{'all':>9}{'all*':>9}{'selected':>10}{'selected*':>10}{'wanted':>9}{'GB':>8}{'share':>8}"
    )
    figures: dict[str, Any] = {"rate": rate}
    for shape, (hidden, heads) in SHAPES.items():
        inputs = Inputs.draw(options, shape)
        operations = 16 * int(inputs.mask.sum()) * options.labels * hidden
        ways = {name: inputs.steps(label_attention, ours=True) for name in forms_of(shape)}
        ways |= {way.__name__: inputs.steps(way, ours=False) for way in (library, plain)}
        if heads == 8:  # as it is trained, with all that surrounds the attention
            given = argparse.Namespace(**{**vars(options), "hidden": hidden, "heads": heads})
            with torch.device(options.device):
                ways |= {name: {"all": decoder(given)} for name, decoder in decoders.items()}
        for name, steps in ways.items():
            with form(name):
                try:
                    found = measure_steps(steps, options.device, waits=name == "products")
                except Exception as problem:  # one form that fails costs the others nothing
                    print(
                        f"{shape}, {name}: {type(problem).__name__}: {str(problem)[:200]}",
                        flush=True,
                    )
                    continue
            found["share"] = operations / found["all"] / rate
            figures[f"{shape}, {name}"] = found
            widths = {
                "forward": 9,
                "all": 9,
                "all*": 9,
                "selected": 10,
                "selected*": 10,
                "wanted": 9,
            }
            columns = [
                f"{1000 * found[key]:{width}.3f}" if key in found else " " * width
                for key, width in widths.items()
            ]
            print(
                f"{shape + ', ' + name:38}{''.join(columns)}{found.get('gb', 0.0):8.3f}{found['share']:8.1%}",
                flush=True,
            )
    print(f"{time.perf_counter() - began:.0f} s in all")
    return figures


def try_tile(job: tuple[argparse.Namespace, str, str, Sequence[int]]) -> float:
    """Seconds of one fused pass with a tile in place of the one that is shipped; NaN where a
    card cannot take it.
    """
    from plant_decoders import attention_kernels as kernels

    options, shape, name, sizes = job
    inputs, place = Inputs.draw(options, shape), list(PASSES).index(name)
    batch = kernels._Batch.of(*inputs.tensors, inputs.mask, inputs.heads)
    shipped = kernels.FUSED[64 if SHAPES[shape][0] // SHAPES[shape][1] <= 64 else 128]
    chosen = tuple(kernels.Tile(*sizes) if i == place else tile for i, tile in enumerate(shipped))
    try:
        with torch.no_grad():
            kernels._average_fused(batch, shipped[0], None)
            if place == 0:
                return seconds(
                    lambda: kernels._average_fused(batch, chosen[0], None), options.device
                )
            return seconds(
                lambda: kernels._pull_fused(batch, chosen[1:], inputs.upstream), options.device
            )
    except Exception as problem:  # one tile that fails costs the others nothing
        print(
            f"{shape}, {name}, {sizes}: {type(problem).__name__}: {str(problem)[:100]}", flush=True
        )
        return float("nan")


def sweep(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of the forward pass by its tile, of the backward pass by either of its tiles
    and by blocks; printed and given.
    """
    from plant_decoders import attention_kernels as kernels

    shapes = [shape for shape, (hidden, heads) in SHAPES.items() if hidden // heads <= WIDEST_SWEPT]
    jobs = [
        (options, shape, name, tile)
        for shape in shapes
        for name, tiles in PASSES.items()
        for tile in tiles
    ]
    if options.device == "cuda":
        in_processes(
            try_tile, jobs
        )  # compiled, and timed while others run: those times do not count
    figures: dict[str, Any] = {}
    for shape in shapes:
        for name in PASSES:
            found = {str(job[3]): 1000 * try_tile(job) for job in jobs if job[1:3] == (shape, name)}
            figures[f"{shape}, {name}"] = found
    for constant, sizes in BLOCKS.items():
        shape = shapes[-1] if constant == "LABELS_WALKED" else next(iter(SHAPES))
        step = Inputs.draw(options, shape).steps(label_attention, ours=True)["all"]
        found = {}
        for size in sizes:
            with (
                patch.object(kernels, constant, size),
                form("products" if constant == "SCORES_HELD" else "fused"),
            ):
                found[str(size)] = 1000 * seconds(step, options.device)
        figures[f"{shape}, {constant}"] = found
    for name, found in figures.items():
        ranked = sorted(found.items(), key=lambda pair: (pair[1] != pair[1], pair[1]))
        print(
            f"{name:38}" + "  ".join(f"{size}: {value:.3f}" for size, value in ranked), flush=True
        )
    return figures
