"""What the project computes, as hashes: two small runs of all commands, in fp32 on one thread of
the processor.

Record again after a change of results that is meant, and say in the commit what changed and why:

    PLANT_CORPORA=DIR python -m tests.golden.fingerprint --write
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import torch
from threadpoolctl import threadpool_info

from plant_cli.data.tensors import read_tensors
from plant_cli.scoring.packed_arrays import unpack_arrays

HERE = Path(__file__).parent
RECORD = HERE / "fingerprint.json"

CORPORA = {"clinic": None, "tibkat-mini": "tibkat-mini"}
"""The recipe beside this module, and its folder in the shared corpora (None: the recipe makes
its own corpus).
"""

FOLDERS = (
    "corpus",
    "mig",
    "pretrain-attn",
    "finetune",
    "predict",
    "eval",
    "finetune-baseline",
    "predict-baseline",
    "eval-baseline",
    "significance",
)
"""Folders of a run in the order in which one builds on another: the first difference is where
to look.
"""

FIGURES = {
    "thresholds.json",
    "metrics.json",
    "intervals.json",
    "significance.json",
    "history.jsonl",
    "scorers.json",
}
"""Files of which only the numbers count; their sentences may be reworded."""

LATER = (
    "label_indices",
    "description",
    "alternatives",
    "parents",
    "F1@5",
    "weighted-F1",
    "subset-accuracy",
    "Hamming-loss",
    "MRR",
)
LATER += ("known_words", "_words.safetensors", "documents.parquet", "marked_words")
"""Columns, metrics and files that were added since the record was made: predictions name the
same labels in `labels`.
"""

METRICS = ("MAP", "nDCG@5", "R@50", "micro-F1", "macro-F1")
SAMPLED = 8
TOLERANCE = 0.02
"""Largest absolute difference of metrics and scores (0 to 1) on another processor or with other
libraries.

Instructions of another width (AVX2 in place of AVX-512) moved figures by at most 0.0008, another
seed by up to 0.08.
"""


def describe_machine() -> dict[str, str]:
    """What must agree for equal bits: the processor, the instructions that torch and OpenBLAS
    use, the versions of libraries.
    """
    versions = {name: version(name) for name in ("torch", "numpy", "scipy", "transformers")}
    kernels = sorted(
        {
            found["architecture"]
            for found in threadpool_info()
            if found["internal_api"] == "openblas"
        }
    )
    return {
        "processor": name_processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "products": ", ".join(kernels),
        **versions,
    }


def name_processor() -> str:
    """The processor's model as Linux tells it; elsewhere the platform's word for it."""
    listing = Path("/proc/cpuinfo")
    if not listing.is_file():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in listing.read_text("utf-8").splitlines())
    facts = {key.strip(): value.strip() for key, _, value in lines}
    return (
        f"{facts.get('model name', platform.machine())}, family "
        f"{facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
    )


def run_recipe(
    name: str, folder: Path, corpora: Path | None = None, settings: Sequence[str] = ()
) -> Path:
    """Run a recipe of this folder from the command line and return its run.

    Args:
        name: one of `CORPORA`.
        folder: where the run is made; the process works in it.
        corpora: the shared corpora, for the recipes that read one.
        settings: what to change in the recipe, such as `machine.seed=1`.

    Raises:
        RuntimeError: if the command fails; holds what it said.
    """
    source = CORPORA[name]
    given = (
        [*settings]
        if source is None or corpora is None
        else [f"data.path={corpora.resolve() / source}", *settings]
    )
    options = [word for setting in given for word in ("--set", setting)]
    command = [
        sys.executable,
        "-m",
        "plant_cli",
        "run",
        str(HERE / f"{name}.yaml"),
        "--run",
        str(folder / name),
        *options,
    ]
    alone = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"exit code {done.returncode} of {' '.join(command)}\n{done.stdout}\n{done.stderr}"
        )
    return folder / name


def take_fingerprint(run: Path) -> dict[str, Any]:
    """Hashes of everything that a finished run computed, and some figures in plain sight for
    other machines.
    """
    files = [
        path
        for folder in FOLDERS
        for path in sorted((run / folder).rglob("*"))
        if not {"checkpoints", *LATER} & {*path.parts}
    ]
    hashes = {
        str(path.relative_to(run)): digest for path in files if (digest := hash_content(path))
    }
    return {"hashes": hashes, "figures": dict(sample_figures(run))}


def hash_content(path: Path) -> str | None:
    """SHA-256 of what a file says, not of how it is packed; None for files that are not results
    (records, options).
    """
    if path.suffix == ".parquet":
        return hash_frame(pl.read_parquet(path).drop(LATER, strict=False))
    if path.suffix == ".safetensors":
        return hash_tensors(read_content(path))
    if path.name in FIGURES:
        return hash_json([keep_numbers(json.loads(line)) for line in read_documents(path)])
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix == ".tsv" else None


def read_content(path: Path) -> Mapping[str, torch.Tensor]:
    """The tensors of a file, unpacked where they are packed."""
    tensors, marks = read_tensors(path, "tensors", "")
    if "arrays" in marks:
        arrays = unpack_arrays(
            {name: tensor.numpy() for name, tensor in tensors.items()}, marks["arrays"]
        )
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    return tensors


def read_documents(path: Path) -> Iterable[str]:
    """The JSON documents of a file: one a line in .jsonl, else the whole file."""
    text = path.read_text("utf-8")
    return text.splitlines() if path.suffix == ".jsonl" else [text]


def hash_frame(frame: pl.DataFrame) -> str:
    """SHA-256 of a table's column names, types and values, in their order."""
    return hash_json(
        [[name, str(kind), frame[name].to_list()] for name, kind in frame.schema.items()]
    )


def hash_tensors(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of the names, types, shapes and bytes of tensors, by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def hash_json(value: object) -> str:
    """SHA-256 of a value as JSON, floats in full."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def keep_numbers(value: Any) -> Any:
    """A JSON value without its texts (wording, names, paths); mappings keep the keys of what
    remains.
    """
    if isinstance(value, Mapping):
        return {
            key: keep_numbers(entry)
            for key, entry in value.items()
            if not isinstance(entry, str) and key not in LATER
        }
    if isinstance(value, list):
        return [keep_numbers(entry) for entry in value if not isinstance(entry, str)]
    return value


def sample_figures(run: Path) -> Iterator[tuple[str, float]]:
    """Metrics of both systems, and the best score of the first documents, rounded to be read."""
    for system in ("", "-baseline"):
        metrics = json.loads((run / f"eval{system}" / "metrics.json").read_text("utf-8"))["metrics"]
        yield from ((f"eval{system} {name}", round(metrics[name]["value"], 6)) for name in METRICS)
        predictions = pl.read_parquet(run / f"predict{system}" / "predictions.parquet").head(
            SAMPLED
        )
        for document, scores in predictions.select("doc_id", "scores").iter_rows():
            yield f"predict{system} {document}", round(max(scores), 6)


def find_differences(
    recorded: Mapping[str, Any], found: Mapping[str, Any], *, same_machine: bool
) -> list[str]:
    """What is not as it was recorded: hashes on the same kind of machine, elsewhere figures beyond
    `TOLERANCE`.

    Files and figures that the record does not know are passed over, so that a run may leave more
    than before.
    """
    if same_machine:
        return [
            name
            for name, digest in recorded["hashes"].items()
            if found["hashes"].get(name) != digest
        ]
    pairs = {
        name: (figure, found["figures"].get(name)) for name, figure in recorded["figures"].items()
    }
    return [
        f"{name}: {old}, now {new}"
        for name, (old, new) in pairs.items()
        if new is None or not abs(new - old) <= TOLERANCE
    ]


def record(corpora: Path, settings: Sequence[str] = ()) -> dict[str, Any]:
    """The whole record: this machine and the fingerprint of every corpus."""
    content: dict[str, Any] = {"machine": describe_machine()}
    for name in CORPORA:
        with tempfile.TemporaryDirectory() as folder:
            content[name] = take_fingerprint(run_recipe(name, Path(folder), corpora, settings))
    return content


def main() -> None:
    """Print the record of the installed code, or write it over the one in the repository."""
    parser = argparse.ArgumentParser(description="Record what the project computes.")
    parser.add_argument(
        "--write", action="store_true", help=f"write {RECORD.name} instead of printing it"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        help="change the recipes, such as machine.seed=1 (repeatable)",
    )
    options = parser.parse_args()
    corpora = os.environ.get("PLANT_CORPORA")
    if not corpora:
        parser.error("PLANT_CORPORA must name the folder of the shared corpora")
    text = json.dumps(record(Path(corpora), options.set), indent=1, ensure_ascii=False) + "\n"
    if options.write:
        RECORD.write_text(text, "utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
