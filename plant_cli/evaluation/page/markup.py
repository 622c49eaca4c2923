"""The page as HTML: one file that fetches nothing, with drawings that take the colours of the reader's scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plant_cli.base.escapes import printable_cell
from plant_cli.base.writing import NUMBERS, format_row
from plant_cli.evaluation.page.charts import Section
from plant_cli.evaluation.page.drawing import COLOURS, GRID, INK, PALE

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
