"""The options of the core's commands, as recipes, flags and help know them."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from plant_cli.api import (
    Choice,
    Options,
    SplitName,
    UsageError,
    choice,
    exclusive_options,
    option,
    refuse_repeated,
)
from plant_cli.api.options import SIZE_PATTERN, everyday
from plant_cli.data.shares import SHARE_PATTERN, require_share
from plant_cli.evaluation.results import (
    DEFAULT_METRICS,
    FEWEST_RESAMPLES,
    MetricNames,
    ScoringOptions,
    parse_gates,
    refuse_too_few,
)
from plant_cli.evaluation.targets import DEFAULT_TARGET, TARGET_HELP, parse_targets

EXCLUDE_HELP = (
    "A label that is not suggested, beside those of plant finetune --exclude: its id or "
    "title, or a file of them (repeatable)."
)
TO_HELP = (
    "The format of -O, where its name does not tell it: Annif's JSON, a TREC run (.trec), "
    "XMLRepository's sparse text, or a sparse matrix "
    "(.npz); the last two number labels in the order of FILE.labels.txt."
)


class EvalOptions(ScoringOptions):
    """Options of `eval`."""

    require: list[str] = everyday(
        [], "Fail unless this holds, such as 'P@5>=0.6' (repeatable; exit code 7)."
    )
    predictions: str | None = everyday(
        None,
        "Evaluate another tool's predictions: a table with doc_id, label(s), score(s), or with a "
        "column for each label or rank; Annif's "
        "JSON or folder; XMLRepository sparse text; npz; npy; label:score text; a TREC run.",
        path=True,
    )
    threshold: float | None = option(
        None, "Assign labels that score at least this (default: as tuned; 0.5 for another tool)."
    )
    thresholds: str | None = option(
        None,
        "Assign labels by thresholds of `plant thresholds`: folder, tag, or file.",
        path="or name",
    )
    explained: int = option(
        50,
        "Documents with gold spans, drawn at random, whose marked words are compared with these; "
        "0: none.",
        ge=0,
    )
    by: list[str] = everyday(
        [],
        "Also by a column of the corpus; lang,type makes a group of each pair of values "
        "(repeatable).",
        value="COLUMN",
    )

    def check_values(self) -> None:
        """See `Options.check_values`."""
        parse_gates(self.require)
        if self.threshold is not None and self.thresholds is not None:
            raise exclusive_options("--threshold", "--thresholds")


class MigShowOptions(Options):
    """Options of `mig show`."""

    label: str = option(
        help="Id or title of a label, or a part of one; put -- before one that begins with a dash.",
        argument=True,
    )
    limit: int = everyday(20, "Words shown.", ge=1)


class CleanOptions(Options):
    """Options of `plant clean`."""

    dry_run: bool = everyday(False, "Show what would be removed, and remove nothing.")


class EditOptions(Options):
    """Options of `mig edit`."""

    label: str | None = everyday(
        None, "Id or title of a label; put -- before one that begins with a dash.", argument=True
    )
    deny: tuple[str, ...] = everyday((), "A word that must not count for the label (repeatable).")
    allow: tuple[str, ...] = everyday(
        (), "A word and its relevance from 0 to 1, such as stroke=0.8 (repeatable)."
    )
    list: bool = everyday(False, "Show the edits of the label, or of all labels; change nothing.")
    clear: bool = everyday(
        False,
        "Drop the earlier edits of the label, or of all labels (a copy is kept next to the "
        "folder).",
    )


class PluginNewOptions(Options):
    """Options of `plant plugins new`."""

    kind: Literal[
        "stage",
        "backbone",
        "decoder",
        "loss",
        "signal",
        "dataset",
        "metric",
        "shortlist",
        "scorer",
        "analyser",
        "predictions",
        "vocabulary",
    ] = option(help="The kind of component.", argument=True)
    name: str = option(help="Its name, such as word-bag.", argument=True)
    output: str | None = everyday(
        None, "The folder to write (default: plant-NAME).", short="-O", value="FOLDER"
    )


class PluginShowOptions(Options):
    """Options of `plant plugins show`."""

    name: str = option(help="A component's name, such as `minilm`.", argument=True)
    kind: str | None = everyday(None, "Only this kind of component, where several share the name.")


class PredictOptions(Options):
    """Options of `predict`."""

    systems: list[str] = everyday(
        [],
        "Systems to average, with --average: a folder in the run (finetune-baseline), a tag, or "
        "the folder of another "
        "run. Each is loaded and scores every label; stored predictions are not reused.",
        argument=True,
        path=True,
    )
    average: bool = everyday(
        False, "Average the scores of the named systems, two or more; --tag names the result."
    )
    mean: Literal["probabilities", "logits"] = option("probabilities", "What is averaged.")
    tune: Literal["micro-F1", "macro-F1"] = option(
        "micro-F1", "What the threshold of an average, tuned on validation, maximises."
    )
    split: Literal["train", "validation", "test"] = everyday("test", "The split to score.")
    top_k: int = everyday(100, "Labels kept of each document.", ge=1, was="limit")
    micro_batch: int = everyday(
        16, "Documents scored at once; lower it when memory runs out.", ge=1, was="batch"
    )
    shortlist: Choice | None = choice(
        "shortlist",
        None,
        "Score only the labels that this proposes; needs `plant mig` (default: all).",
    )
    thresholds: str | None = option(
        None,
        "Add a column `decisions` by `plant thresholds`: folder, tag, or file.",
        path="or name",
    )
    exclude: tuple[str, ...] = option((), EXCLUDE_HELP)
    output: str | None = option(
        None,
        "Also write the predictions, as `plant suggest -O`.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    to: Literal["annif", "trec", "xml", "npz"] | None = option(None, TO_HELP)
    auc: bool = everyday(
        False,
        "Keep the score of every label for AUC: 4 bytes each; `plant eval` can then report AUC.",
    )
    cache_limit: float = option(
        8.0, "Disk for the cached hidden states of the split, in GB (frozen backbones only).", ge=0
    )
    auc_disk: str = option(
        "20GB",
        "Disk space that these scores, or those of an average, may take, such as 500MB.",
        pattern=SIZE_PATTERN,
    )

    @property
    def leaves_out(self) -> bool:
        """Whether only the labels of a shortlist are scored."""
        return self.shortlist is not None and self.shortlist.name != "none"

    def check_values(self) -> None:
        """See `Options.check_values`."""
        refuse_repeated(self.systems, "system")
        if self.average and self.output is not None:
            why, todo = (
                "the bands of such a file are those of one model",
                "leave -O out: the average is in predict-TAG/predictions.parquet",
            )
            raise exclusive_options("--output", "--average", why=why, todo=todo)
        if self.to is not None and self.output is None:
            raise UsageError(
                f"no file is named for the format {self.to}",
                where="--to",
                expected="-O with a file",
                todo="add -O FILE",
            )
        if self.systems and not self.average:
            raise UsageError(
                "systems are named, but not what to do with them",
                expected="--average and two or more systems, or none: then the network of this "
                "run, or of --tag, predicts",
                todo="add --average --tag ensemble, or leave the names out (a corpus that moved: "
                "--path)",
            )
        if self.average and len(self.systems) < 2:
            raise UsageError(
                f"there is nothing to average: {len(self.systems) or 'no'} system is named",
                expected="two systems or more",
                todo="plant predict finetune finetune-baseline --average --tag ensemble",
            )


class QuickstartOptions(Options):
    """Options of `quickstart`."""

    backbone: str | None = everyday(
        None, "The backbone (default: minilm where its weights are installed, else tiny)."
    )


class TrainOptions(Options):
    """Options of `train`."""

    hours: float | None = everyday(
        None,
        "Also make a network, in at most so many hours; it is kept only if it adds (default: "
        "none).",
        gt=0,
    )


class NameOptions(Options):
    """Which recipe."""

    recipe: str = option(help="A recipe file, or the name of a shipped recipe.", argument=True)


class CopyOptions(NameOptions):
    """Which recipe, and where to."""

    file: str | None = everyday(
        None,
        "The file to write (default: the recipe's name in the working directory).",
        argument=True,
    )


class SignificanceOptions(ScoringOptions):
    """Options of `significance`."""

    systems: list[str] = option(
        ...,
        "A, then the systems to compare it with: folder in the run (finetune-baseline), tag, "
        "another run's folder, or predictions file. "
        "A positive difference means that A is better (of a loss: worse).",
        argument=True,
        path=True,
        min_length=1,
    )
    metric: MetricNames = everyday(
        [],
        f"Only this metric (repeatable, or with commas). Default: {', '.join(DEFAULT_METRICS)}.",
        short="-m",
    )
    bootstrap: int = everyday(1000, "Resamples for the intervals of the differences.", ge=1)
    permutations: int = option(
        10000,
        "Random swaps behind p (approximate randomisation); p is at least 1/(1 + this).",
        ge=1,
    )
    require: list[str] = everyday(
        [],
        "Fail unless A is better: 'p<0.05', 'p[P@5]<0.05', 'difference[P@5]>=0.01' (repeatable; "
        "code 7).",
    )
    names: list[str] = option(
        [],
        "How the systems are called in tables, in their order (repeatable). Default: their "
        "folders.",
    )
    details: bool = everyday(
        False,
        "Show each comparison with p and intervals, too: of three or more systems one table is "
        "shown.",
    )
    paper: bool = everyday(
        False,
        "Report by the published rule: mean gain and plain percentiles of the replicates; "
        "Wilcoxon over documents for P@k and R@k, over "
        "replicates for F1 and AUC (there p shrinks with their number).",
    )
    seeds: int | None = everyday(
        None,
        "Compare means over so many seeds of `plant run --seeds`. One system: only its spread.",
        ge=2,
    )

    @model_validator(mode="after")
    def _one_system_has_only_a_spread(self) -> SignificanceOptions:
        if len(self.systems) < 2 and self.seeds is None:
            raise ValueError(
                "significance needs two systems: name A first, as in `plant significance "
                "finetune finetune-baseline`; one system alone "
                "needs --seeds"
            )
        return self

    def check_values(self) -> None:
        """See `Options.check_values`."""
        refuse_repeated(self.systems, "system")
        parse_gates(self.require)
        if self.names and len(self.names) != len(self.systems):
            raise UsageError(
                f"there are {len(self.names)} names for {len(self.systems)} systems",
                where="significance, option names",
                expected="a name for each system, in their order",
                todo="name all, or none",
            )


LABELS_SUGGESTED, LABELS_ASSIGNED = 10, 100  # labels of a text that are looked at


class SuggestOptions(Options):
    """Options of `suggest`."""

    path: str | None = everyday(
        None,
        "Texts to label: a table, which needs no labels; a file (.txt, .pdf, .docx, .html) or a "
        "folder of them; or - for standard input: "
        "JSON lines, another table, or one text.",
        argument=True,
    )
    text: str | None = everyday(None, "One text to label, instead of a table.")
    top_k: int | None = everyday(
        None,
        f"Labels suggested for each text, at most (default: {LABELS_SUGGESTED}; with --assigned "
        f"{LABELS_ASSIGNED}).",
        ge=1,
        was="limit",
    )
    assigned: bool = everyday(False, "Only labels that reach the threshold tuned on validation.")
    recursive: bool = option(False, "Also read the folders in a folder of texts.")
    threshold: float = option(0.0, "Only labels with at least this probability.", ge=0, le=1)
    lines: bool = option(False, "Each line of a .txt file or of standard input is a text.")
    thresholds: str | None = everyday(
        None,
        "Choose bands by thresholds of `plant thresholds`: folder, tag, or file.",
        path="or name",
    )
    micro_batch: int = option(
        16, "Texts scored at once; lower it when memory runs out.", ge=1, was="batch"
    )
    exclude: tuple[str, ...] = option((), EXCLUDE_HELP)
    why: bool = everyday(
        False,
        "Say why each label is suggested: what the network and each scorer add, and by which "
        "words.",
    )
    text_column: str | None = option(
        None,
        "The column that holds the texts, or several (default: as in the run's corpus).",
        value="COLUMN",
    )
    encoding: str | None = option(
        None,
        "Encoding of the texts (default: UTF-8, or that of the run's corpus where they are not "
        "UTF-8).",
    )
    id_column: str | None = option(
        None,
        "The column that holds the ids of the texts (default: as in the run's corpus).",
        value="COLUMN",
    )
    output: str | None = everyday(
        None,
        "Write the suggestions to this table. .csv and .tsv have a row for each suggestion "
        "(doc_id, rank, label, "
        "title, score, threshold, band); .jsonl and .parquet have one for each document, with "
        "lists.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    to: Literal["annif", "trec", "xml", "npz"] | None = option(None, TO_HELP)
    sheet: str | None = everyday(
        None,
        "Write a sheet for people who accept or reject labels (.xlsx, .csv, .tsv): heading and "
        "beginning of the text, label, score, band, "
        "decision, evidence. `plant review import` reads it.",
        min_length=1,
        value="FILE",
    )
    shard: str | None = option(
        None,
        "Only this share of the texts, such as 2/4, into a file of its own; the files, one after "
        "the other, are those of all texts.",
        pattern=SHARE_PATTERN,
    )

    _is_a_share = field_validator("shard")(require_share)


class ThresholdOptions(Options):
    """Options of `thresholds`."""

    system: str | None = everyday(
        None,
        "The system that decides: a folder in the run (finetune-baseline), a tag, or a file of "
        "any tool's predictions of "
        "validation. Default: the network of this run, or of --tag.",
        argument=True,
        path="or name",
    )
    target: list[str] = everyday([DEFAULT_TARGET], TARGET_HELP)
    measure: SplitName | None = everyday(
        None, "Also measure on this split (such as test); nothing is chosen by it."
    )
    measure_predictions: str | None = option(
        None, "A file with the predictions of that split, for a system that is a file.", path=True
    )
    bootstrap: int = option(
        1000,
        f"Resamples of the documents behind the intervals, {FEWEST_RESAMPLES} or more; 0: no "
        "intervals.",
        ge=0,
    )
    level: float = option(0.95, "Coverage of the intervals.", gt=0, lt=1)

    _are_enough = field_validator("bootstrap")(refuse_too_few)

    def check_values(self) -> None:
        """See `Options.check_values`."""
        parse_targets(self.target)
        if self.measure == "validation":
            raise UsageError(
                "validation is always measured, each document by thresholds that were chosen "
                "without it",
                where="--measure",
                expected="another split, such as test",
                todo="leave --measure out",
            )
