"""Planted errors that `plant audit` should find: of a share of the training labels of a corpus each
is exchanged for a label of another document, or removed.

`python -m tests.benchmarks.audit --corpus DIR [DIR …] [--errors removed] [--json FILE]` counts how
many of the first hundred rows of each kind are planted, and how many of the planted errors are
among as many rows as were planted. What was wrong before counts as no error: precision is at least
that. Beside it stand a random order of the same candidates, and that of the most frequent labels.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

FIRST = 100
KINDS = ("doubtful", "missing")
Pair = tuple[str, str]  # document and label


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Training documents with errors."""

    train: pl.DataFrame
    doubtful: frozenset[Pair]  # labels that were put in
    missing: frozenset[Pair]  # labels that were taken out


def plant_errors(train: pl.DataFrame, share: float, *, exchanged: bool, seed: int = 0) -> Planted:
    """Exchange or remove a share of the labels. An exchanged label is drawn from those that
    documents have, so that frequent ones come more often; no document loses its last one.
    """
    draw = np.random.default_rng(seed)
    labels = {row["doc_id"]: list(row["labels"]) for row in train.iter_rows(named=True)}
    pairs = [(doc_id, label) for doc_id, own in labels.items() for label in own]
    put, taken = set[Pair](), set[Pair]()
    for at in draw.permutation(len(pairs)).tolist():
        doc_id, label = pairs[at]
        own = labels[doc_id]
        if exchanged:
            strange = pairs[int(draw.integers(len(pairs)))][1]
            if strange in own or (doc_id, strange) in taken:
                continue
            own[own.index(label)] = strange
            put.add((doc_id, strange))
        elif len(own) > 1:
            own.remove(label)
        else:
            continue
        taken.add((doc_id, label))
        if len(taken) == round(share * len(pairs)):
            break
    changed = train.with_columns(labels=pl.Series([labels[doc_id] for doc_id in train["doc_id"]]))
    return Planted(train=changed, doubtful=frozenset(put), missing=frozenset(taken))


def measure_order(order: Sequence[Pair], planted: frozenset[Pair]) -> dict[str, float]:
    """Precision of the first hundred pairs, and recall of as many as were planted."""
    right = [pair in planted for pair in order]
    return {
        "precision": sum(right[:FIRST]) / FIRST,
        "recall": sum(right[: len(planted)]) / len(planted),
    }


def order_by_frequency(planted: Planted, kind: str, seed: int = 0) -> list[Pair]:
    """The candidates of a kind, those of the most frequent label first; documents at random."""
    have = {row["doc_id"]: set(row["labels"]) for row in planted.train.iter_rows(named=True)}
    ids = [list(have)[at] for at in np.random.default_rng(seed).permutation(len(have)).tolist()]
    wanted, order = max(FIRST, len(getattr(planted, kind))), list[Pair]()
    for label, _ in Counter(planted.train["labels"].explode().to_list()).most_common():
        order += [(one, label) for one in ids if (label in have[one]) == (kind == "doubtful")]
        if len(order) >= wanted:
            break
    return order


def measure_corpus(corpus: Path, errors: str, share: float) -> dict[str, Any]:
    """Plant errors in the training documents of a corpus, and measure each kind."""
    planted = plant_errors(
        pl.read_parquet(corpus / "train.parquet"), share, exchanged=errors == "exchanged"
    )
    pairs = planted.train["labels"].list.len().sum()
    candidates = {
        "doubtful": pairs,
        "missing": len(planted.train) * planted.train["labels"].explode().n_unique() - pairs,
    }
    measured: dict[str, Any] = {"errors": errors, "planted": len(planted.missing)}
    with tempfile.TemporaryDirectory() as scratch:
        folder, run, sheet = (Path(scratch) / name for name in ("corpus", "run", "sheet.jsonl"))
        folder.mkdir()
        planted.train.write_parquet(folder / "train.parquet")
        for name in ("validation.parquet", "labels.parquet"):
            shutil.copy(corpus / name, folder / name)
        call_plant("finetune", "--no-network", str(folder), "--run", str(run))
        started, limit = time.perf_counter(), max(FIRST, len(planted.missing))
        told = ("--split", "train", "--limit", str(limit), "-O", str(sheet), "--run", str(run))
        call_plant("audit", *told)
        measured["seconds"] = time.perf_counter() - started
        rows = pl.read_ndjson(sheet)
    for kind in KINDS:
        if wrong := getattr(planted, kind):
            found = rows.filter(band=kind).select("doc_id", "label").rows()
            chance = len(wrong) / candidates[kind]
            measured[kind] = {
                "audit": measure_order(found, wrong),
                "frequency": measure_order(order_by_frequency(planted, kind), wrong),
                "random": {"precision": chance, "recall": chance},
            }
    return measured


def call_plant(*arguments: str) -> None:
    """Run a command of the same environment; what it says is shown only if it fails."""
    line = [sys.executable, "-m", "plant_cli", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.audit", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--errors", choices=("exchanged", "removed"), default="exchanged")
    parser.add_argument("--share", type=float, default=0.05, help="of the labels (default: 0.05)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    found = dict[str, Any]()
    for corpus in options.corpus:
        found[corpus.name] = measure_corpus(corpus, options.errors, options.share)
        for kind in KINDS:
            for name, figures in found[corpus.name].get(kind, {}).items():
                shown = ", ".join(f"{what} {100 * value:.1f}" for what, value in figures.items())
                print(f"{corpus.name} {kind} {name}: {shown}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
