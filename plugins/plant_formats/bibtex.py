"""Entries of BibTeX by pybtex, without TeX; loaded for such files alone, since pybtex takes
long.
"""

from __future__ import annotations

import codecs
import re

import latexcodec  # noqa: F401 (it registers the codec `ulatex`)
from pybtex.database.input.bibtex import LowLevelParser
from pybtex.scanner import PybtexSyntaxError

from plant_formats.bibtex_text import COMMENT, Macros, hide_separators
from plant_formats.line_formats import Fault
from plant_formats.literature_records import Reference, make_reference

_FIELDS = (
    ("title",),
    ("abstract", "abstractnote", "annotation"),
    ("keywords", "keyword", "author_keywords", "author-keywords", "keywords-plus", "mesh", "tags"),
)
_COMMAND = re.compile(r"\\[A-Za-z]+\s*(?=\{)")  # \textit{…}: its words stay
_PERCENT = re.compile(r"(?<!\\)%")  # which LaTeX takes for the start of a comment


def parse_entry(record: str, macros: Macros) -> Reference | None:
    """An entry as a record; None for a macro or a preamble."""
    if COMMENT.match(record):
        raise Fault("a comment that is never closed", None)
    errors: list[PybtexSyntaxError] = []
    parser = LowLevelParser(record, macros=macros, handle_error=errors.append)
    kind, (key, *values) = next(iter(parser), ("", (None,)))
    if errors:
        raise Fault(f"no BibTeX: {errors[0].args[0]}", None, errors[0].lineno or 1)
    if kind.lower() in ("string", "preamble"):
        return None
    fields = {name.lower(): [read_value("".join(parts))] for name, parts in values[0]}
    return make_reference({**fields, "id of the entry": [key or ""]}, _FIELDS, "id of the entry")


def read_value(value: str) -> str:
    """A value without TeX, in which separators within braces are hidden: `show_separators`."""
    text = " ".join(value.split())
    while _is_enclosed(text):
        text = text[1:-1].strip()
    text = hide_separators(text) if "{" in text else text
    if "\\" in text:
        text = codecs.decode(_PERCENT.sub(r"\\%", _COMMAND.sub("", text)), "ulatex")  # type: ignore[call-overload]
    return re.sub(r"[{}]", "", text).replace("\xa0", " ").strip()


def _is_enclosed(text: str) -> bool:
    """Whether one pair of braces holds all of it."""
    if not (text.startswith("{") and text.endswith("}")):
        return False
    depth = 0
    for sign in text[:-1]:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0:
            return False
    return True
