"""Where inputs come from: valid and malformed files that are mutated, and texts made up along
the grammar of their format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

Files = Mapping[str, bytes]  # content by name
LARGEST = 60_000  # bytes of a seed that is mutated

ODD = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1e999",
        "nan",
        ".inf",
        "true",
        "null",
        "~",
        "'",
        '"',
        "\\",
        "{",
        "[",
        "]",
        "}",
        ",",
        ";",
        "\t",
        "|",
        "\r",
        "\n",
    ),
    *(
        "\0",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\ufeff",
        "\ud83d\ude00",
        "é",
        "ß",
        "0" * 400,
        "9" * 5000,
    ),
    *("../../x", "/etc/passwd", "a" * 3000),
    *(
        "<b>",
        "&amp;",
        "%s",
        "{0}",
        "=1+1",
        "!!python/object:os.system",
        "*a",
        "&a",
        "<<: *a",
        "- ",
        ": ",
        "#",
        "---",
        "...",
        "<http://x>",
    ),
)
WORDS = (
    "text",
    "labels",
    "label",
    "split",
    "doc_id",
    "id",
    "title",
    "start",
    "end",
    "train",
    "test",
    "validation",
    "fever",
    "cough",
    "A01",
)

words = st.sampled_from(WORDS) | st.sampled_from(ODD) | st.text(max_size=12)
numbers = (
    st.integers(-3, 40) | st.integers() | st.floats(allow_subnormal=False)
)  # stages let the processor flush those
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def mutations(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """A seed with one to six changes: bits flipped, bytes cut, repeated, exchanged, or odd text
    put in.
    """
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        size = draw(st.integers(0, 64))
        match draw(st.sampled_from(("flip", "cut", "end", "repeat", "insert", "replace", "bytes"))):
            case "flip" if at < len(content):
                content[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del content[at : at + size]
            case "end":
                del content[at:]
            case "repeat":
                content[at:at] = content[at : at + size] * draw(st.integers(1, 40))
            case "insert":
                content[at:at] = draw(words).encode("utf-8", "surrogatepass")
            case "replace":
                content[at : at + size] = draw(words).encode("utf-8", "surrogatepass")
            case _:
                content[at : at + size] = draw(st.binary(max_size=16))
    return bytes(content)


@st.composite
def tables(draw: st.DrawFn, columns: Sequence[str]) -> bytes:
    """A table with most of these columns as CSV, TSV, JSON lines or JSON: rows of odd cells,
    some too long or too short.
    """
    names = [name for name in columns if draw(st.integers(0, 9))] + draw(
        st.lists(words, max_size=2)
    )
    cells = (
        st.sampled_from(("train", "test", "validation", "fever", "cough", "d1", "d2", "0", "4"))
        | words
    )
    rows = draw(
        st.lists(
            st.lists(cells, min_size=len(names), max_size=len(names) + draw(st.integers(0, 1))),
            max_size=12,
        )
    )
    match draw(st.sampled_from(("csv", "tsv", "quoted", "jsonl", "json"))):
        case "csv":
            text = "\n".join(",".join(row) for row in (names, *rows))
        case "tsv":
            text = "\n".join("\t".join(row) for row in (names, *rows))
        case "quoted":
            text = "\n".join(
                ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row)
                for row in (names, *rows)
            )
        case form:
            objects = [
                {
                    name: draw(values) if not draw(st.integers(0, 5)) else cell
                    for name, cell in zip(names, row, strict=False)
                }
                for row in rows
            ]
            text = json.dumps(objects) if form == "json" else "\n".join(map(json.dumps, objects))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def yaml_texts(draw: st.DrawFn, keys: Sequence[str]) -> bytes:
    """YAML in which known keys hold odd values, at odd depths."""
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        depth, key = draw(st.integers(0, 3)), draw(st.sampled_from(keys) | words)
        value = draw(
            st.sampled_from(
                ("", "|", ">", "[1, 2]", "{name: tiny}", "{a: {b: 1}}", "0", "3", "0.5", "true")
            )
            | words
            | values.map(str)
        )
        lines.append("  " * depth + draw(st.sampled_from(("", "", "", "- "))) + f"{key}: {value}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def changed_json(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """A JSON document with one to three of its values exchanged, removed or put elsewhere."""
    content = json.loads(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 3))):
        content = _change(draw, content)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def _change(draw: st.DrawFn, content: object) -> object:
    if isinstance(content, dict) and content and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(content)))
        if not draw(st.integers(0, 5)):
            return {name: value for name, value in content.items() if name != key}
        return {**content, key: _change(draw, content[key])}
    if isinstance(content, list) and content and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(content) - 1))
        return [*content[:place], _change(draw, content[place]), *content[place + 1 :]]
    return draw(values)


def small(files: Files) -> list[bytes]:
    """The contents that are small enough to be mutated."""
    return [content for content in files.values() if len(content) <= LARGEST]
