"""The page: its sections in order, as one self-contained HTML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import plant_cli
from plant_cli.api.context import Reporter, Table
from plant_cli.api.corpus import Corpus
from plant_cli.data.files import replacing
from plant_cli.evaluation.counters import Families
from plant_cli.report.compared import Beside, align, compare_evaluated, lay_beside, make_headline, write_headline
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.figures import COLOURS, GRID, INK, PALE, Figure, Section, draw
from plant_cli.report.labels import FindEvidence, find_confusions, write_confusions, write_documents, write_labels
from plant_cli.report.sections import write_cost, write_decisions, write_parts, write_training
from plant_cli.report.text import NUMBERS, format_row, printable_cell, write_latex, write_markdown

if TYPE_CHECKING:
    from markupsafe import Markup


HERE = Path(__file__).parent
TEMPLATE, STYLE = "page.html.jinja", "style.css"
VARIABLES = {INK: "--ink", PALE: "--pale", GRID: "--rule", "#ffffff": "--paper", **{c: f"--s{i}" for i, c in enumerate(COLOURS, start=1)}}
_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_ASIDE = re.compile(r"<(metadata|style)\b[^>]*>.*?</\1>\s*", re.DOTALL)
_COMMAND = re.compile(r"`([^`]+)`")
_TAG = re.compile(r"<[^>]+>")
_OPEN = re.compile(r"<svg\b[^>]*>")
_IDS = re.compile(r"""(?P<before>\bid="|\burl\(#|\bhref="#)(?P<name>[^")]+)""")
_FONT = re.compile(r"(font(?:-family)?: (?:[^;'\"]*px )?)'[^;\"]*")
_VIEW = re.compile(r'viewBox="0 0 (?P<wide>[\d.]+) [\d.]+"')


def render(title: str, lead: Sequence[str], sections: Sequence[Section], drawings: Mapping[str, str], footer: Sequence[str]) -> str:
    """The whole page; everything that comes from data is escaped.

    Args:
        title: of the page.
        lead: paragraphs below it.
        sections: in order.
        drawings: SVG of each figure by its name, as matplotlib wrote it.
        footer: lines at the end.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    inlined = {name: Markup(inline(svg, name)) for name, svg in drawings.items()}
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["clean"] = printable_cell
    environment.filters["prose"] = set_commands
    environment.globals.update(numbers=NUMBERS, format_row=format_row)
    template = environment.get_template(TEMPLATE)
    style = Markup((HERE / STYLE).read_text("utf-8"))
    return template.render(title=title, lead=lead, sections=sections, drawings=inlined, footer=footer, style=style)


def set_commands(text: str) -> Markup:
    """A sentence as HTML, escaped, what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(printable_cell(text)))))


def inline(svg: str, name: str) -> str:
    """A drawing as part of a page: ids of its own, colours from variables, the reader's font, named by its caption.

    Args:
        svg: as matplotlib wrote it.
        name: of the figure; its title and description stand in the page under `NAME-title` and `NAME-description`.
    """
    bare = _TAG.sub(lambda tag: _adapt(tag[0], name), _ASIDE.sub("", _PROLOGUE.sub("", svg)))  # texts stay as they are
    view = _VIEW.search(bare)
    wide = float(view["wide"]) if view else 460.0
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view[0] if view else ""} '
        f'style="max-width: {wide * 1.6:.0f}px" role="img" aria-labelledby="{name}-title" aria-describedby="{name}-description">'
    )
    return _OPEN.sub(lambda _: opening, bare, count=1).strip()


def _adapt(tag: str, name: str) -> str:
    own = _IDS.sub(lambda found: f"{found['before']}{name}-{found['name']}", tag)
    for colour, variable in VARIABLES.items():
        own = re.sub(rf"(?<=[:\s\"]){colour}\b", f"var({variable})", own)
    return _FONT.sub(r"\1var(--font)", own)


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
