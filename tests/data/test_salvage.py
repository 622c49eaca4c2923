"""Sound rows of tables that cannot be read as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataError
from plant_cli.data.lines import BadRows
from plant_cli.data.text_tables import salvage

PATH = Path("x")


def saved(content: bytes) -> tuple[bytes | None, list[str]]:
    bad = BadRows()
    return salvage(content, PATH, bad), [str(row) for row in bad.rows]


def test_lines_of_json() -> None:
    content = b'{"a": 1}\n{"a": \n[1]\n{"a": "\xff"}\n{"a": NaN}\n{"a": "\\ud800"}\n{"a": 2}\n'
    sound, rows = saved(content)
    assert sound == b'{"a": 1}\n{"a": 2}\n'
    assert rows == [
        "x, line 2, column 7: not JSON: Expecting value",
        "x, line 3: a JSON list, not an object",
        "x, line 4, column 8: byte 0xff is not UTF-8",
        "x, line 5: NaN is no JSON",
        "x, line 6: a string holds half a character",
    ]


def test_records_of_csv() -> None:
    sound, rows = saved(b'text,labels\n"a\nb",x\nc,d,e\n\xe9f,y\ng,z\n')
    assert sound == b'text,labels\n"a\nb",x\ng,z\n'
    assert rows[0] == "x, line 4: 3 fields, the header has 2"
    assert rows[1].startswith("x, line 5, column 1: byte 0xe9 is not UTF-8")


@pytest.mark.parametrize("content", [b"text,labels\n" + b"\xe9,x\n" * 11, b'{"a": "\xe9"}\n' * 11])
def test_a_file_in_another_encoding_is_told_as_such(content: bytes) -> None:
    with pytest.raises(DataError, match="the file is not UTF-8: it has more than 10 rows with bytes that are none") as caught:
        saved(content)
    assert "--encoding latin-1" in caught.value.todo


@pytest.mark.parametrize("content", [b"[1, 2]", b"prose and more prose\nx\n", b"a,b\n1,2\n", b"a,b\n\x00,2\n"])
def test_what_cannot_be_saved_row_by_row(content: bytes) -> None:
    assert saved(content) == (None, [])


def test_a_carriage_return_within_a_row_ends_none() -> None:
    bad = BadRows()
    assert salvage(b"id,text,labels\n0,a\rb,z\n1,c,d,e\n2,f,z\n", Path("x.csv"), bad) == b"id,text,labels\n0,a\rb,z\n2,f,z\n"
    assert len(bad.rows) == 1
