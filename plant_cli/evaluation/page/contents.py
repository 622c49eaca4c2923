"""A whole report: its sections gathered from systems, and written as a page and as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import plant_cli
from plant_cli.api.corpus import Corpus
from plant_cli.api.output import Table
from plant_cli.api.reporting import Reporter
from plant_cli.base.files import replacing
from plant_cli.base.writing import write_latex, write_markdown
from plant_cli.evaluation.families import Families
from plant_cli.evaluation.page.beside import Beside, align, compare_evaluated, lay_beside
from plant_cli.evaluation.page.charts import Figure, Section
from plant_cli.evaluation.page.cost import write_cost
from plant_cli.evaluation.page.decisions import write_decisions
from plant_cli.evaluation.page.documents import FindEvidence, write_documents
from plant_cli.evaluation.page.drawing import draw
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.evaluation.page.headline import make_headline, write_headline
from plant_cli.evaluation.page.labels import write_labels
from plant_cli.evaluation.page.markup import render
from plant_cli.evaluation.page.parts import write_parts
from plant_cli.evaluation.page.siblings import find_confusions, write_confusions
from plant_cli.evaluation.page.training import write_training


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a report is asked for.

    Args:
        families: metric families with their options.
        permutations: behind p of differences.
        paper: whether differences are marked by the published rule.
        documents: how many are shown with evidence.
    """

    families: Families
    permutations: int
    paper: bool
    documents: int


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A report before it is written.

    Args:
        title: of the page.
        lead: below it.
        headline: the table of the main metrics.
        sections: in order.
        footer: at the end.
    """

    title: str
    lead: Sequence[str]
    headline: Table
    sections: Sequence[Section]
    footer: Sequence[str]

    @property
    def missing(self) -> list[str]:
        """What is left out, and why."""
        return [sentence for section in self.sections for sentence in section.missing]

    @property
    def figures(self) -> list[Figure]:
        """All figures."""
        return [figure for section in self.sections for figure in section.figures]


def gather(
    systems: Sequence[Evaluated], asked: Asked, open_corpus: Callable[[], Corpus], find_evidence: FindEvidence, reporter: Reporter
) -> Contents:
    """All sections; what the runs do not have is left out with a sentence.

    Args:
        systems: evaluated alike, the first to be judged.
        asked: for what.
        open_corpus: gives the corpus of the first system's run.
        find_evidence: for the labels of some texts of the first system.
        reporter: where progress and warnings go.
    """
    beside = lay_beside(systems, asked.families, open_corpus, reporter)
    parts = write_parts(systems)  # each over its own labels
    systems = align(systems, beside, asked.families)
    comparisons, untested = compare_evaluated(systems, beside, asked.families, asked.permutations, reporter)
    headline = make_headline(systems, comparisons, paper=asked.paper)
    m, (first, *others) = systems[0].metrics, [system.name for system in systems]
    return Contents(
        title=f"{first} against {', '.join(others)}" if others else f"Report on {first}",
        lead=[systems[0].conditions, f"Convention {m.convention}: {'; '.join(m.assumptions)}."],
        headline=headline,
        sections=[
            write_headline(systems, headline, untested),
            parts,
            *write_labels(systems),
            write_decisions(systems, beside.data, beside.reason),
            write_training(systems),
            _write_siblings(systems, beside),
            write_documents(systems[0], beside, asked.documents, find_evidence),
            write_cost(systems),
        ],
        footer=[
            f"plant {plant_cli.__version__}. Figures are those of `plant eval`, tests those of `plant significance`; gold {m.gold[:12]}."
        ],
    )


def _write_siblings(systems: Sequence[Evaluated], beside: Beside) -> Section:
    readable = beside.readable
    if readable is None:
        return write_confusions(systems, {}, None, beside.reason)
    train = None if readable.train is None else readable.train.gold
    found = {name: find_confusions(data, readable.corpus.labels, train) for name, data in beside.data.items()}
    return write_confusions(systems, found, readable.gold, beside.reason)


def write_contents(contents: Contents, page: Path, figures: Path | None, tables: Path | None) -> list[Path]:
    """Write a report, each file atomically.

    Args:
        contents: the report.
        page: the HTML file.
        figures: folder for every figure as SVG and PNG; None: they stand in the page alone.
        tables: folder for the headline in LaTeX and Markdown; None: it stands in the page alone.

    Returns:
        The files, the page first.
    """
    drawn = {figure.name: draw(figure) for figure in contents.figures}
    html = render(contents.title, contents.lead, contents.sections, {name: svg for name, (svg, _) in drawn.items()}, contents.footer)
    files: dict[Path, bytes] = {page: html.encode()}
    if figures is not None:
        files |= {figures / f"{name}.svg": svg.encode() for name, (svg, _) in drawn.items()}
        files |= {figures / f"{name}.png": png for name, (_, png) in drawn.items()}
    if tables is not None:
        written = {"tex": write_latex(contents.headline), "md": write_markdown(contents.headline)}
        files |= {tables / f"headline.{suffix}": text.encode() for suffix, text in written.items()}
    for path, content in files.items():
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    return list(files)
