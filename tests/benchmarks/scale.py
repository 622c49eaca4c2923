"""Millions of documents and labels: a generated corpus goes through `data`, `mig` and `finetune
--no-network`; time and memory of each.

    python -m tests.benchmarks.scale make /tmp/scale --share 0.05
    python -m tests.benchmarks.scale make /tmp/scale --shape amazon-670k
    python -m tests.benchmarks.scale measure /tmp/scale --json FILE [--step check …]

The shape `long` has 2,000,000 documents, 131,073 labels and 8 GB of text; the two others are those
of corpora of the field. Words and labels follow Zipf's law; each label has eight words of its own,
of which each of its documents holds some, so that there is something to find. Documents are written
as they are drawn. Each step is a process of its own, as a user starts it, or one for each of
`--shards`; a peak is the largest resident memory of a process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.data.parquet import write_frames

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
LENGTHS = ((100, 3), (10_000, 6), (1_000_000, 8))  # letters of the words up to each rank
WORDS = 1_000_000
OWN_WORDS, OWN_SHOWN = 8, 4
COMMON = 1_000  # words that are no label's own
QUANTILES = 1 << 24
BATCH = 5_000
ROW_GROUP = 20_000  # documents: 80 MB of text
SCHEMA = {
    "doc_id": pl.String(),
    "text": pl.String(),
    "labels": pl.List(pl.String()),
    "split": pl.String(),
}


@dataclass(frozen=True)
class Size:
    """How large a corpus is."""

    documents: int
    labels: int
    words: int  # of a document
    labels_drawn: float  # of a document, on average, beside those that it surely has


SHAPES = {
    "long": Size(2_000_000, 131_073, 575, 4.2),  # 4,000 bytes
    "amazoncat-13k": Size(1_200_000, 13_330, 200, 4.0),
    "amazon-670k": Size(490_000, 670_091, 75, 3.5),
}


def spell_words(draw: np.random.Generator) -> npt.NDArray[np.object_]:
    """Distinct words by rank; frequent ones are short."""
    found: dict[str, None] = {}
    for last, length in LENGTHS:
        while len(found) < last:
            drawn = LETTERS[draw.integers(0, 26, (last - len(found), length))]
            found |= dict.fromkeys("".join(row) for row in drawn)
    return np.array(list(found), dtype=object)


def invert_zipf(count: int, offset: float) -> npt.NDArray[np.int32]:
    """Ranks by quantile: a uniform place in it is a draw by Zipf's law."""
    shares = np.cumsum(1.0 / (np.arange(count) + offset))
    places = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return np.searchsorted(shares / shares[-1], places).astype(np.int32)


def own_words(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ranks of the words that belong to each label [n, OWN_WORDS]."""
    spread = labels[:, None] * np.int64(2_654_435_761) + np.arange(OWN_WORDS) * np.int64(
        40_503_000_061
    )
    return COMMON + spread % (WORDS - COMMON)


def draw_documents(size: Size, seed: int = 0) -> Iterator[pl.DataFrame]:
    """The corpus, batch after batch; document i surely has label i mod `labels`, so that every
    label occurs.
    """
    draw = np.random.default_rng(seed)
    words, zipf = spell_words(draw), invert_zipf(WORDS, 2.7)
    popular = draw.permutation(size.labels)
    by_rank = invert_zipf(size.labels, 10.0)
    surely = -(
        -size.labels // size.documents
    )  # labels that each document must have, for all to occur
    for first in range(0, size.documents, BATCH):
        rows = np.arange(first, min(first + BATCH, size.documents))
        ranks = zipf[draw.integers(0, QUANTILES, (len(rows), size.words), dtype=np.uint32)]
        extra = draw.poisson(size.labels_drawn, len(rows))
        drawn = np.split(
            popular[by_rank[draw.integers(0, QUANTILES, int(extra.sum()), dtype=np.uint32)]],
            np.cumsum(extra)[:-1],
        )
        texts, labels = [], []
        for row, own, ids in zip(rows.tolist(), drawn, ranks, strict=True):
            numbers = np.unique(
                np.concatenate([(row * surely + np.arange(surely)) % size.labels, own])
            )
            shown = own_words(numbers)[:, row % 2 :: 2][:, :OWN_SHOWN].ravel()[: size.words]
            ids[: len(shown)] = shown
            texts.append(" ".join(words[ids]))
            labels.append([f"L{number:07d}" for number in numbers])
        splits = np.where(rows % 40 == 1, "validation", np.where(rows % 40 == 2, "test", "train"))
        columns = {
            "doc_id": [f"d{row:07d}" for row in rows],
            "text": texts,
            "labels": labels,
            "split": splits,
        }
        yield pl.DataFrame(columns, schema=SCHEMA)


def make(folder: Path, size: Size) -> Path:
    """Write `corpus.parquet`, and say how large it is."""
    path = folder / "corpus.parquet"
    characters = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal characters
        for frame in draw_documents(size):
            characters += int(frame["text"].str.len_bytes().sum())
            yield frame

    write_frames(path, frames(), SCHEMA, {}, row_group=ROW_GROUP)
    print(
        f"{size.documents:,} documents, {size.labels:,} labels, {characters / 1e9:.2f} GB of "
        f"text, {path.stat().st_size / 1e9:.2f} on disk"
    )
    return path


def steps(folder: Path, k: int, shards: int) -> dict[str, dict[str, list[str]]]:
    """The command lines of each step by name; those of a step run at once, as processes of one
    machine.
    """
    corpus = str(folder / "corpus.parquet")
    shares = {f"{n}/{shards}": n for n in range(1, shards + 1)}

    def place(*names: str) -> str:
        return str(folder.joinpath(*names))

    parts = {
        "convert shards": {
            s: ["data", "convert", corpus, place("parts"), "--shard", s, "--force"] for s in shares
        },
        "mig shards": {
            s: ["mig", corpus, "--shard", s, "--run", place("shards", str(n)), "--force"]
            for s, n in shares.items()
        },
    }
    whole = {
        "stats": ["data", "stats", corpus],
        "convert": ["data", "convert", corpus, place("converted.jsonl.gz"), "--force"],
        "check": ["data", "check", corpus],
        "mig": ["mig", corpus, "--run", place("run"), "--k", str(k), "--force"],
        "merge": [
            "mig",
            corpus,
            "--merge",
            place("shards", "*", "mig"),
            "--run",
            place("merged"),
            "--k",
            str(k),
            "--force",
        ],
        "finetune": ["finetune", corpus, "--no-network", "--run", place("scorers"), "--force"],
    }
    order = (
        "stats",
        "convert",
        "check",
        "mig",
        "convert shards",
        "mig shards",
        "merge",
        "finetune",
    )
    return {name: parts[name] if name in parts else {"": whole[name]} for name in order}


def measure_commands(commands: Sequence[Sequence[str]], log: Path) -> list[dict[str, float]]:
    """Wall-clock and processor seconds, and peak memory, of commands that run at once; what
    they print goes to a log.
    """
    start = time.perf_counter()
    with log.open("ab") as stream:
        processes = [
            subprocess.Popen(command, stdout=stream, stderr=stream) for command in commands
        ]
        found = []
        for process in processes:
            _, status, used = os.wait4(process.pid, 0)
            found.append(
                {
                    "code": os.waitstatus_to_exitcode(status),
                    "seconds": time.perf_counter() - start,
                    "processor_seconds": used.ru_utime + used.ru_stime,
                    "peak_gb": used.ru_maxrss * 1024 / 1e9,
                }
            )
    return found


def run(folder: Path, wanted: Sequence[str], k: int, shards: int, target: Path | None) -> None:
    """Measure steps one after another; the file is written after each, so that what was done is
    kept.
    """
    found: dict[str, dict[str, float]] = {}
    known = steps(folder, k, shards)
    for name in wanted or known:
        lines = known[name]
        for line in lines.values():
            print(f"{name}: plant {' '.join(line)}", flush=True)
        figures = measure_commands(
            [[sys.executable, "-m", "plant_cli", *line] for line in lines.values()], folder / "log"
        )
        for share, measured in zip(lines, figures, strict=True):
            found[f"{name} {share}".strip()] = measured
            print("  ".join(f"{key} {value:,.2f}" for key, value in measured.items()), flush=True)
        if target is not None:
            target.write_text(json.dumps(found, indent=2) + "\n")


def main() -> None:
    """Make a corpus, or measure the commands on it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    making, measuring = actions.add_parser("make"), actions.add_parser("measure")
    for action in (making, measuring):
        action.add_argument("folder", type=Path)
    making.add_argument(
        "--share", type=float, default=1.0, help="of the documents; labels are always all"
    )
    making.add_argument("--shape", choices=list(SHAPES), default="long")
    measuring.add_argument("--step", action="append", default=[], help="only these (repeatable)")
    measuring.add_argument("--k", type=int, default=100)
    measuring.add_argument("--shards", type=int, default=2)
    measuring.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "make":
        size = SHAPES[options.shape]
        make(options.folder, replace(size, documents=round(options.share * size.documents)))
    else:
        run(options.folder, options.step, options.k, options.shards, options.json)


if __name__ == "__main__":
    main()
