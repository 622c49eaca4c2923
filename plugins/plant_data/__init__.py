"""`plant data`: make, describe, split, convert, check and compare corpora, and what is known of
published ones. None of these needs a run.

`corpora` holds the short actions, `data_check` and `data_drift` one each; `near_duplicates` finds
documents whose texts are nearly equal. What is read, checked and repaired lies in the core, since
training does it, too.

It needs no extra. Of the core it uses `data`, and forecasts of training (`scoring`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import field_validator

from plant_cli.api import Choice, Options, StageSpec, choice, hookimpl, option
from plant_cli.api.options import everyday
from plant_cli.data.shares import SHARE_PATTERN, require_share

action = partial(StageSpec, writes=False, needs_run=False, group="Corpus", sections=("data",))


class OutputOptions(Options):
    """Where a corpus is written."""

    output: str = option(
        help="A table (.parquet, .jsonl, .csv, .tsv) with splits, or a folder.",
        short="-O",
        min_length=1,
        value="FILE",
    )


class MakeOptions(OutputOptions):
    """Which generator runs, and how large its corpus is."""

    dataset: str = option(help="A dataset plugin that generates a corpus.", argument=True)
    documents: int | None = everyday(
        None, "Documents to generate (default: the generator's).", ge=1
    )
    labels: int | None = everyday(None, "Labels to generate (default: the generator's).", ge=1)
    seed: int | None = everyday(
        None, "Equal seeds give equal corpora (default: the generator's).", ge=0
    )


class SplitOptions(OutputOptions):
    """How large the splits are."""

    test: float = everyday(0.15, "Share of the documents for test.", ge=0, lt=1)
    validation: float = everyday(0.05, "Share of the documents for validation.", ge=0, lt=1)
    seed: int = option(0, "Equal seeds give equal splits.", ge=0)


class ConvertOptions(Options):
    """Which corpus, and where it is written."""

    path: str = option(help="The corpus: a table, or a folder of splits.", argument=True)
    output: str = option(
        help="A table such as data.parquet, .jsonl, .csv or .tsv (.gz, .zst), or a folder.",
        argument=True,
        min_length=1,
    )
    to: str | None = everyday(
        None,
        "The format to write, by the name of its dataset plugin (default: tables, as OUTPUT is "
        "named).",
    )
    compression: Literal["none", "gz", "zst"] = option(
        "none", "How text files of the format are compressed."
    )
    shard: str | None = option(
        None,
        "Only this share of the documents, such as 2/4; all together make OUTPUT.",
        pattern=SHARE_PATTERN,
    )

    _is_a_share = field_validator("shard")(require_share)


class CheckOptions(Options):
    """What is compared, what counts as failure, and where a cleaned copy goes."""

    fail_on_warning: bool = everyday(
        False, "Exit with code 4 also if there is only a warning; see also --strict."
    )
    backbone: Choice | None = choice(
        "backbone",
        None,
        "Compare the texts with what it reads: language and length.",
        level="everyday",
    )
    fix: str | None = everyday(
        None,
        "Write a cleaned copy; FIX.changes.tsv lists every change.",
        min_length=1,
        value="FILE",
    )


class DriftOptions(Options):
    """Which corpora are compared, and how much is shown."""

    before: str = option(
        help="The earlier corpus; for example, the one that a model was trained on.", argument=True
    )
    after: str = option(help="The later corpus.", argument=True)
    limit: int = everyday(10, "Rows of each table.", short="-l", ge=1)


class InfoOptions(Options):
    """Which corpus."""

    name: str | None = everyday(
        None, "A named corpus, such as eurlex-4k (default: list them).", argument=True
    )
    path: str | None = everyday(None, "A download of it, to be counted.", argument=True, path=True)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Actions on corpora."""
    return _SPECS


_SPECS = (
    action(
        name="data make",
        sections=(),
        summary="Generate a corpus.",
        options=MakeOptions,
        run="plant_data.corpora:make",
        help="Labels and gold evidence are written beside the corpus (data.labels.parquet, "
        "data.evidence.parquet): `files` finds them.",
        takes=("force",),
        examples=(
            "plant data make synthetic-clinic --documents 2000 --labels 300 --seed 0 -O "
            "data.parquet",
        ),
    ),
    action(
        name="data stats",
        summary="Describe a corpus in numbers.",
        run="plant_data.corpora:stats",
        help="Documents, labels and their frequencies, lengths, and labels that no training "
        "document has.",
        examples=("plant data stats data.parquet",),
    ),
    action(
        name="data split",
        summary="Split a corpus again.",
        options=SplitOptions,
        run="plant_data.corpora:split",
        help="All documents are pooled and split by --sampling; documents with equal texts, or "
        "of one --group-column, stay in one split.",
        takes=("force",),
        examples=("plant data split all.csv --test 0.2 -O data.parquet",),
    ),
    action(
        name="data convert",
        summary="Write a corpus in another format.",
        options=ConvertOptions,
        run="plant_data.corpora:convert",
        help="In tables the columns become doc_id, text, labels and split; labels are trimmed, "
        "and lists become JSON in CSV and TSV.",
        takes=("force",),
        examples=(
            "plant data convert corpus/ data.jsonl.gz",
            "plant data convert data.parquet out --to annif-jsonl",
            "plant data convert data.csv parts --shard 2/4",
        ),
    ),
    action(
        name="data check",
        summary="Look for what may be wrong with a corpus.",
        options=CheckOptions,
        run="plant_data.data_check:check_corpus",
        help="Repeated ids, equal and nearly equal texts, leaks between splits, odd and "
        "unknown "
        "labels, encodings, languages, lengths.",
        takes=("force",),
        examples=(
            "plant data check data.parquet --fail-on-warning",
            "plant data check notes.csv --backbone minilm --fix clean.parquet",
        ),
    ),
    action(
        name="data drift",
        summary="Say how a corpus differs from an earlier one.",
        options=DriftOptions,
        run="plant_data.data_drift:drift",
        help="Lengths, new words, labels whose frequency changed, labels that are new or gone. "
        "All splits of a corpus are pooled.",
        examples=(
            "plant data drift 2024.parquet 2025.parquet",
            "plant data drift old.csv new.csv --vocabulary icd10cm_order_2026.txt",
        ),
    ),
    action(
        name="data info",
        sections=(),
        summary="Say what is known of a published corpus.",
        options=InfoOptions,
        run="plant_data.corpora:info",
        help="Licence, citation, where to get it, expected counts; with a path, the counts of "
        "the download.",
        examples=("plant data info", "plant data info eurlex-4k downloads/eurlex-4k"),
    ),
)
