"""Where the time of both training stages goes: processor seconds of each part.

`python -m tests.benchmarks.stages --corpus DIR [--documents N] [--set KEY=VALUE …] [--json FILE]` runs `mig`, `pretrain-attn` and
`finetune` in one process and measures, around the functions named in `PARTS`, the time that is spent in them and not in another part.
The backward pass is one part: what it computes of attention and loss cannot be told apart from outside.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from plant_cli.main import build
from plant_cli.registry import installed

STAGES = ("pretrain-attn", "finetune")
PARTS = {
    "plant_cli.training.materials.tokenize": "tokenising",
    "plant_cli.network.state_cache._fill": "encoder reads, once",
    "plant_cli.network.reading.LiveReader.read": "encoder reads, in training",
    "plant_cli.network.state_cache.CachedReader.read": "hidden states from the cache",
    "plant_cli.training.planting.Planter.__init__": "words of documents",
    "plant_cli.training.planting.Planter.choose_items": "lists",
    "plant_cli.training.planting.Planter.score_words": "scores of words",
    "plant_cli.training.planting.Planter.choose_labels": "lists",
    "plant_decoders.label_attention.LabelAttention.rank": "attention, forward",
    "plant_decoders.label_attention.LabelAttention.rank_pairs": "attention, forward",
    "plant_decoders.label_attention.LabelAttention.forward": "attention, forward",
    "plant_decoders.label_attention.LabelAttention.score_pairs": "attention, forward",
    "plant_decoders.label_attention.LabelAttention.gather": "prototypes",
    "plant_cli.training.prototypes.Prototypes.choose_sharpness": "prototypes",
    "plant_losses.label_losses.Focal.select": "loss",
    "plant_losses.label_losses.Focal.__call__": "loss",
    "plant_losses.rank_losses.lambda_loss": "loss",
    "plant_cli.training.strategies.DataParallel.backward": "backward",
    "plant_cli.training.strategies.DataParallel.step": "optimiser",
    "plant_cli.training.stage1.AttentionMeasure.__call__": "validation",
    "plant_cli.training.validation.Validation.__call__": "validation",
    "plant_cli.training.validation.Validation.run": "validation",
    "plant_cli.training.stage2.measure_recall": "validation",
    "plant_cli.training.stage2.starts_sparse": "validation",
    "plant_cli.training.shortlisting.propose": "shortlist",
    "plant_cli.training.stage2.fit_beside": "scorers",
    "plant_cli.training.checkpointing.save_checkpoint": "checkpoints",
    "plant_cli.training.stage1.measure_throughput": "speed measured",
    "plant_cli.training.stage2.measure_throughput": "speed measured",
}
WHOLE = ("validation", "prototypes", "speed measured")
"""Parts that keep the time of the parts within them: what validation scores is validation's."""


class Clock:
    """Processor time by part; time within a part of `WHOLE` stays with it, else a part within another one has its own."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.open = ["other"]
        self.since = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        self.seconds[self.open[-1]] += now - self.since
        self.since = now

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """The time of a part."""
        self._turn()
        self.open.append(self.open[-1] if self.open[-1] in WHOLE else part)
        try:
            yield
        finally:
            self._turn()
            self.open.pop()

    def read(self) -> dict[str, float]:
        """Seconds since the last time by part, the longest first."""
        self._turn()
        found = dict(self.seconds.most_common())
        self.seconds.clear()
        return found


def timed(function: Callable[..., Any], clock: Clock, part: str) -> Callable[..., Any]:
    """The function, timed."""

    @wraps(function)
    def around(*given: Any, **named: Any) -> Any:
        with clock.within(part):
            return function(*given, **named)

    return around


@contextmanager
def watching(clock: Clock) -> Iterator[None]:
    """All of `PARTS` are timed."""
    with ExitStack() as stack:
        for path, part in PARTS.items():
            owner, name = _find(path)
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name), clock, part)))
        yield


def _find(path: str) -> tuple[Any, str]:
    holder, name = path.rsplit(".", 1)
    try:
        return importlib.import_module(holder), name
    except ModuleNotFoundError:
        module, owner = holder.rsplit(".", 1)
        return getattr(importlib.import_module(module), owner), name


def reduce_corpus(folder: Path, documents: int | None, scratch: Path) -> Path:
    """The folder, or a copy of it with the first training documents alone."""
    if documents is None:
        return folder
    copy = scratch / "corpus"
    shutil.copytree(folder, copy)
    pl.read_parquet(copy / "train.parquet").head(documents).write_parquet(copy / "train.parquet")
    return copy


def profile(options: argparse.Namespace) -> dict[str, Any]:
    """Processor seconds by part and the figures of each stage."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        run = options.run or Path(scratch) / "run"
        corpus = reduce_corpus(options.corpus, options.documents, Path(scratch))
        given = [part for pair in (f"data.path={corpus}", *options.set) for part in ("--set", pair)]
        if not (run / "mig").exists():
            _start("mig", run, given)
        clock = Clock()
        stack.enter_context(watching(clock))
        for stage in options.stage:
            clock.read()
            _start(stage, run, [*given, "--force"])
            summary = json.loads((run / stage / "stage.json").read_text("utf-8"))
            found[stage] = {"seconds": clock.read(), "figures": summary["summary"]}
            _show(stage, found[stage])
    return found


def _start(stage: str, run: Path, given: Sequence[str]) -> None:
    build(installed())([stage, "--run", str(run), "--quiet", *given], prog_name="plant", standalone_mode=False)


def _show(stage: str, found: dict[str, Any]) -> None:
    seconds, figures = found["seconds"], found["figures"]
    total = sum(seconds.values())
    print(f"\n{stage}: {total:.1f} processor seconds, {figures['epochs']} epochs")
    for part, spent in seconds.items():
        if spent >= 0.001 * total:
            print(f"  {part:32}{spent:9.1f} s{100 * spent / total:7.1f}%")
    shown = {name: value for name, value in figures.items() if isinstance(value, float) and "_" not in name}
    print("  " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items()), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="a folder of train, validation and test")
    parser.add_argument("--documents", type=int, help="training documents (default: all)")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="options of the run")
    parser.add_argument("--stage", choices=STAGES, nargs="+", default=list(STAGES))
    parser.add_argument("--run", type=Path, help="run folder that is kept, with the encoder's readings (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    found = profile(options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
