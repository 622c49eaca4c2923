"""Training of a language model at full size: tokens per second and memory, beside the operations that it cannot do without.

`python -m tests.benchmarks.language_model --device cuda --json FILE`: 60,000 words, embedding 400, three layers of 1,152, 64 streams
of 72 tokens. `ours` is a step of `plant pretrain-lm`; `reference` the same sizes in torch's LSTM without weight drop and penalties.
The bound is the products of the layers and of the output, forward and backward, at the rate of one large product (fp32; TF32 on CUDA).
`--scale small` runs the same code on a processor in half a minute.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from plant_awd_lstm import PretrainLmOptions
from plant_awd_lstm.language_model import Encoder, LanguageModel, Sizes
from plant_awd_lstm.pretraining import Pretraining, TrainingPlace
from torch import nn
from torch.nn import functional

from plant_cli.api import SilentReporter

SCALES = {"full": (60_000, 400, 1152, 64), "small": (2_000, 48, 96, 16)}


class Plain(nn.Module):
    """Torch's LSTM between an embedding and its transpose."""

    def __init__(self, words: int, sizes: Sizes) -> None:
        super().__init__()
        size, hidden = sizes["embedding"], sizes["hidden"]
        self.embedding = nn.Embedding(words, size)
        self.first = nn.LSTM(size, hidden, sizes["layers"] - 1, batch_first=True)
        self.last = nn.LSTM(hidden, size, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return functional.linear(self.last(self.first(self.embedding(ids))[0])[0], self.embedding.weight, self.bias)


def operations(words: int, sizes: Sizes, tokens: int) -> float:
    """Multiplications and additions of a step: twice the weights that a token meets, three times (forward, and backward twice)."""
    widths = [sizes["embedding"], *[sizes["hidden"]] * (sizes["layers"] - 1), sizes["embedding"]]
    weights = sum(4 * after * (before + after) for before, after in itertools.pairwise(widths))
    return 6.0 * tokens * (weights + words * sizes["embedding"])


def rate(device: torch.device) -> float:
    """Operations per second of one large product."""
    size = 8192 if device.type == "cuda" else 1024
    left = torch.randn(size, size, device=device)
    return 2 * size**3 / seconds(lambda: left @ left, device, 5)


def seconds(step: Callable[[], object], device: torch.device, times: int) -> float:
    """Median wall-clock time of a step, after one that warms up."""
    found = []
    for _ in range(times + 1):
        began = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return float(np.median(found[1:]))


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.language_model", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", choices=sorted(SCALES), default="full")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "tests.benchmarks.language_model --device cuda: there is no graphics card that torch can use, so nothing was measured "
            "(--scale small --device cpu runs the same code here)"
        )
    device = torch.device(chosen.device)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32
    words, embedding, hidden, batch = SCALES[chosen.scale]
    sizes = Sizes(embedding=embedding, hidden=hidden, layers=3)
    options = PretrainLmOptions(batch=batch, embedding=embedding, hidden=hidden, epochs=1)
    draw = np.random.default_rng(0)
    documents = [draw.integers(3, words, size=1500).astype(np.int32) for _ in range(max(8, batch * 72 * (chosen.steps + 2) // 1500 + 1))]
    place = TrainingPlace(
        device=device, checkpoints=Path("unused"), reporter=SilentReporter(), stopping=lambda: False, resume=False, seed=0
    )
    model = LanguageModel(Encoder(words, sizes, options)).to(device)
    training = Pretraining(model, "forward", documents, documents[:1], options, imported=False, place=place)
    windows = training.streams.windows(0, 0)
    model.train()
    ours = seconds(lambda: training._step(next(windows)), device, chosen.steps)
    peak = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None
    plain = Plain(words, sizes).to(device)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3)
    ids = torch.randint(3, words, (batch, options.window + 1), device=device)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(plain(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(plain.parameters(), 0.4)
        optimizer.step()

    reference = seconds(step, device, chosen.steps)
    tokens = batch * options.window
    result = {
        "seconds": ours,
        "reference_seconds": reference,
        "bound_seconds": operations(words, sizes, tokens) / rate(device),
        "tokens_per_second": tokens / ours,
        "peak_gb": peak,
        "machine": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
    }
    print(json.dumps(result, indent=2))
    if chosen.json:
        chosen.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
