"""A poisoned test split changes nothing but what is said of test: no relevance, weight,
calibration, threshold or validation figure.

Two corpora differ in test alone: in the second its documents are in another language and have every
label, and one that nobody else has.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import run_at

POISON = (
    "Potilas on terve ja lähtee kotiin tänään, eikä mitään lääkettä tarvita; seuraava käynti "
    "on vuoden kuluttua. "
)
PLANTED = ("mig", "pretrain-attn", "finetune")
VOICES = (
    "finetune.loss={name: focal-hnm, hard_negatives: 4, random_negatives: 2}",
    "finetune.epochs=2",
)
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "planted network with prototypes, scorers, fusion and calibration": (PLANTED, VOICES),
    "shortlist, stems, labels kept by frequency, thresholds per label": (
        PLANTED,
        (
            *VOICES,
            "finetune.shortlist={name: words, size: 4, frequent: 2}",
            "data.analyser=stems",
            "data.keep_labels=top:8",
            "finetune.tune=per-label",
            "finetune.init=planted",
        ),
    ),
    "shards of words, titles as queries and documents, anchor, random start of the tables": (
        PLANTED,
        (
            *VOICES,
            "data.analyser=lemmas",
            "mig.label_text_weight=0.25",
            "model.label_queries=titles",
            "pretrain-attn.title_documents=true",
            "finetune.head=random",
            "finetune.anchor=0.5",
        ),
    ),
    "language model with a vocabulary of its own": (
        ("pretrain-lm", *PLANTED),
        (
            *VOICES,
            *(
                f"pretrain-lm.{setting}"
                for setting in ("embedding=16", "hidden=16", "layers=1", "epochs=1", "batch=4")
            ),
            "model.backbone={name: awd-lstm, window: 24}",
            "model.decoder={name: label-attention, heads: 2, pool: 8}",
        ),
    ),
    "scorers alone": (("finetune",), ("finetune.network=false",)),
    "validation held out from train": (
        ("finetune",),
        ("finetune.network=false", "data.validation_minimum=10", "data.analyser=auto"),
    ),
}
OF_TEST = {"corpus/splits.json", "corpus/statistics.json"}
OF_THE_RUN = {"run.json", "recipe.yaml", ".lock"}
FLEETING = ("second", "memory", "share_of", "utilisation")  # in the names of times and rates


def write_corpora(folder: Path, *, held_out: bool) -> tuple[Path, Path, Path]:
    """The corpus, the same with a poisoned test split, and the titles of their labels."""
    flags = {
        "dataset": "synthetic-clinic",
        "documents": 140,
        "labels": 14,
        "seed": 3,
        "output": str(folder / "clean.parquet"),
    }
    run_at(folder / "nowhere", "data make", flags={"data make": flags})
    (folder / "clean.evidence.parquet").unlink()  # spans in texts that are replaced
    frame = pl.read_parquet(folder / "clean.parquet")
    if held_out:
        frame = frame.filter(pl.col("split") != "validation")
    frame.write_parquet(folder / "clean.parquet")
    every = [*sorted(frame["labels"].explode().unique().drop_nulls()), "Z99"]
    is_test = pl.col("split") == "test"
    text = (
        pl.when(is_test)
        .then(pl.lit(POISON) + pl.col("doc_id").cast(pl.String))
        .otherwise(pl.col("text"))
    )
    labels = pl.when(is_test).then(pl.lit(every)).otherwise(pl.col("labels"))
    frame.with_columns(text.alias("text"), labels.alias("labels")).write_parquet(
        folder / "poisoned.parquet"
    )
    return folder / "clean.parquet", folder / "poisoned.parquet", folder / "clean.labels.parquet"


def run_chain(
    clinic: Any,
    folder: Path,
    corpus: Path,
    titles: Path,
    stages: tuple[str, ...],
    sets: tuple[str, ...],
) -> Path:
    """All stages up to the evaluation of validation; the folder of the run."""
    clinic.path = folder
    source = [f"data.path={corpus}", "data.dataset=files", f"data.vocabulary={titles}", *sets]
    for stage in stages:
        clinic(stage, *source)
    for target in ("f1", "macro-f1", "recall=0.5"):
        clinic(
            "thresholds",
            *source,
            "thresholds.system=finetune",
            f"thresholds.target=[{target}]",
            "thresholds.bootstrap=20",
            tag=target[:6],
        )
    clinic("predict", *source, "predict.split=validation", "predict.auc=true")
    clinic("eval", *source, "eval.split=validation", "eval.bootstrap=20")
    return folder


def collect(run: Path) -> dict[str, Any]:
    """What a run holds, by file: bytes, of records what they say of results."""
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    named = {str(path.relative_to(run)): path for path in files}
    kept = {
        name: path
        for name, path in named.items()
        if name not in OF_TEST | OF_THE_RUN and not name.startswith("cache/")
    }
    return {name: tell(path) for name, path in kept.items()}


def tell(path: Path) -> Any:
    """The content of a file, without what depends on the clock or on the hash of the whole
    corpus.
    """
    if path.name == "stage.json":
        return keep_results(json.loads(path.read_text())["summary"])
    if path.name == "DONE":  # beside the hashes of its files, a checkpoint has that of the corpus
        return json.loads(path.read_text())["outputs"]
    if path.name == "labels.parquet" and path.parent.name == "corpus":
        return pl.read_parquet(path).drop("test_count").to_dicts()
    if path.name in ("gold.parquet", "documents.parquet"):
        return pl.read_parquet(path).filter(pl.col("split") != "test").to_dicts()
    return path.read_bytes()


def keep_results(value: Any) -> Any:
    """A summary without times and rates, and without what is said of test."""
    if not isinstance(value, dict):
        return value
    return {
        key: keep_results(inner)
        for key, inner in value.items()
        if key != "test" and not any(word in key for word in FLEETING)
    }


@pytest.mark.parametrize("case", CASES)
def test_a_poisoned_test_split_changes_nothing_else(clinic: Any, tmp_path: Path, case: str) -> None:
    stages, sets = CASES[case]
    clean, poisoned, titles = write_corpora(tmp_path, held_out="held out" in case)
    one, other = (
        collect(run_chain(clinic, tmp_path / f"run-{name}", corpus, titles, stages, sets))
        for name, corpus in (("one", clean), ("other", poisoned))
    )
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    folders = {name.split(os.sep)[0] for name in one}
    assert folders >= {
        *stages,
        "corpus",
        "predict",
        "eval",
        "thresholds-f1",
        "thresholds-macro-",
        "thresholds-recall",
    }
    assert {
        "finetune/thresholds.json",
        "finetune/validation.parquet",
        "finetune/scorers.json",
        "eval/metrics.json",
    } <= one.keys()


def test_the_comparison_would_notice(clinic: Any, tmp_path: Path) -> None:
    """One word more in one training document changes relevance, scorers and calibration."""
    stages, sets = CASES["scorers alone"]
    clean, _, titles = write_corpora(tmp_path, held_out=False)
    frame = pl.read_parquet(clean).with_row_index()
    first = frame["split"].to_list().index("train")
    text = (
        pl.when(pl.col("index") == first).then(pl.col("text") + " zebra").otherwise(pl.col("text"))
    )
    frame.with_columns(text.alias("text")).drop("index").write_parquet(tmp_path / "touched.parquet")
    one, other = (
        collect(run_chain(clinic, tmp_path / f"run-{name}", corpus, titles, stages, sets))
        for name, corpus in (("one", clean), ("other", tmp_path / "touched.parquet"))
    )
    assert "finetune/scorers/linear.safetensors" in [
        name for name in one if one[name] != other.get(name)
    ]


SAYS = {
    "documents": r"\b\d+ documents of (test|validation)",
    "labels": r"\b\d+ labels counted",
    "convention": r"\bconvention\b",
    "seeds": r"\bseeds? \d|\bno seed\b",
}


@pytest.fixture
def shown(clinic: Any, tmp_path: Path) -> dict[str, Any]:
    """Every table of figures, by the command that prints it."""
    parents = tmp_path / "parents.csv"
    tables: dict[str, Any] = {
        "mig": clinic("mig"),
        "pretrain-attn": clinic("pretrain-attn"),
        "finetune": clinic("finetune"),
    }
    tables["finetune of scorers"] = clinic("finetune", "finetune.network=false", tag="baseline")
    clinic("finetune", "finetune.network=false", "machine.seed=1", tag="seed1")
    clinic("finetune", "finetune.network=false", "machine.seed=1", tag="baseline-seed1")
    labels = pl.read_parquet(clinic.path / "corpus" / "labels.parquet")["label"]
    pl.DataFrame({"label": labels, "parent": [label[0] for label in labels]}).write_csv(parents)
    few = "eval.bootstrap=20"
    tables["eval"] = clinic("eval", few, f"eval.hierarchy={parents}")
    tables["eval of chosen metrics without intervals"] = clinic(
        "eval", "eval.bootstrap=0", "eval.metric=[P@5, 'R@10[6-10]']", force=True
    )
    tables["eval of another tool by another convention"] = clinic(
        "eval",
        few,
        f"eval.predictions={clinic.path}/predict/predictions.parquet",
        "eval.convention=annif",
        tag="tool",
    )
    both = (
        "significance.systems=[finetune, finetune-baseline]",
        "significance.bootstrap=20",
        "significance.permutations=20",
    )
    tables["significance"] = clinic("significance", *both)
    tables["significance as published"] = clinic(
        "significance", *both, "significance.paper=true", force=True
    )
    tables["significance over seeds"] = clinic(
        "significance", *both, "significance.seeds=2", force=True
    )
    tables["thresholds"] = clinic(
        "thresholds", "thresholds.target=[f1]", "thresholds.measure=test", "thresholds.bootstrap=20"
    )
    tables["diff"] = clinic("diff", "diff.systems=[finetune, finetune-baseline]", "diff.k=3")
    written = clinic.path / "eval-tool" / "per_document.parquet"
    assert all(
        re.search(said, pl.read_parquet_metadata(written)["conditions"]) for said in SAYS.values()
    )
    return {name: result.tables for name, result in tables.items() if name != "mig"}


def test_every_table_of_figures_says_what_it_is_of(shown: dict[str, Any]) -> None:
    titles = {
        (command, table.title): " | ".join(table.notes)
        for command, tables in shown.items()
        for table in tables
    }
    assert len(titles) >= 20
    lacking = {
        place: [what for what, said in SAYS.items() if not re.search(said, notes)]
        for place, notes in titles.items()
    }
    assert {place: missing for place, missing in lacking.items() if missing} == {}
