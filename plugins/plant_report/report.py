"""The action `plant report`: one page with tables and figures of evaluated systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import plant_cli
from plant_cli.api import Corpus, Result, StageContext, UsageError
from plant_cli.data.files import require_free, require_place
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.explanations import Explanation, explain
from plant_cli.scoring.models import load_model
from plant_cli.scoring.opened_models import find_source
from plant_report import ReportOptions
from plant_report.drawing import require_packages
from plant_report.evaluated import Evaluated, find_tests, read_evaluated
from plant_report.marked_documents import FindReasons, write_marked_documents
from plant_report.page import Contents, write_contents
from plant_report.result_sections import (
    make_headline,
    write_headline,
    write_label_sections,
    write_marks,
    write_part_sections,
    write_scores,
)
from plant_report.summary import write_opening
from plant_report.training_section import write_cost, write_training


def run(context: StageContext, options: ReportOptions) -> Result:
    """Show what evaluations and tests recorded; the run does not change, and nothing is
    measured again.
    """
    require_packages()
    page, folders = _require_writable(options, force=context.force)
    systems = read_evaluated(options.systems or [str(context.run_path)], context.run_path)
    home = _open(context, systems[0].run)
    contents = gather(
        systems,
        paper=options.paper,
        documents=options.documents,
        open_corpus=home.corpus,
        find_reasons=lambda texts, labels: _find_reasons(home, systems[0], texts, labels),
    )
    written = write_contents(contents, page, **folders)
    left_out = [sentence for section in contents.sections for sentence in section.missing]
    return Result(
        tables=[contents.headline],
        data={
            "page": str(page),
            "bytes": page.stat().st_size,
            "files": [str(path) for path in written],
            "left_out": left_out,
        },
        next_step=f"open {page} in a browser ({page.stat().st_size / 1e6:.1f} MB, "
        f"{len(contents.drawings)} figures)",
    )


def gather(
    systems: Sequence[Evaluated],
    *,
    paper: bool,
    documents: int,
    open_corpus: Callable[[], Corpus],
    find_reasons: FindReasons,
) -> Contents:
    """The report; what the runs do not have is left out with a sentence."""
    tests = find_tests(systems)
    headline = make_headline(systems, tests, paper=paper)
    metrics, (first, *others) = systems[0].metrics, [system.name for system in systems]
    return Contents(
        title=f"{first} against {', '.join(others)}" if others else f"Report on {first}",
        lead=write_opening(systems[0]),
        headline=headline,
        sections=[
            write_headline(systems, headline, tests),
            write_part_sections(systems),
            *write_label_sections(systems),
            write_scores(systems),
            write_training(systems),
            *write_marks(systems),
            write_marked_documents(systems[0], documents, open_corpus, find_reasons),
            write_cost(systems),
        ],
        footer=[
            f"{systems[0].conditions}. Convention {metrics.convention}: "
            f"{'; '.join(metrics.assumptions)}.",
            f"plant {plant_cli.__version__}. Figures are those of `plant eval`, tests those of "
            "`plant significance`; "
            f"gold {metrics.gold[:12]}.",
        ],
    )


def _require_writable(
    options: ReportOptions, *, force: bool
) -> tuple[Path, dict[str, Path | None]]:
    """The page and the folders; refuse what cannot be written before any work."""
    page = Path(options.output)
    named = {"figures": options.figures, "tables": options.tables or options.figures}
    folders = {name: None if path is None else Path(path) for name, path in named.items()}
    require_free(page, force=force)
    for folder in filter(None, folders.values()):
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise UsageError(
                "the folder is not empty",
                where=str(folder),
                expected="an empty or a new folder",
                todo="choose another one, or --force",
            )
        require_place(folder)
    return page, folders


def _open(context: StageContext, run: Path) -> StageContext:
    """The context of another run."""
    if run == context.run_path.absolute():
        return context
    return RequestRunner(replace(context.request, run_path=run)).open("report")


def _find_reasons(
    context: StageContext, system: Evaluated, texts: Sequence[str], labels: Sequence[Sequence[int]]
) -> list[list[Explanation]]:
    folder = context.input("finetune", system.system_tag)
    model, index = load_model(find_source(context, folder)), context.corpus().labels
    return [
        explain(model, text, own, index, context.reporter)
        for text, own in zip(texts, labels, strict=True)
    ]
