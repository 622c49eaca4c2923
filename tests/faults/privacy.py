"""Run commands over a corpus whose documents each hold a number of their own: `python -m
tests.faults.privacy` lists where they come out.

Outputs of commands, files of the run and traces of crashes are searched. What a command is asked to
show is not: the text that `suggest` is given, and the page of `report`, which quotes evidence.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from plant_cli.api import DataSection, DatasetSpec
from plant_cli.data.documents import read_frames, tidy
from plant_cli.registry import installed
from tests.faults.campaign.commands import RECIPE
from tests.faults.processes import Ending, preload, run_command

SECRET = re.compile(
    r"secretum 77\d{5}"
)  # words are kept, also those with digits; a long number is none
DATASET = "{name: synthetic-clinic, documents: 100, labels: 12, seed: 3}"
SHOWN = ("report", "corpora")  # what a command was asked to show, or to write
LINES = (
    "data check ../corpora/corpus.parquet",
    "data stats ../corpora/corpus.parquet",
    "data drift ../corpora/corpus.parquet ../corpora/corpus.parquet",
    "data convert ../corpora/corpus.parquet ../corpora/corpus.jsonl",
    "data split ../corpora/corpus.parquet -O ../corpora/again.parquet",
    "recipe check ../recipe.yaml",
    "plan ../recipe.yaml",
    "run ../recipe.yaml --run .",
    "run ../recipe.yaml --run .",
    "mig show G01.3 --run .",
    "mig edit G01.3 --deny inflammatory --run .",
    "suggest --text fever --run .",
    "diff finetune finetune-baseline --run . --force",
    "export ../export --run .",
    "verify --recompute --run .",
    "report --run . -O ../report",
    "finetune --recipe ../recipe.yaml --run . --tag wild --set finetune.rate_decoder=1e30",
    "mig ../corpora/cut.csv --run ../other",
    "mig ../corpora/cut.jsonl --run ../other",
    "mig ../corpora/cut.parquet --run ../other",
    "eval --predictions ../corpora/corpus.parquet --run . --tag foreign",
    "doctor",
    "plugins",
)
FAILING = (
    "export",
    "finetune",
    "eval",
    "mig ../corpora/cut.csv",
    "mig ../corpora/cut.parquet",
)  # beginnings of lines


def write_corpus(place: Path) -> None:
    """The made-up clinic with a secret word in every document, and files of it that are damaged."""
    spec = installed().find(DatasetSpec, "synthetic-clinic")
    dataset = spec.load(DataSection(), spec.options(documents=100, labels=12, seed=3))
    frames = (
        tidy(frame).with_columns(split=pl.lit(name)) for name, frame in read_frames(dataset).items()
    )
    frame = pl.concat(frames).with_row_index("number")
    texts = pl.concat_str(
        pl.col("text"),
        pl.lit(" secretum "),
        (7700000 + pl.col("number").cast(pl.Int64)).cast(pl.String),
        pl.lit(" patientis."),
    )
    frame = frame.with_columns(text=texts).drop("number")
    frame.write_parquet(place / "corpus.parquet")
    flat = frame.with_columns(pl.col("labels").list.join("|"))
    for name, content in {
        "cut.csv": flat.write_csv().encode()[:3000] + b'"\xff,"',
        "cut.jsonl": frame.write_ndjson().encode()[:3000] + b"\xff{",
        "cut.parquet": (place / "corpus.parquet").read_bytes()[:3000],
    }.items():
        (place / name).write_bytes(content)


def _do_apart(work: Callable[[], None]) -> None:
    """Do something in a process of its own: polars starts threads, and what is forked
    afterwards hangs.
    """
    if (process := os.fork()) == 0:
        work()
        os._exit(0)
    os.waitpid(process, 0)


def find_secrets(place: Path) -> Iterator[str]:
    """Files below a folder that hold a secret word, as bytes or in a cell."""
    for path in sorted(place.rglob("*")):
        if not path.is_file() or path.relative_to(place).parts[0] in SHOWN:
            continue
        content = path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            content += json.dumps(pl.read_parquet(path, glob=False).to_dicts(), default=str)
        if found := SECRET.search(content):
            yield f"{path.relative_to(place)}: {found[0]}"


def run_all(place: Path) -> Iterator[tuple[str, Ending]]:
    """Run the lines one after the other."""
    (run := place / "run").mkdir()
    (place / "corpora").mkdir()
    _do_apart(lambda: write_corpus(place / "corpora"))
    (place / "recipe.yaml").write_text(
        RECIPE.replace(f"{{dataset: {DATASET}}}", "{path: ../corpora/corpus.parquet}")
    )
    for line in LINES:
        yield line, run_command(shlex.split(line), run)


def main() -> int:
    """Say where secret words come out, as JSON; leave with 1 if they do."""
    preload()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "temporary").mkdir()
        tempfile.tempdir = str(place / "temporary")  # traces of crashes go there
        endings = dict(run_all(place))
        told = [
            f"{line}: {ending.output}"
            for line, ending in endings.items()
            if SECRET.search(ending.output)
        ]
        codes = {line: ending.code for line, ending in endings.items()}
        print(
            json.dumps({"codes": codes, "told": told, "kept": list(find_secrets(place))}, indent=1)
        )
        tempfile.tempdir = None
        return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
