"""The site of the docs needs no script for formulas and loads nothing from elsewhere; its
strict build checks the links.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_formulas_become_mathml() -> None:
    spec = importlib.util.spec_from_file_location("formulas", DOCS / "formulas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shown = module.on_page_content(
        r'<p>Of <span class="arithmatex">\(n &lt; 1\)</span>:</p><div class="arithmatex">\[ x^2 \]</div>'
    )
    assert "arithmatex" not in shown
    assert re.findall(r'display="(\w+)"', shown) == ["inline", "block"]
    assert "&#x0003C;" in shown  # <, escaped once


def test_pictures_and_styles_load_nothing_from_elsewhere() -> None:
    files = [*(DOCS / "images").glob("*.svg"), *DOCS.glob("*.css")]
    assert len(files) > 2
    for file in files:
        assert set(re.findall(r"https?://[^\"'\s)]+", file.read_text("utf-8"))) <= {
            "http://www.w3.org/2000/svg"
        }, file.name
