"""All sections of a report in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plant_cli
from plant_cli.api.corpus import Corpus
from plant_cli.report.evaluated import Evaluated, find_tests
from plant_cli.report.marked_documents import FindReasons, write_marked_documents
from plant_cli.report.page import Contents
from plant_cli.report.result_sections import make_headline, write_headline, write_label_sections, write_part_sections, write_scores
from plant_cli.report.training_section import write_cost, write_training


def gather(
    systems: Sequence[Evaluated], *, paper: bool, documents: int, open_corpus: Callable[[], Corpus], find_reasons: FindReasons
) -> Contents:
    """The report; what the runs do not have is left out with a sentence."""
    tests = find_tests(systems)
    headline = make_headline(systems, tests, paper=paper)
    metrics, (first, *others) = systems[0].metrics, [system.name for system in systems]
    return Contents(
        title=f"{first} against {', '.join(others)}" if others else f"Report on {first}",
        lead=[systems[0].conditions, f"Convention {metrics.convention}: {'; '.join(metrics.assumptions)}."],
        headline=headline,
        sections=[
            write_headline(systems, headline, tests),
            write_part_sections(systems),
            *write_label_sections(systems),
            write_scores(systems),
            write_training(systems),
            write_marked_documents(systems[0], documents, open_corpus, find_reasons),
            write_cost(systems),
        ],
        footer=[
            f"plant {plant_cli.__version__}. Figures are those of `plant eval`, tests those of `plant significance`; "
            f"gold {metrics.gold[:12]}."
        ],
    )
