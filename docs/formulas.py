"""A hook of MkDocs (see mkdocs.yml): formulas of the pages become MathML, which browsers show
without a script.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(text: str, **_: Any) -> str:
    """The HTML of a page with each formula in MathML."""
    return FORMULA.sub(mathml, text)


def mathml(found: re.Match[str]) -> str:
    """A formula of a page, on its own line or within one."""
    return str(
        convert(
            html.unescape(found["latex"]), display="block" if found["tag"] == "div" else "inline"
        )
    )
