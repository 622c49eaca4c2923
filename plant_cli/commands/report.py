"""The action `plant report`: one page with what the records of evaluated systems say, as tables and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from plant_cli.api import Options, Result, StageContext, StageSpec, UsageError, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plant_cli.report.evaluated import Evaluated
    from plant_cli.report.labels import Found
    from plant_cli.report.page import Contents


MOST_DOCUMENTS = 100


class ReportOptions(Options):
    """Options of `report`."""

    systems: list[str] = option(
        [],
        "The system to judge, then those to compare it with: a run's folder, a stage's folder in one, or a folder (finetune-baseline) or "
        "tag in --run. Each must be evaluated. Default: the one without a tag in --run.",
        argument=True,
        path=True,
    )
    output: str = option("report.html", "The page: one HTML file that fetches nothing.", short="-O", min_length=1)
    figures: str | None = option(
        None, "Write every figure here, too, as SVG and PNG, and the headline in LaTeX and Markdown.", min_length=1
    )
    tables: str | None = option(None, "Write the headline in LaTeX and Markdown here (default: beside the figures).", min_length=1)
    documents: int = option(
        10, "Documents shown with their evidence, which loads the model; 0: none, and no text on the page.", ge=0, le=MOST_DOCUMENTS
    )
    permutations: int = option(10000, "Random swaps behind p of differences (approximate randomisation).", ge=1)
    paper: bool = option(False, "Mark differences by the published rule, as `plant significance --paper` does.")


def run(context: StageContext, options: ReportOptions) -> Result:
    """Nothing in a run is changed, and no figure is measured in a second way: what evaluations recorded is shown."""
    from plant_cli.report.figures import require_packages

    require_packages()
    page, folders = _require_writable(options, force=context.force)

    from plant_cli.report.evaluated import read_evaluated
    from plant_cli.report.page import write_contents

    systems = read_evaluated(options.systems or [str(context.run_path)], context.run_path)
    home = _open(context, systems[0].run)
    contents = _gather(home, options, systems)
    written = write_contents(contents, page, **folders)
    return Result(
        tables=[contents.headline],
        data={"page": str(page), "bytes": page.stat().st_size, "files": [str(path) for path in written], "left_out": contents.missing},
        next_step=f"open {page} in a browser ({page.stat().st_size / 1e6:.1f} MB, {len(contents.figures)} figures)",
    )


def _require_writable(options: ReportOptions, *, force: bool) -> tuple[Path, dict[str, Path | None]]:
    """The page and the folders, refused before any work where they could not be written."""
    from plant_cli.data.files import require_free, require_place

    page = Path(options.output)
    folders = {"figures": options.figures, "tables": options.tables or options.figures}
    places = {name: None if path is None else Path(path) for name, path in folders.items()}
    require_free(page, force=force)
    for place in filter(None, places.values()):
        if place.is_dir() and any(place.iterdir()) and not force:
            raise UsageError(
                "the folder is not empty", where=str(place), expected="an empty or a new folder", todo="choose another one, or --force"
            )
        require_place(place)
    return page, places


def _open(context: StageContext, run: Path) -> StageContext:
    """The context of the run whose gold labels count, where it is not the one of the command."""
    if run == context.run_path.absolute():
        return context
    from plant_cli.runs.runner import RequestRunner

    return RequestRunner(replace(context.request, run_path=run)).open("report")


def _gather(context: StageContext, options: ReportOptions, systems: list[Evaluated]) -> Contents:
    from plant_cli.evaluation.systems import choose_families
    from plant_cli.report.page import Asked, gather

    first = systems[0].record.options
    metric_options = first.get("metric_options") or {}
    families = choose_families(context, metric_options)
    asked = Asked(families=families, permutations=options.permutations, paper=options.paper, documents=options.documents)
    return gather(systems, asked, context.corpus, lambda *given: _find_evidence(context, systems[0], *given), context.reporter)


def _find_evidence(context: StageContext, system: Evaluated, texts: Sequence[str], labels: Sequence[Sequence[int]]) -> Found:
    folder = context.input("finetune", system.system_tag)

    # Imports torch where there is a network, which takes seconds: what is missing is said before.
    from plant_cli.report.labels import Found
    from plant_cli.scoring.explanations import find_evidence
    from plant_cli.scoring.models import has_network
    from plant_cli.scoring.opened_models import find_source

    found = find_evidence(find_source(context, folder), texts, labels, context.reporter)
    return Found(network=has_network(folder), texts=[[(one.spans, one.weights, one.reason) for one in own] for own in found])


SPECS = (
    StageSpec(
        name="report",
        summary="One page to look at: results with intervals, figures, best and worst labels, evidence in documents, cost.",
        options=ReportOptions,
        run=run,
        sections=("machine",),
        writes=False,
        takes=("force",),
        examples=("plant report", "plant report finetune finetune-baseline -O report.html --figures figures"),
    ),
)
