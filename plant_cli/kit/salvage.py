"""The sound rows of a text table that cannot be read as a whole: the others are named, with line and column, and left out."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from plant_cli.kit.rows import BadRows, refuse_many
from plant_cli.kit.text_tables import Place, find_separator_of, number_records

_BOM = b"\xef\xbb\xbf"
_STRAY = re.compile("[\udc80-\udcff]")  # how Python writes a byte that is no UTF-8


def salvage(content: bytes, path: Path, bad: BadRows) -> bytes | None:
    """The same table without the rows that cannot be read.

    Args:
        content: JSON lines, CSV or TSV, not compressed.
        path: for messages.
        bad: takes these rows.

    Returns:
        The other rows; None if it is not single rows that are wrong (it is no table, or a quote is never closed).

    Raises:
        DataError: more than ten rows are not UTF-8: the whole file is in another encoding.
    """
    before = len(bad.rows)
    content = content.removeprefix(_BOM)
    if content.lstrip()[:1] == b"[" or b"\0" in content:
        return None
    if content.lstrip()[:1] == b"{":
        sound = keep_lines(content, Place(path), bad)
    else:
        separator, content, skipped = find_separator_of(content)
        if separator is None:
            return None
        sound = keep_rows(content, separator, Place(path, lines=skipped), bad)
    return sound if len(bad.rows) > before else None


def keep_lines(content: bytes, place: Place, bad: BadRows) -> bytes:
    """The JSON objects among lines; the others go to `bad`."""
    kept, wrong = [], 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        fault = _find_fault(line) if line.strip() else None
        if fault is None:
            kept.append(line)
        else:
            bad.add(place.path, place.lines + number, fault[0], line.decode("utf-8", "replace"), column=fault[1])
            wrong += fault[0].endswith("is not UTF-8")
            refuse_many(wrong, bad.rows[-1], "UTF-8")
    return b"\n".join(kept)


def _find_fault(line: bytes) -> tuple[str, int | None] | None:
    """What is wrong with a line that should be a JSON object, and in which column."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        return f"byte 0x{line[error.start]:02x} is not UTF-8", len(line[: error.start].decode("utf-8", "replace")) + 1
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg}", error.colno
    except UnicodeEncodeError:
        return "a string holds half a character", None
    except (ValueError, RecursionError) as error:
        return (str(error) if "is no JSON" in str(error) else "a number or lists within lists beyond measure"), None
    return None if isinstance(value, dict) else (f"a JSON {type(value).__name__}, not an object", None)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def keep_rows(content: bytes, separator: str, place: Place, bad: BadRows) -> bytes:
    """A header and those rows that fit it; the others go to `bad`."""
    text = content.decode("utf-8", "surrogateescape")
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    columns = wrong = 0
    for line, record in number_records(text, separator):
        columns = columns or len(record)
        raw = separator.join(record)
        stray = _STRAY.search(raw)
        if stray:
            why = f"byte 0x{ord(stray[0]) - 0xDC00:02x} is not UTF-8 (--encoding names another)"
            shown = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            bad.add(place.path, place.lines + line, why, shown, column=stray.start() + 1)
            wrong += 1
            refuse_many(wrong, bad.rows[-1], "UTF-8")
        elif len(record) > columns:
            bad.add(place.path, place.lines + line, f"{len(record)} fields, the header has {columns}", raw)
        else:
            writer.writerow(record)
    return out.getvalue().encode()
