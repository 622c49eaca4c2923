"""The page: what its sections hold, laid out as one self-contained HTML file."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plant_cli.api.context import Passage, Table
from plant_cli.data.files import replacing
from plant_cli.data.printed_tables import (
    NUMBER_KINDS,
    format_row,
    printable_cell,
    write_latex,
    write_markdown,
)
from plant_report.drawing import Drawing

if TYPE_CHECKING:
    from markupsafe import Markup

HERE = Path(__file__).parent
_COMMAND = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, kw_only=True)
class MarkedLabel:
    """A label of a document with its reasons."""

    name: str
    state: Literal["right", "wrong", "missed", ""]  # empty: nobody knows
    score: float | None  # None for a label that was not predicted
    reason: str  # in words, from the scorers
    passages: Sequence[Passage]  # the text around the strongest words
    table: Table | None = None  # what its score is made of
    whole: Sequence[Passage] = ()  # the whole text, to be unfolded


@dataclass(frozen=True, kw_only=True)
class MarkedDocument:
    """A document with some of its labels."""

    doc_id: str
    summary: str
    labels: Sequence[MarkedLabel]


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A section of the page."""

    name: str  # its anchor
    title: str
    text: Sequence[str] = ()  # paragraphs above its tables
    tables: Sequence[Table] = ()
    drawings: Sequence[Drawing] = ()
    documents: Sequence[MarkedDocument] = ()
    missing: Sequence[str] = ()  # what is left out: the reason, and the command that gives it


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A report before it is written."""

    title: str
    lead: Sequence[str]  # paragraphs below the title
    headline: Table
    sections: Sequence[PageSection]
    footer: Sequence[str]

    @property
    def drawings(self) -> list[Drawing]:
        """All figures."""
        return [drawing for section in self.sections for drawing in section.drawings]


def render(contents: Contents, drawn: dict[str, str]) -> str:
    """The page; everything that comes from data is escaped, and nothing is fetched."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clean=printable_cell, prose=set_commands)
    environment.globals.update(numbers=NUMBER_KINDS, format_row=format_row)
    sources = {
        name: f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
        for name, svg in drawn.items()
    }
    style = (HERE / "style.css").read_text("utf-8")
    return environment.get_template("page.html.jinja").render(
        page=contents, sources=sources, style=style
    )


def set_commands(text: str) -> Markup:
    """A sentence as HTML, escaped; text in backticks becomes code."""
    from markupsafe import Markup, escape

    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(printable_cell(text)))))


def write_contents(
    contents: Contents, page: Path, figures: Path | None, tables: Path | None
) -> list[Path]:
    """Write a report, each file atomically: the page, and in further folders every figure as
    SVG and PNG, and the main metrics as tables in LaTeX and Markdown, if they are wanted. The
    files, the page first.
    """
    drawn = {drawing.name: drawing.render() for drawing in contents.drawings}
    files: dict[Path, bytes] = {
        page: render(contents, {name: svg for name, (svg, _) in drawn.items()}).encode()
    }
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
