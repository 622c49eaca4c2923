"""Annif's ensemble of TF-IDF, MLLM and Omikuji, as its tutorial puts it together, trained and asked
by its own commands.

Annif is not a requirement: its command is looked for in the path. Weights are 1 : 2 : 3, as Annif's
authors used them. MLLM learns from a part of train, because it matches words of titles and needs
few documents; it is told the titles of all labels of the table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from plant_cli.api import Corpus, Split
from plant_cli.data.languages import share_languages
from tests.benchmarks.fusions import KEPT, Scored

COMMAND = "annif"
STEMMERS = {"en": "english", "es": "spanish", "de": "german", "fi": "finnish"}
FOR_TITLES = 1_000  # training documents that MLLM learns from
PROJECT = """[{backend}]
name={backend}
language={language}
backend={backend}
analyzer={analyzer}
vocab=labels
limit={limit}
{settings}
"""
BACKENDS = {
    "tfidf": "",
    "mllm": "",
    "omikuji": "cluster_balanced=False\ncluster_k=100\nmax_depth=3\n",  # Bonsai-like
    "ensemble": "sources=tfidf:1,mllm:2,omikuji:3\n",
}


def is_installed() -> bool:
    """Whether the command is in the path."""
    return shutil.which(COMMAND) is not None


def train_and_ask(corpus: Corpus, asked: Split, folder: Path) -> tuple[Scored, dict[str, float]]:
    """Ranked labels of the asked documents; seconds, processor seconds and largest memory (GB)
    of the commands.
    """
    train = corpus.split("train")
    language = next((code for code in share_languages(train.texts) if code in STEMMERS), "en")
    common = {"language": language, "analyzer": f"snowball({STEMMERS[language]})", "limit": KEPT}
    projects = (
        PROJECT.format(backend=name, settings=settings, **common)
        for name, settings in BACKENDS.items()
    )
    (folder / "projects.cfg").write_text("".join(projects), "utf-8")
    titles = [
        _one_line(title or name)
        for name, title in zip(corpus.labels.ids, corpus.labels.titles, strict=True)
    ]
    _write(
        folder / "labels.tsv",
        (f"<{_address(label)}>\t{title}" for label, title in enumerate(titles)),
    )
    _write(folder / "train.tsv", _list_documents(train, range(len(train))))
    _write(
        folder / "part.tsv",
        _list_documents(train, range(0, len(train), -(-len(train) // FOR_TITLES))),
    )
    _write(folder / "asked.jsonl", (json.dumps({"text": text}) for text in asked.texts))
    steps = [
        ["load-vocab", "-L", language, "labels", "labels.tsv"],
        ["train", "tfidf", "train.tsv"],
        ["train", "omikuji", "train.tsv"],
        ["train", "mllm", "part.tsv"],
        ["index", "-l", str(KEPT), "ensemble", "asked.jsonl"],
    ]
    began = time.perf_counter()
    used = [_run(folder, step) for step in steps]
    spent = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": sum(seconds for seconds, _ in used),
        "peak_gb": max(memory for _, memory in used),
    }
    return _read_lists(folder / "asked.annif.jsonl"), spent


def _address(label: int) -> str:
    return f"http://labels.example/{label}"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _list_documents(split: Split, rows: Iterable[int]) -> Iterable[str]:
    for row in rows:
        labels = split.gold.indices[split.gold.indptr[row] : split.gold.indptr[row + 1]].tolist()
        if labels:
            yield (
                _one_line(split.texts[row])
                + "\t"
                + " ".join(f"<{_address(label)}>" for label in labels)
            )


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def _run(folder: Path, step: Sequence[str]) -> tuple[float, float]:
    """Processor seconds and peak memory (GB) of a command."""
    environment = {**os.environ, "ANNIF_PROJECTS": "projects.cfg"}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [COMMAND, *step], cwd=folder, env=environment, stdout=log, stderr=log
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(
            f"annif {' '.join(step)} "
            f"failed:\n{(folder / 'log').read_text('utf-8', 'replace')[-2000:]}"
        )
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def _read_lists(path: Path) -> Scored:
    results = (json.loads(line)["results"] for line in path.read_text("utf-8").splitlines())
    return [
        [(int(one["uri"].rsplit("/", 1)[1]), float(one["score"])) for one in row] for row in results
    ]
