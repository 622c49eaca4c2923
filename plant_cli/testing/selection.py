"""The pytest option `--plant-plugin`: which plugin the conformance checks look at (pytest finds
this module by its entry point).
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--plant-plugin`."""
    text = "check only this plugin of `plant` (default: all)"
    parser.getgroup("plant").addoption("--plant-plugin", default=None, metavar="NAME", help=text)
