"""Lists in the cells of a table, as programs print them."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize

_WITHOUT_COMMAS = re.compile(r"""['"]\s+['"]""")  # strings that follow one another, perhaps


def read_list(cell: str) -> list[object] | None:
    """A list in JSON, or as Python or numpy prints it (which is what a CSV file made from lists in pandas holds); None if it is none."""
    for read in (json.loads, _read_array if _WITHOUT_COMMAS.search(cell) else ast.literal_eval):
        try:
            parsed = read(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two: brackets within brackets without end
            continue
        if isinstance(parsed, list):
            return parsed
    return None


def _read_array(cell: str) -> object:
    """A list of strings, where those without a comma between them are two, as numpy prints them: Python would join them."""
    parts: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(cell).readline):
            if token.type == tokenize.STRING and parts and parts[-1] not in ("[", ","):
                parts.append(",")
            if token.type in (tokenize.STRING, tokenize.OP, tokenize.NUMBER, tokenize.NAME):
                parts.append(token.string)
    except tokenize.TokenError as error:
        raise ValueError(str(error)) from error
    return ast.literal_eval("".join(parts))
