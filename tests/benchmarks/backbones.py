"""Both stages on language models of published sizes, random weights in 4 bits with adapters: ours
beside the loop a user would write.

`python -m tests.benchmarks.backbones --json FILE` needs a GPU; `--scale small` runs the same code
on a processor in about a minute. `reading` is the frozen model's pass over a batch, which stage 1
does once; `planting` is a step of stage 1 on the states it keeps; `scoring` finds the 100 best
labels of each document from kept states; `ours` is a step of stage 2 with adapter and label
attention, `started` the same without CUDA graphs; `reference` is the same step with transformers,
peft and PLM-CA's dense label attention. A step's `share` is the share of the rate of one large
matrix product that its own products, recomputed ones included, reach; `bound_seconds` is the time
of ours at that rate. Memory is all that the device holds (of a processor: that the process has held
so far).
"""

from __future__ import annotations

import argparse
import gc
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from plant_backbones.profile import CausalOptions
from plant_backbones.quantization import add_adapter
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_losses import FocalOptions, LambdaOptions
from plant_losses.label_losses import Focal
from plant_losses.rank_losses import build_lambda
from plant_network.assembly import Network
from plant_network.hardware import Hardware, choose_hardware
from plant_network.network_scores import score_documents
from plant_network.planting import Planter, Planting
from plant_network.reading import LiveReader, lengths
from plant_network.stage2 import FineTuning
from plant_network.state_cache import STATES, CachedReader
from plant_network.throughput import count_operations, matrix_rate, time_fastest
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import (
    DecoderShape,
    MachineSection,
    ModelSection,
    PlantError,
    Reading,
    SilentReporter,
    Split,
    TokenBatch,
)
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.relevance.relevance_table import RelevanceTable
from plant_cli.runs.machine import describe_device, peak_memory_gb
from plant_cli.scoring.top_labels import Scoring
from tests.benchmarks.contenders import Figures
from tests.benchmarks.random_models import (
    START,
    TARGETS,
    RandomBackbone,
    configuration,
    random_network,
)
from tests.benchmarks.training import POSITIVES, PlmCa

SCORED_BATCHES = 8  # so that the next one can be read while a batch is scored
WORDS, RELEVANT = 20_000, 1000  # vocabulary, and relevant words of each label
SCALES = {
    "real": {"labels": 8929, "documents": 8, "positions": [1024, 4096], "device": "cuda"},
    "small": {"labels": 40, "documents": 2, "positions": [32], "device": "cpu"},
}
Step = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One family at one length, and the batch that all its contenders read.

    Args:
        config: of the model.
        positions: of the longest document, the token that begins a text included.
        tokens, split: documents that fill between a half and all of the positions, a word a token.
    """

    family: str
    config: Any
    positions: int
    labels: int
    hardware: Hardware
    tokens: TokenBatch
    split: Split
    expand: bool | None = None  # whether weights are kept in bf16
    graphs: bool = True  # whether a card may replay passes

    @property
    def rows(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.arange(len(self.split))

    @property
    def options(self) -> CausalOptions:
        return CausalOptions(model=self.family, expand_weights=self.expand, cuda_graphs=self.graphs)

    def repeat_documents(self, times: int) -> Case:
        """The same documents many times, for a contender that reads their tokens alone."""
        tokens = self.tokens
        return replace(
            self,
            tokens=TokenBatch(
                ids=[*tokens.ids] * times,
                spans=[*tokens.spans] * times,
                dropped=[*tokens.dropped] * times,
            ),
        )

    def decoder(self) -> LabelAttention:
        shape = DecoderShape(hidden=self.config.hidden_size, labels=self.labels)
        return LabelAttention(
            LabelAttentionOptions(heads=8, pool=min(128, shape.hidden)), shape
        ).to(self.hardware.device)

    def network(self, decoder: LabelAttention) -> Network:
        backbone = RandomBackbone(
            self.family, self.config, self.options, self.hardware.device, self.positions
        )
        index = LabelTable(
            ids=[f"{i:07d}" for i in range(self.labels)],
            titles=[None] * self.labels,
            train_counts=[1] * self.labels,
        )
        return Network(backbone, decoder, ModelSection(backbone=self.family), index)


def draw_case(family: str, positions: int, options: argparse.Namespace, hardware: Hardware) -> Case:
    """The case's documents, drawn alike whatever the family."""
    draw = np.random.default_rng(0)
    config = configuration(family, small=options.scale == "small")
    sizes = np.linspace(positions // 2, positions - 1, options.documents).astype(int)
    vocabulary = vocabulary_of(WORDS)
    width = len(vocabulary[0]) + 1
    starts = [width * np.arange(size, dtype=np.int32) for size in sizes]
    tokens = TokenBatch(
        ids=[draw.integers(START + 1, config.vocab_size, size, dtype=np.int32) for size in sizes],
        spans=[np.stack([start, start + width - 1], axis=1) for start in starts],
        dropped=[0] * len(sizes),
    )
    gold = np.zeros((len(sizes), options.labels), dtype=np.int64)
    for row in gold:
        row[draw.choice(options.labels, POSITIVES, replace=False)] = 1
    split = Split(
        name="train",
        doc_ids=[str(row) for row in range(len(sizes))],
        texts=[" ".join(vocabulary[i] for i in draw.integers(WORDS, size=size)) for size in sizes],
        gold=csr_array(gold),
        unseen=csr_array((len(sizes), 0), dtype=np.int64),
    )
    return Case(
        family=family,
        config=config,
        positions=positions,
        labels=options.labels,
        hardware=hardware,
        tokens=tokens,
        split=split,
    )


def vocabulary_of(size: int) -> tuple[str, ...]:
    """Made-up words of equal length."""
    return tuple(map("".join, islice(product("abcdefghijklmnopqrst", repeat=5), size)))


def relevance_of(labels: int) -> RelevanceTable:
    """As many relevant words for each label: neighbours in the vocabulary, from a random place
    on.
    """
    draw = np.random.default_rng(1)
    columns = (
        (draw.integers(WORDS - RELEVANT, size=(labels, 1)) + np.arange(RELEVANT))
        .astype(np.int32)
        .ravel()
    )
    relevance = draw.random(len(columns), dtype=np.float32)
    matrix = csr_array(
        (relevance, columns, RELEVANT * np.arange(labels + 1)), shape=(labels, WORDS)
    )
    return RelevanceTable(words=vocabulary_of(WORDS), matrix=matrix)


def reading(case: Case) -> Step:
    network = case.network(case.decoder())
    network.freeze_backbone()
    reader = LiveReader(network, case.tokens, case.hardware)
    return lambda: reader.read(case.rows)


def planting(case: Case) -> Step:
    decoder = case.decoder()
    sizes = torch.from_numpy(lengths(case.tokens)).to(case.hardware.device)
    mask = torch.arange(int(sizes.max()), device=sizes.device) < sizes.unsqueeze(1)
    kept = Reading.of(
        torch.randn(
            *mask.shape, case.config.hidden_size, device=sizes.device, dtype=case.hardware.dtype
        ),
        mask,
    )
    words = number_words(map(PLAIN.spell, case.split.texts))
    material: Any = SimpleNamespace(
        split=case.split, reader=SimpleNamespace(tokens=case.tokens), words=words, analyser=PLAIN
    )
    planter = Planter(relevance_of(case.labels), material, contrast=64, labels_per_document=64)
    network: Any = SimpleNamespace(decoder=decoder)  # the backbone has done its work
    reader: Any = SimpleNamespace(read=lambda rows: kept)
    step = Planting(network, reader, planter, build_lambda(LambdaOptions()), case.hardware)
    return training(
        list(decoder.parameter_roles()["attention"]), lambda: step(case.rows, epoch=0, seed=0)[0]
    )


def scoring(case: Case) -> Step:
    network = case.network(case.decoder())
    network.freeze_backbone()
    folder = TemporaryDirectory()
    draw = np.random.default_rng(2)
    kept = draw.standard_normal(
        (int(lengths(case.tokens).sum()), case.config.hidden_size), dtype=np.float32
    )
    stored = torch.from_numpy(kept).to(case.hardware.dtype)
    (Path(folder.name) / STATES).write_bytes(
        (stored.view(torch.int16) if stored.dtype == torch.bfloat16 else stored).numpy().tobytes()
    )
    reader = CachedReader(Path(folder.name), LiveReader(network, case.tokens, case.hardware), None)
    asked = Scoring(
        name="documents", k=100, batch=len(case.tokens) // SCORED_BATCHES, reporter=SilentReporter()
    )

    def step() -> object:
        assert folder.name
        return score_documents(network, reader, case.hardware, asked)

    return step


def ours(case: Case) -> Step:
    network = case.network(case.decoder()).train()
    reader = LiveReader(network, case.tokens, case.hardware)
    step = FineTuning(network, reader, case.split, Focal(FocalOptions()), case.hardware)
    return training(
        [p for p in network.parameters() if p.requires_grad],
        lambda: step(case.rows, epoch=0, seed=0)[0],
    )


def reference(case: Case) -> Step:
    from peft import prepare_model_for_kbit_training

    device = case.hardware.device
    model = prepare_model_for_kbit_training(random_network(case.config, case.options, device))
    model = add_adapter(model, case.family, TARGETS[case.family], case.options).train()
    head = PlmCa(case.labels, case.config.hidden_size).to(device)
    ids = [torch.tensor([START, *document.tolist()]) for document in case.tokens.ids]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True).to(device)
    mask = nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in ids], batch_first=True).to(
        device
    )
    targets = torch.from_numpy(case.split.gold.toarray()).float().to(device)

    def loss() -> Tensor:
        with case.hardware.autocast():
            hidden = model(input_ids=padded, attention_mask=mask, use_cache=False).last_hidden_state
            return functional.binary_cross_entropy_with_logits(
                head(hidden, mask.bool()).float(), targets
            )

    return training([*head.parameters(), *(p for p in model.parameters() if p.requires_grad)], loss)


def training(parameters: list[nn.Parameter], loss: Callable[[], Tensor]) -> Step:
    """A whole step: forward, backward, clipping, AdamW."""
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> None:
        loss().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


DEFAULT: dict[str, Callable[[Case], Step]] = {
    "reading": reading,
    "planting": planting,
    "ours": ours,
    "reference": reference,
}
CONTENDERS = {
    **DEFAULT,
    "started": lambda case: ours(replace(case, graphs=False)),
    "scoring": scoring,
}


def measure(case: Case, prepare: Callable[[Case], Step], repeats: int, rate: float) -> Figures:
    """Seconds, documents and tokens a second, peak memory and share of the matrix rate."""
    torch.manual_seed(0)
    step = prepare(case)
    operations = count_products(step)
    gpu = case.hardware.device.type == "cuda"
    if gpu:
        torch.cuda.reset_peak_memory_stats(case.hardware.device)
    with patch("plant_network.replays.USES", 2):  # passes are captured in the first repeats
        seconds = time_fastest(step, case.hardware.device, repeats)
    return {
        "seconds": seconds,
        "documents_per_second": len(case.tokens) / seconds,
        "tokens_per_second": float(lengths(case.tokens).sum()) / seconds,
        "peak_gb": torch.cuda.max_memory_allocated(case.hardware.device) / 1e9
        if gpu
        else peak_memory_gb(),
        "share": operations / seconds / rate,
    }


def count_products(step: Step) -> int:
    """Additions and multiplications of a step's matrix products, 4-bit ones and recomputed ones
    included.
    """
    import bitsandbytes  # noqa: F401  (registers its products)

    def quantised(
        read: Sequence[int],
        packed: Sequence[int],
        weight: Sequence[int],
        *rest: object,
        **more: object,
    ) -> int:
        return 2 * math.prod(read) * weight[0]

    with patch(
        "plant_decoders.attention.uses_triton", return_value=False
    ):  # a kernel of our own cannot be looked into
        return count_operations(step, {torch.ops.bitsandbytes.gemm_4bit: quantised})


def run_cases(
    options: argparse.Namespace, hardware: Hardware, rate: float
) -> Iterator[dict[str, Any]]:
    """The figures of each case, printed as they come; what does not fit the device's memory is
    left out.
    """
    columns = ("family", "T", "", "seconds", "documents/s", "tokens/s", "peak GB", "share of rate")
    print("".join(f"{name:>14}" for name in columns))
    for family, positions in product(options.family, options.positions):
        case = draw_case(family, positions, options, hardware)
        found: dict[str, Any] = {
            "family": family,
            "positions": positions,
            "machine": describe_device()["device"],
        }
        for name, prepare in ((name, CONTENDERS[name]) for name in options.contenders):
            try:
                figures = measure(
                    case if name != "scoring" else case.repeat_documents(SCORED_BATCHES),
                    prepare,
                    options.repeats,
                    rate,
                )
            except torch.OutOfMemoryError:
                print(f"{family:>14}{positions:>14}{name:>14}{'out of memory':>14}")
                continue
            finally:
                gc.collect()
                torch.cuda.empty_cache()
            print(
                f"{family:>14}{positions:>14}{name:>14}"
                + "".join(f"{value:>14.3f}" for value in figures.values()),
                flush=True,
            )
            found |= {
                key if name == "ours" else f"{name}_{key}": value for key, value in figures.items()
            }
            if name == "ours":
                found["bound_seconds"] = figures["share"] * figures["seconds"]
        yield found


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.backbones", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--scale",
        choices=list(SCALES),
        default="real",
        help="published sizes, or small ones for a processor",
    )
    parser.add_argument("--family", choices=list(TARGETS), nargs="+", default=list(TARGETS))
    parser.add_argument("--positions", type=int, nargs="+")
    parser.add_argument("--labels", type=int)
    parser.add_argument("--documents", type=int, help="documents of a step")
    parser.add_argument("--device")
    parser.add_argument("--contenders", choices=list(CONTENDERS), nargs="+", default=list(DEFAULT))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    for name, value in SCALES[options.scale].items():
        setattr(options, name, getattr(options, name) or value)
    try:
        hardware = choose_hardware(MachineSection(device=options.device))
    except PlantError as error:
        raise SystemExit(str(error)) from error
    rate = matrix_rate(hardware.device, hardware.dtype, repeats=10)
    print(f"{describe_device()['device']}: {rate / 1e12:.2f} TFLOP/s in {hardware.dtype}")
    cases = list(run_cases(options, hardware, rate))
    if options.json:
        sizes = {name: value for name, value in vars(options).items() if name != "json"}
        options.json.write_text(
            json.dumps({"cases": cases, "matrix_tflops": rate / 1e12, "sizes": sizes}, indent=2)
            + "\n"
        )


if __name__ == "__main__":
    main()
