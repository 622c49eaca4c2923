"""CSV and TSV whose quotes are not as the format asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataError
from plant_cli.data.lines import BadRows
from plant_cli.data.tables import scan_table
from plant_cli.data.text_tables import read_rows

PLAIN = [[f"text {number} of many", f"{'abc'[number % 3]};x"] for number in range(9)]
ESCAPED, INNER, BARE, ESCAPES = (
    r"written as \"",
    "not doubled",
    "part of the text",
    "behind a backslash",
)


def read(path: Path, lines: str, separator: str = ",") -> tuple[list[list[str]], list[str]]:
    """The rows between nine others, and the remarks."""
    others = "".join(f"{separator.join(row)}\n" for row in PLAIN)
    path.write_text(f"text{separator}labels\n{others}{lines}{others}", newline="")
    bad = BadRows()
    rows = [row for _, row in read_rows(path, bad, None, separator)][1:]
    assert rows[:9] == rows[-9:] == PLAIN
    return rows[9:-9], bad.close()


@pytest.mark.parametrize(
    ("lines", "rows", "how"),
    [
        (r'"he said \"yes\" to me",a', [['he said "yes" to me', "a"]], ESCAPED),
        (r'"it ends with \"",a', [['it ends with "', "a"]], ESCAPED),
        (
            '"it ends with \\"",a\n"the next",b',
            [['it ends with "', "a"], ["the next", "b"]],
            ESCAPED,
        ),
        ('"two\nlines, \\"yes\\" and\nmore",a', [['two\nlines, "yes" and\nmore', "a"]], ESCAPED),
        (r'"a \"b\\c\" and ""d""",a', [['a "b\\c" and "d"', "a"]], ESCAPED),
        ('"he said "yes", and left",a', [['he said "yes", and left', "a"]], INNER),
        (
            '"two lines\nhe said "yes" and\nleft",a',
            [['two lines\nhe said "yes" and\nleft', "a"]],
            INNER,
        ),
        ('"a, b" ,a', [["a, b", "a"]], INNER),
        ('"a ""b"" c", "d, e"', [['a "b" c', "d, e"]], INNER),
        ('"never closed,a', [['"never closed', "a"]], BARE),
        (r"one\, two,a", [["one, two", "a"]], ESCAPES),
        (r"a \\path\, and \"b\",a", [[r"a \path, and" + ' "b"', "a"]], ESCAPES),
        ("over two\\\nlines,a\nmore,b", [["over two\nlines", "a"], ["more", "b"]], ESCAPES),
        ('"one,a\n"two,b', [['"one', "a"], ['"two', "b"]], BARE),
    ],
)
def test_quotes_that_do_not_fit_are_read_as_they_were_meant(
    tmp_path: Path, lines: str, rows: list[list[str]], how: str
) -> None:
    found, remarks = read(tmp_path / "x.csv", lines + "\n")
    assert found == rows
    assert len(remarks) == 1
    assert how in remarks[0]
    assert "line 11" in remarks[0] or "lines 11" in remarks[0]


@pytest.mark.parametrize(
    ("separator", "lines"),
    [
        (",", ['"starts,a', "one;more,b;x", 'five 12",c']),
        (
            ",",
            [
                '"starts,a;x',
                *[f"no {number},a;x" for number in range(20)],
                "a, b, c",
                'five 12",c;x',
            ],
        ),
        ("\t", ['"starts\ta', *[f"no {number}\tlabel {number}" for number in range(9)], '5"\tz']),
        ("\t", ['"starts\ta', "one\tb;x", '12"\tc']),
    ],
)
def test_rows_that_a_quote_swallowed_are_found(
    tmp_path: Path, separator: str, lines: list[str]
) -> None:
    found, remarks = read(tmp_path / "x", "\n".join(lines) + "\n", separator)
    assert [separator.join(row) for row in found] == [
        line for line in lines if line.count(separator) == 1
    ]
    assert any("took in" in remark and "line 11" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("separator", "lines", "text"),
    [
        (",", '"Dear Mr Smith,\nfoo bar, baz",a;x\n', "Dear Mr Smith,\nfoo bar, baz"),
        (
            ",",
            '"Dear Mr Smith,\nfoo bar, baz\nso, bye",a;x\n',
            "Dear Mr Smith,\nfoo bar, baz\nso, bye",
        ),
        ("\t", '"War and Peace"\ta\n', "War and Peace"),
        ("\t", '"one\ttab\nline"\ta\n', "one\ttab\nline"),
        ("\t", '"a ""b""\nc"\ta\n', 'a "b"\nc'),
    ],
)
def test_quotes_that_fit_are_left_alone(
    tmp_path: Path, separator: str, lines: str, text: str
) -> None:
    found, remarks = read(tmp_path / "x", lines, separator)
    assert [row[0] for row in found] == [text]
    assert remarks == []


def test_between_tabs_a_quote_is_text_where_it_does_not_close(tmp_path: Path) -> None:
    found, remarks = read(
        tmp_path / "x", '"War" and "Peace"\ta\n"never closed\tb\n5" pipe\tc\n', "\t"
    )
    assert [row[0] for row in found] == ['"War" and "Peace"', '"never closed', '5" pipe']
    assert remarks == [f"{tmp_path / 'x'}: quotes are part of the text (2 rows, lines 11, 12)"]


def test_a_row_that_can_be_read_in_no_way_costs_itself_alone(tmp_path: Path) -> None:
    found, remarks = read(tmp_path / "x.csv", '"a "b",c,"d\nand "more" of it\n')
    assert found == []
    assert [("line 11: its quotes do not close" in remark) for remark in remarks] == [True]


def test_short_rows_are_counted(tmp_path: Path) -> None:
    found, remarks = read(tmp_path / "x.csv", "a text over\ntwo lines,a\n")
    assert found == [["a text over", ""], ["two lines", "a"]]
    assert remarks == [
        f"{tmp_path / 'x.csv'}: fewer than the 2 fields of the header: the others are empty (line "
        "11)"
    ]


def test_strict_reading_guesses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('text,labels\n"he said \\"yes\\"",a\n')
    with pytest.raises(DataError, match="the quotes of a row do not fit") as caught:
        list(read_rows(path, BadRows(strict=True, literal=True)))
    assert caught.value.where == f"{path}, line 2"


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\n"])
def test_the_line_with_the_separator_of_excel_is_passed_over(tmp_path: Path, first: str) -> None:
    (tmp_path / "x.csv").write_text(f"{first}text; labels\na,b;c\n", newline="", encoding="utf-8")
    assert scan_table(tmp_path / "x.csv").collect().to_dicts() == [{"text": "a,b", "labels": "c"}]
