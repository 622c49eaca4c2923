"""What people look at: `plant report`, a page of results, and `plant explain`, the words that are
the reasons for a label.

A report shows what evaluations, tests and training recorded, and measures nothing again:
`evaluated` reads the records, `result_sections`, `training_section` and `marked_documents` make
sections of them, and `page` lays these out as one HTML file that fetches nothing. `marked_texts`
marks words in texts, for a terminal and for a page.

It needs the extra `report` (jinja2, matplotlib) for pages, not for explanations in a terminal. Of
the core it uses records of evaluations (`evaluation`), explanations and opened models (`scoring`),
and run folders (`runs`, `data`).
"""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import Options, SplitName, StageContext, StageSpec, hookimpl, option
from plant_cli.api.options import everyday

MOST_DOCUMENTS = 100


class ReportOptions(Options):
    """Options of `report`."""

    systems: list[str] = everyday(
        [],
        "The system to judge, then those to compare it with: the folder of a run, a stage's "
        "folder in one, or a folder "
        "(finetune-baseline) or tag in --run. Each must be evaluated. Default: the one without a "
        "tag in --run.",
        argument=True,
        path=True,
    )
    output: str = everyday(
        "report.html",
        "The page, one HTML file that fetches nothing.",
        short="-O",
        min_length=1,
        value="FILE",
    )
    figures: str | None = everyday(
        None,
        "Also write figures (SVG, PNG) and the main metrics (LaTeX, Markdown).",
        min_length=1,
        value="FOLDER",
    )
    tables: str | None = option(
        None,
        "Where the table of main metrics is written (default: the folder of the figures).",
        min_length=1,
        value="FOLDER",
    )
    documents: int = everyday(
        10,
        "Documents shown with their evidence, by the model. 0: no text on the page.",
        ge=0,
        le=MOST_DOCUMENTS,
    )
    paper: bool = option(
        False, "Mark the differences that `plant significance` recorded by the published rule."
    )


class ExplainOptions(Options):
    """Options of `explain`."""

    path: str | None = everyday(None, "Texts to explain: as for `plant suggest`.", argument=True)
    text: str | None = everyday(None, "One text to explain, instead of a table.")
    document: str | None = everyday(
        None, "The id of one text of the table; without a table, of the run's corpus.", value="ID"
    )
    label: tuple[str, ...] = everyday(
        (), "A label to explain, suggested or not: its id or title, or a file of them (repeatable)."
    )
    top_k: int = everyday(
        5,
        "Labels explained of each text where none is named: those that are suggested first.",
        ge=1,
        was="limit",
    )
    html: str | None = everyday(
        None, "Also write a page: one HTML file without scripts.", min_length=1, value="FILE"
    )
    measure: SplitName | None = option(
        None,
        "Measure instead, on this split, how much scores of gold labels rest on the marked words "
        "and how well these agree with gold spans; "
        "beside them the best words by attention, gradient, relevance and each scorer.",
    )
    scored: int = option(
        200,
        "Documents, drawn at random, that --measure scores without the words and with them alone.",
        ge=1,
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


def require_trained_model(context: StageContext, options: ExplainOptions) -> None:
    """Refuse, before anything is loaded, where the run holds no trained model."""
    context.input("finetune", context.tag)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """Report and explanations."""
    return [
        StageSpec(
            name="report",
            summary="One page to look at: results with intervals, figures, best and worst "
            "labels, evidence in documents, cost.",
            options=ReportOptions,
            run="plant_report.report:run",
            help="Nothing in a run is changed, and no figure is measured in a second way: what "
            "evaluations recorded is shown.",
            sections=("machine",),
            writes=False,
            takes=("force",),
            group="Look",
            looks=True,
            examples=(
                "plant report",
                "plant report finetune finetune-baseline -O report.html --figures figures",
            ),
        ),
        StageSpec(
            name="explain",
            summary="Why a label, or why not: the words of a text and what they add to the "
            "label's score.",
            options=ExplainOptions,
            run="plant_report.explain:run",
            check="plant_report:require_trained_model",
            help="What network and scorers add to the log-odds of a label, with the words marked "
            "in the text; nothing is written to the run.",
            sections=("machine",),
            writes=False,
            opens_model=True,
            takes=("tag", "force"),
            group="Look",
            looks=True,
            examples=(
                "plant explain --text 'acute bronchitis with cough'",
                "plant explain new.csv --document 17 --label fever",
                "plant explain letters/ --html why.html",
            ),
        ),
    ]
