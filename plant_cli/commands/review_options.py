"""The options of `plant review`: sheets, and what people decided in them."""

from __future__ import annotations

from typing import Literal

from plant_cli.api import Options, SplitName, option
from plant_cli.commands.command_options import everyday


class ReviewExportOptions(Options):
    """Options of `review export`."""

    path: str | None = everyday(
        None, "Texts, as for `plant suggest` (default: a split of the run).", argument=True
    )
    output: str = everyday(
        "review.xlsx",
        "The sheet: .xlsx, .csv, .tsv; .jsonl has whole texts.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    split: SplitName = everyday("test", "The split to review, without PATH.")
    others: int = everyday(5, "Labels of the band `reject` shown of each text.", ge=0)
    top_k: int = option(30, "Labels of each text that are looked at.", ge=1)
    thresholds: str | None = option(
        None,
        "Choose the bands by thresholds of `plant thresholds`: folder, tag, or file.",
        path="or name",
    )
    text_column: str | None = option(
        None,
        "The column that holds the texts, or several (default: as in the run's corpus).",
        value="COLUMN",
    )
    id_column: str | None = option(
        None,
        "The column that holds the ids of the texts (default: as in the run's corpus).",
        value="COLUMN",
    )
    micro_batch: int = option(16, "Texts scored at once; lower it when memory runs out.", ge=1)


class ReviewImportOptions(Options):
    """Options of `review import`."""

    sheets: list[str] = option(
        ...,
        "Reviewed sheets, and feedback of `plant serve` (.jsonl).",
        argument=True,
        path=True,
        min_length=1,
    )
    output: str = everyday(
        "corrected.jsonl",
        "The records: doc_id, text, labels, reviewer, time.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    texts: str | None = everyday(
        None,
        "The texts of rows that do not have their whole text (default: the run's corpus).",
        path=True,
    )
    into: str | None = everyday(
        None,
        "A table of your corpus: -O is then this table with the corrected labels in it, its "
        "other columns as they are, and a row more for "
        "each document that it does not have.",
        path=True,
    )
    undecided: Literal["drop", "keep"] = everyday(
        "drop", "Assigned labels without a decision: left out, or taken as accepted."
    )
    text_column: str | None = option(
        None,
        "The column of texts of --texts and --into (default: as in the run's corpus).",
        value="COLUMN",
    )
    id_column: str | None = option(
        None,
        "The column of ids of --texts and --into (default: as in the run's corpus).",
        value="COLUMN",
    )


class ReviewAgreementOptions(Options):
    """Options of `review agreement`."""

    sheets: list[str] = option(
        ...,
        "Reviewed sheets, and feedback of `plant serve` (.jsonl).",
        argument=True,
        path=True,
        min_length=1,
    )
