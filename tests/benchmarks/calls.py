"""Calls of torch operations in a micro-batch: what a graphics card waits for while Python starts
one small kernel after the other.

`python -m tests.benchmarks.calls` counts on a processor, in bf16, in under a minute. Calls do not
depend on widths or lengths: models have the published layers and heads, but small maps. `ours` is
the forward and backward pass of stage 2 with label attention and loss, or of reading; `plain` is
transformers and peft alone, without a decoder. `views` are the calls among them that start no
kernel.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from plant_backbones.bert import Bert, BertShape
from plant_backbones.huggingface import HuggingFaceBackbone
from plant_backbones.profile import ATTENTION, FrozenOptions
from plant_backbones.quantization import add_adapter
from plant_decoders import attention_kernels
from plant_losses import FocalOptions
from plant_losses.label_losses import Focal
from plant_network.assembly import Network
from plant_network.hardware import Hardware
from plant_network.reading import LiveReader
from plant_network.recomputation import Recomputation
from plant_network.replays import POSITION_MULTIPLE, USES, Reader, Replays
from plant_network.stage2 import FineTuning
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, BertConfig
from triton.runtime import KernelInterface

from plant_cli.api import Choice, ModelSection
from plant_cli.data.labels import LabelTable
from tests.benchmarks.backbones import Case, Step, draw_case, reading
from tests.benchmarks.random_models import START, random_network

SMALL = {"vocab_size": 512, "hidden_size": 576, "intermediate_size": 192}
LAYERS = {"smollm2": 30, "mistral": 32, "minilm": 6}
DECODERS: dict[str, dict[str, Any]] = {
    "smollm2": {"model_type": "llama", "num_attention_heads": 9, "num_key_value_heads": 3},
    "mistral": {
        "model_type": "mistral",
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "sliding_window": None,
    },
}
"""What config.json says of SmolLM2-135M and Mistral-7B; heads of the latter in the same
proportion.
"""
POSITIONS = 64
NO_KERNEL = ("aten::_unsafe_view", "aten::detach", "aten::alias", "aten::lift_fresh")


class CallCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls of torch operations by name."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.views: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        (self.views if func.is_view or name in NO_KERNEL else self.calls)[name] += 1
        return func(*args, **(kwargs or {}))


@dataclass
class _Launcher:
    """In the place of a Triton kernel: its launches are counted, nothing is computed."""

    calls: Counter[str]

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return lambda *arguments, **options: self.calls.update(["triton"])


@contextmanager
def as_on_a_card(calls: Counter[str]) -> Iterator[None]:
    """Batches keep their activations, and label attention is done by kernels, whose launches
    are counted; its numbers are any.
    """
    kernels: dict[str, Any] = {
        name: _Launcher(calls)
        for name, found in vars(attention_kernels).items()
        if isinstance(found, KernelInterface)
    }
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(attention_kernels, **kernels))
        stack.enter_context(patch("plant_decoders.attention.uses_triton", return_value=True))
        stack.enter_context(patch.object(Recomputation, "_count", return_value=0))
        yield


def count_calls(step: Step) -> tuple[Counter[str], Counter[str]]:
    """Calls that may start a kernel, and views, of one pass after a first one that is not
    counted.
    """
    counter = CallCounter()
    with as_on_a_card(counter.calls):
        step()
        counter.calls.clear()
        with counter:
            step()
    return counter.calls, counter.views


def make_case(shape: str, layers: int, documents: int) -> Case:
    """A case of a shape with so many layers."""
    hardware = Hardware(device=torch.device("cpu"), dtype=torch.bfloat16)
    sizes = argparse.Namespace(scale="small", labels=200, documents=documents)
    config = AutoConfig.for_model(**DECODERS[shape], **SMALL, num_hidden_layers=layers)
    return replace(draw_case("mistral", POSITIONS, sizes, hardware), config=config)


class _Replayed:
    """In the place of a captured pass: one call stands for each replay."""

    def __init__(self, read: Reader, ids: Tensor, pool: object, hidden: int) -> None:
        self.ids, self.gradients = ids.clone(), [torch.zeros_like(leaf) for leaf in read(ids)[1]]
        self.states = torch.rand(*ids.shape, hidden, dtype=torch.bfloat16)

    def forward(self, ids: Tensor) -> Tensor:
        self.ids.copy_(ids)
        return self.states.mul_(1).detach()

    def backward(self, gradient: Tensor) -> None:
        self.states.copy_(gradient).mul_(1)


def ours(case: Case, *, replay: bool = False) -> Step:
    """A micro-batch of stage 2, without the optimiser."""
    network = case.network(case.decoder()).train()
    backbone: Any = network.backbone
    if replay:
        passes = Replays(
            backbone._read_freshly,
            backbone.short.parameters,
            lambda positions: True,
            partial(_Replayed, hidden=backbone.hidden_size),
        )
        passes.uses.update(
            {(len(case.split), POSITION_MULTIPLE, *[True] * len(passes.parameters)): USES}
        )
        vars(backbone)["replays"] = passes
    step = FineTuning(
        network,
        LiveReader(network, case.tokens, case.hardware),
        case.split,
        Focal(FocalOptions()),
        case.hardware,
    )
    return lambda: step(case.rows, epoch=0, seed=0)[0].backward()  # type: ignore[no-untyped-call]


def plain(case: Case, *, autocast: bool, recompute: bool) -> Step:
    """The way of transformers' and peft's examples; the loss is a mean of hidden states."""
    from peft import prepare_model_for_kbit_training

    model = random_network(case.config, case.options, case.hardware.device)
    if autocast:
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=recompute)
    model = add_adapter(model, case.family, ATTENTION, case.options).train()
    if not autocast:
        for parameter in model.parameters():
            parameter.data = (
                parameter.data.bfloat16() if parameter.requires_grad else parameter.data
            )
    ids = torch.randint(2, case.config.vocab_size, (len(case.split), case.positions))
    mask = torch.ones_like(ids)
    mask[0, -3:] = 0

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss: Tensor = (
                model(input_ids=ids, attention_mask=mask, use_cache=False)
                .last_hidden_state.float()
                .mean()
            )
        loss.backward()  # type: ignore[no-untyped-call]

    return step


class RandomEncoder(HuggingFaceBackbone):
    """A frozen encoder of MiniLM's form with random weights."""

    def __init__(self, layers: int) -> None:
        sizes = {
            "hidden_size": 96,
            "intermediate_size": 192,
            "num_attention_heads": 12,
            "num_hidden_layers": layers,
            "vocab_size": 512,
        }
        shape = BertShape.of(BertConfig(**sizes).to_dict())
        assert shape is not None
        self.network = Bert(shape).requires_grad_(False)
        self.window, self.overlap, self.max_length, self.hidden_size = (
            512,
            0,
            512,
            shape.hidden_size,
        )
        self.prefix, self.suffix, self.pad, self.adapted, self.tokenizer_hash = (
            [START],
            [START],
            0,
            False,
            "",
        )
        self.options = FrozenOptions()


def encoder(case: Case) -> Step:
    """Reading by an encoder."""
    backbone = RandomEncoder(case.config.num_hidden_layers)
    decoder: Any = nn.Identity()
    reader = LiveReader(
        Network(
            backbone,
            decoder,
            ModelSection(backbone=Choice(name="minilm")),
            LabelTable(ids=[], titles=[], train_counts=[]),
        ),
        case.tokens,
        case.hardware,
    )
    return lambda: reader.read(case.rows)


WAYS: dict[str, Callable[[Case], Step]] = {
    "ours": lambda case: ours(replace(case, expand=True)),
    "ours, replayed": lambda case: ours(replace(case, expand=True), replay=True),
    "ours, kept in 4 bits": ours,
    "ours, reading": lambda case: reading(replace(case, expand=True)),
    "plain, autocast, recomputed": partial(plain, autocast=True, recompute=True),
    "plain, autocast": partial(plain, autocast=True, recompute=False),
    "plain, bf16": partial(plain, autocast=False, recompute=False),
}


def count_way(
    shape: str, way: str, documents: int, layers: int | None = None
) -> tuple[Counter[str], Counter[str]]:
    """Calls and views of one way to read or to train a shape (layers: as published)."""
    prepare = encoder if shape == "minilm" else WAYS[way]
    torch.manual_seed(0)
    return count_calls(
        prepare(
            make_case("mistral" if shape == "minilm" else shape, layers or LAYERS[shape], documents)
        )
    )


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.calls", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--shape", choices=list(LAYERS), nargs="+", default=list(LAYERS))
    parser.add_argument("--way", choices=list(WAYS), nargs="+", default=list(WAYS))
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument(
        "--most", type=int, default=0, help="also show the operations that are called most"
    )
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    options = parser.parse_args(arguments)
    found = []
    print(f"{'shape':>10} {'':>28} {'calls':>8} {'views':>8} {'all':>8}")
    for shape in options.shape:
        for way in options.way if shape != "minilm" else ["ours, reading"]:
            calls, views = count_way(shape, way, options.documents)
            print(
                f"{shape:>10} {way:>28} {calls.total():>8} {views.total():>8} "
                f"{calls.total() + views.total():>8}",
                flush=True,
            )
            for name, times in calls.most_common(options.most):
                print(f"{name:>48} {times:>8}")
            found.append(
                {
                    "shape": shape,
                    "way": way,
                    "calls": calls.total(),
                    "views": views.total(),
                    "by_name": dict(calls + views),
                }
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
