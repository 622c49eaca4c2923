"""People's work on labels: `plant review` and `plant audit`, sheets in which they accept and reject
labels, and what comes of them; `plant labels`, a model with the labels of now.

`review` writes sheets and turns decided ones into training records; `reviewed_rows` reads them,
`shortened_ids` finds ids again that a spreadsheet changed, `corrected_corpus` and `corrected_text`
write corrected labels into a person's own table. `review_agreement` says how far people agree.
`audit` finds labels that may be wrong or missing: `left_out_models` judge documents that they have
not seen, `gold_doubts` ranks what they say. `labels_edited` compares editions of a vocabulary, and
makes a run with edited labels.

It needs the extra `office` for workbooks (openpyxl), and the forms of label cells of
`plant_formats` (`label_forms`, `label_cells`). Of the core it uses opened models and
suggested documents (`scoring`), fitting without a network (`training`), run folders (`runs`) and
tables (`data`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from plant_cli.api import Options, SplitName, StageContext, StageSpec, hookimpl, option
from plant_cli.api.options import everyday

tool = partial(StageSpec, writes=False, needs_run=False)
of_a_model = partial(StageSpec, sections=("machine",), writes=False)


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


class AuditOptions(Options):
    """Options of `audit`."""

    output: str | None = everyday(
        None,
        "A sheet for `plant review import`: .xlsx, .csv, .tsv; .jsonl has whole texts.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    limit: int | None = everyday(
        None, "Rows of each kind (default: 100 in a sheet, 10 on the screen).", short="-l", ge=1
    )
    split: SplitName | None = everyday(
        None, "Only the documents of this split (default: train and validation)."
    )
    folds: int = option(
        5,
        "Parts of train; each is judged by scorers that are fitted on the others.",
        ge=2,
    )
    micro_batch: int = option(
        16, "Texts that a network reads at once; lower it when memory runs out.", ge=1
    )


class LabelsDiffOptions(Options):
    """Options of `labels diff`."""

    path: str = option(help="The run with the model.", argument=True, path=True)
    vocabulary: str = option(
        help="The new edition: a table, SKOS, or a classification such as ICD.",
        argument=True,
        path=True,
    )
    output: str = everyday(
        "label-edits.csv",
        "The table of edits, to look at and change.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    mapping: str | None = everyday(
        None, "What replaces what: a table with the columns old and new.", path=True
    )
    old: str | None = everyday(
        None,
        "The earlier edition: its ids tell which label is which, whatever its title is now; what "
        "it "
        "has is not new, and what it lacks is not retired.",
        path=True,
    )
    language: str | None = option(
        None, "Language of the titles, such as de (default: as in the run's corpus)."
    )


class LabelsApplyOptions(Options):
    """Options of `labels apply`."""

    path: str = option(help="The run with the model; it does not change.", argument=True, path=True)
    edits: str = option(
        help="Edits in a table, JSON lines or YAML: add, rename, merge, split, retire (columns "
        "edit, label, title, into).",
        argument=True,
        path=True,
    )
    train: bool = everyday(
        False,
        "Train the network again, with all labels (default: it stays as it is, and new labels "
        "get rows).",
    )


def require_reviewable(context: StageContext, options: Options) -> None:
    """Refuse, before anything is loaded, where the run holds no trained model."""
    context.corpus()
    context.input("finetune", context.tag)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Sheets, doubts and edited labels."""
    return _SPECS


_SPECS = (
    of_a_model(
        name="audit",
        group="Look",
        summary="Labels of the corpus that may be wrong or missing (by models that have not "
        "seen "
        "the document).",
        options=AuditOptions,
        run="plant_review.audit:run",
        check="plant_review:require_reviewable",
        help="Each document is judged by a model that has not seen it. Nothing is written to "
        "the "
        "run: a person decides in the sheet, and `plant review import` reads it.",
        takes=("tag", "force"),
        examples=(
            "plant audit -O doubts.xlsx",
            "plant audit --split train --limit 20",
        ),
    ),
    tool(
        name="labels diff",
        summary="What a new edition of a vocabulary does to the labels of a model: a table of "
        "edits to look at and change.",
        options=LabelsDiffOptions,
        run="plant_review.labels_edited:diff",
        help="Labels that are added, titled, renamed, merged, split or retired, by id; what "
        "replaces a label is read from SKOS "
        "(isReplacedBy, replaces, exactMatch), from a column replaced_by, or from --mapping. "
        "Nothing in the run changes.",
        takes=("force",),
        examples=(
            "plant labels diff plant-run subjects-2026.ttl",
            "plant labels diff plant-run icd10cm_order_2026.txt --old icd10cm_order_2025.txt "
            "--mapping conversions.csv",
        ),
    ),
    of_a_model(
        name="labels apply",
        summary="A new run with edited labels, from the model of another run.",
        options=LabelsApplyOptions,
        run="plant_review.labels_edited:apply",
        help="Edits are made in the order of the rows: add, title, rename, merge, split, "
        "retire; "
        "example: a text that has the label. "
        "Scorers are fitted anew, in seconds. A network stays as it is: new labels get rows "
        "from "
        "their titles and examples, without "
        "training. A label keeps its id when it is renamed.",
        locks=True,
        examples=(
            "plant labels apply plant-run label-edits.csv --run edited",
            "plant labels apply edited more-edits.csv --run edited-again",
            "plant labels apply plant-run label-edits.csv --run trained --train",
        ),
    ),
    of_a_model(
        name="review export",
        summary="Write labels and their evidence to a sheet, for people to accept or reject.",
        options=ReviewExportOptions,
        run="plant_review.review:export_sheet",
        check="plant_review:require_reviewable",
        help="One row for each label that is assigned, to be reviewed, or among the likeliest "
        "others; the column decision is empty.",
        takes=("tag", "force", "resume"),
        examples=(
            "plant review export -O review.xlsx",
            "plant review export new.csv -O review.csv --others 10",
            "plant review export --split validation -O review.jsonl",
        ),
    ),
    StageSpec(
        name="review import",
        summary="Turn reviewed sheets, and the feedback of plant serve, into training records.",
        options=ReviewImportOptions,
        run="plant_review.review:import_sheets",
        help="Nothing in the run changes. Rows that cannot be used go to OUTPUT.aside.jsonl, "
        "with the reason.",
        writes=False,
        takes=("tag", "force"),
        examples=(
            "plant review import anna.csv ben.csv --texts new.csv -O corrected.jsonl",
            "plant review import review.xlsx --into corpus.csv -O corpus-corrected.csv",
            "plant review import feedback.jsonl --undecided keep",
        ),
    ),
    tool(
        name="review agreement",
        summary="How far people agree who reviewed the same documents: Krippendorff's alpha.",
        options=ReviewAgreementOptions,
        run="plant_review.review_agreement:measure",
        help="It compares the last decision of each person on each label of each document, and "
        "lists where people disagree.",
        examples=(
            "plant review agreement new.feedback.jsonl",
            "plant review agreement anna.xlsx ben.xlsx --format json",
        ),
    ),
)
