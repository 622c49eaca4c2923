"""Lists and objects in a cell of text, as JSON, Python, numpy or pandas write them."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from contextlib import suppress

MISSING = frozenset(
    ("nan", "NaN", "NAN", "-nan", "None", "null", "Null", "NULL", "\\N", "<NA>", "NaT", "#N/A")
)


_LONGEST = 1 << 22  # characters of a list in text


_CONVERTERS = re.compile(
    r"array|tensor|(?:frozen)?set|list|tuple|Index|deque|dict_(?:keys|values)|OrderedDict|Counter|str_|(?:u?int|float)\d+"
)


# the last are what Python, numpy, pandas and torch print around values
_CONSTANTS = {"nan": None, "NaN": None, "null": None, "NaT": None, "true": True, "false": False}


_NULL = re.compile(
    r"""(["'])\\N\1"""
)  # MySQL's missing value in quotes, where a backslash begins an escape


_WITHOUT_COMMAS = re.compile(r"""['"\d.]\s+['"\d-]""")  # values that follow one another, perhaps


def read_list(cell: str) -> list[object] | None:
    """A list in text; None if it is none."""
    parsed = read_structure(cell)
    return parsed if isinstance(parsed, list) and cell.strip()[:1] == "[" else None


def read_structure(cell: str) -> list[object] | dict[object, object] | None:
    """A list or an object in JSON, or as Python, numpy or pandas print a list, tuple, set or dict;
    None if it is none of these.

    Names in quotes with commas between them are a list, too.
    """
    cell = cell.strip()
    if not cell or len(cell) > _LONGEST:
        return None
    if cell[0] in "\"'" and cell[-1] == cell[0]:
        with suppress(ValueError):
            inner = json.loads(cell)
            if (
                inner[:1] in ("[", "{") and (nested := read_structure(inner)) is not None
            ):  # JSON within JSON
                return nested
        cell = f"[{cell}]"
    cell = _NULL.sub(r"\1\\\\N\1", cell)
    for read in (json.loads, _read_printed):
        try:
            parsed = read(cell)
        except (
            ValueError,
            SyntaxError,
            RecursionError,
            MemoryError,
            TypeError,
        ):  # the last three: brackets in brackets without end
            continue
        if isinstance(parsed, (list, dict)):
            return parsed
    return None


def _read_printed(cell: str) -> object:
    """A value as Python or numpy prints it; nothing is called or looked up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        tree = ast.parse(_put_commas(cell) if _WITHOUT_COMMAS.search(cell) else cell, mode="eval")
    return _value_of(tree.body)


def _value_of(node: ast.AST) -> object:
    match node:
        case ast.Constant(value=None | str() | bool() | int() | float() as value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [_value_of(part) for part in parts]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {
                str(_value_of(key)): _value_of(value)
                for key, value in zip(keys, values, strict=True)
                if key is not None
            }
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if (
            _CONVERTERS.fullmatch(name) and len(args) <= 1
        ):
            return _value_of(args[0]) if args else []
    raise ValueError("no value")


def _put_commas(cell: str) -> str:
    """A list with commas between values that numpy prints without: Python would join strings."""
    parts: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(cell).readline):
            value = token.type in (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)
            if (
                value
                and parts
                and (
                    parts[-1][-1] not in "[({,:=.-" or (parts[-1][-1:] == "." and parts[-1] != ".")
                )
            ):
                parts.append(",")
            if value or token.type == tokenize.OP:
                parts.append(token.string)
    except tokenize.TokenError as error:
        raise ValueError(str(error)) from error
    return "".join(parts)


def split_names(cell: object) -> list[str]:
    """The labels or names in a cell of a vocabulary, each once: a list, a list in a string, or
    names between `|`, `;` or line ends.
    """
    if cell is None:
        return []
    if isinstance(cell, list):
        parts: list[object] = cell
    elif str(cell).lstrip().startswith("["):
        listed = read_list(str(cell))
        parts = [cell] if listed is None else listed
    else:
        parts = list(re.split(r"[|;\n]", str(cell)))
    names = (str(part).strip() for part in parts if part is not None)
    return list(dict.fromkeys(name for name in names if name))
