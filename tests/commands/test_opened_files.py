"""How often a command opens its corpus: one sample of it is read once, for all formats."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

MOST = 4
COUNT = """
import sys
corpus, *sys.argv[1:] = sys.argv[1:]
opened = []
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(corpus):
        opened.append(arguments[0])
sys.addaudithook(note)
from plant_cli.main import main
try:
    main()
finally:
    print(len(opened), file=sys.stderr)
"""


@pytest.fixture(scope="module", params=["corpus.csv", "corpus.jsonl"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in a folder of its own, not just written."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("opened") / request.param
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    labels = [draw.sample(names, draw.randint(1, 3)) for _ in range(120)]
    texts = [" ".join(draw.choices(names, k=8) + chosen * 3) for chosen in labels]
    frame = pl.DataFrame({"text": texts, "labels": [";".join(chosen) for chosen in labels]})
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_ndjson(path)
    os.utime(path, (1e9, 1e9))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("data", "check"),
        ("data", "stats"),
        ("mig", "--run", "mig"),
        pytest.param(("train", "--run", "train"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_corpus_is_opened_four_times_at_most(corpus: Path, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, corpus.name, *command, corpus.name],
        cwd=corpus.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 1 <= json.loads(done.stderr.splitlines()[-1]) <= MOST
