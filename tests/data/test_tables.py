"""Tables of every format: separators, lists in cells, sparse matrices, damage; what cannot be
read is explained.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import explained, read_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.exceptions import ComputeError, PanicException
from polars.testing import assert_frame_equal

from plant_cli.api import DataError, DataSection, Interrupted, Purpose
from plant_cli.data import tables, text_tables
from plant_cli.data.lines import BadRows
from plant_cli.data.parquet import panics_as_errors, speaks_of_shortage, write_frames
from plant_cli.data.tables import (
    collect,
    join_columns,
    peek_columns,
    scan_table,
    table_format,
    whole_numbers,
    write_table,
    write_text_batches,
)
from plant_cli.data.text_tables import read_text_table, shorten, show_names, unwrap_rows
from plant_cli.data.vocabularies import read_vocabulary

CASES = read_cases(Path(__file__).parent / "messages.yaml")
FRAME = pl.DataFrame(
    {
        "doc_id": ["007", "b"],
        "text": ['He said "no", twice.\nThen\tleft; ünïcode नमस्ते', "plain"],
        "labels": [["one label", "two,three"], ['quo"te']],
    }
)


@pytest.mark.parametrize(
    "name", ["x.parquet", "x.jsonl", "x.ndjson", "x.json", "x.jsonl.gz", "x.jsonl.zst"]
)
def test_formats_with_lists_survive_the_round_trip(tmp_path: Path, name: str) -> None:
    write_table(FRAME, tmp_path / name)
    assert_frame_equal(scan_table(tmp_path / name).collect(), FRAME)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.zst", "x.tsv.gz"])
def test_separated_formats_hold_lists_as_json(tmp_path: Path, name: str) -> None:
    write_table(FRAME, tmp_path / name)
    read = scan_table(tmp_path / name).collect()
    assert_frame_equal(read.drop("labels"), FRAME.drop("labels"))
    assert read["labels"].to_list() == ['["one label", "two,three"]', '["quo\\"te"]']
    assert peek_columns(tmp_path / name) == FRAME.columns


def test_the_content_decides_and_not_the_name(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "really-parquet.csv")
    (tmp_path / "really-tabs.csv").write_text("text\tlabels\na, b\tx\n")
    assert_frame_equal(scan_table(tmp_path / "really-parquet.csv").collect(), FRAME)
    assert scan_table(tmp_path / "really-tabs.csv").collect().to_dicts() == [
        {"text": "a, b", "labels": "x"}
    ]


def test_a_name_with_glob_characters_is_only_a_name(tmp_path: Path) -> None:
    write_table(FRAME, tmp_path / "a[1]*.parquet")
    assert scan_table(tmp_path / "a[1]*.parquet").collect().height == 2


def test_a_huge_field_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels\n" + '"' + "word, " * 200_000 + '",a\n')
    assert scan_table(tmp_path / "x.csv").collect()["text"].str.len_chars().item() == 1_200_000


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.csv", ".csv"),
        ("a.b.csv.gz", ".csv"),
        ("a.parquet", ".parquet"),
        ("a.gz", None),
        ("a.xlsx", None),
        ("csv", None),
    ],
)
def test_the_format_that_a_name_promises(name: str, form: str | None) -> None:
    assert table_format(Path(name)) == form


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"][0][:60])
def test_what_cannot_be_read_is_explained(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = (
        case["content"]
        if isinstance(case["content"], str)
        else "".join(text * times for text, times in case["content"])
    )
    path = Path("x")
    path.write_bytes(content.encode("latin-1"))

    with explained({"error": "DataError", **case}, tmp_path):
        if "read" in case:
            read_vocabulary(path, Purpose(case.get("language")))
        collect(
            scan_table(
                path, encoding=case.get("encoding"), bad=BadRows() if "lenient" in case else None
            ),
            "x",
        )


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "reports.csv").touch()
    with pytest.raises(DataError) as caught:
        scan_table(tmp_path / "report.csv")
    assert caught.value.expected == "did you mean 'reports.csv'?"


def test_a_folder_is_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="folder"):
        scan_table(tmp_path)


def test_damage_behind_a_good_footer_is_found_when_collecting(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"text": [f"some text {i}" for i in range(2000)]}).write_parquet(
        path, compression="zstd"
    )
    content = bytearray(path.read_bytes())
    content[10:600] = b"\xff" * 590
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        collect(scan_table(path), str(path))


@pytest.mark.parametrize("name", ["x.xlsx", "x", "x.parquet.gz"])
def test_an_output_of_unknown_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="no table format"):
        write_table(FRAME, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_has_no_end_or_cannot_be_read_twice_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    plug = socket.socket(socket.AF_UNIX)
    plug.bind(str(tmp_path / "s"))
    for path in (tmp_path / "pipe", tmp_path / "s", Path("/dev/zero")):
        with pytest.raises(DataError, match="no plain file"):
            scan_table(path)
    plug.close()


def test_what_the_system_does_not_let_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(DataError, match="the file cannot be read"):
        scan_table(tmp_path / "a")
    if Path("/proc/self/mem").exists():
        with pytest.raises(DataError, match="the file cannot be read"):
            scan_table(Path("/proc/self/mem"))


def test_fractions_are_no_whole_numbers() -> None:
    frame = pl.DataFrame({"a": [0.5, 2.0, None], "b": ["1", "2.7", "x"]})
    assert frame.select(whole_numbers("a"), whole_numbers("b")).to_dict(as_series=False) == {
        "a": [None, 2, None],
        "b": [1, None, None],
    }


def test_several_columns_become_one_text() -> None:
    assert DataSection.named("title,abstract", ["title", "abstract"]) == ["title", "abstract"]
    assert DataSection.named("a,b", ["a,b"]) == ["a,b"]
    frame = pl.DataFrame({"a": ["x", " ", None], "b": ["y ", "z", None]})
    assert frame.select(join_columns(["a", "b"])).to_series().to_list() == ["x\ny", "z", ""]


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.csv"])
@pytest.mark.parametrize("sizes", [(0, 2), (1, 0, 1), (0, 0), (2, 0), (1, 1)])
def test_batches_are_written_as_one_table_wherever_empty_ones_stand(
    tmp_path: Path, name: str, sizes: tuple[int, ...]
) -> None:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    write_text_batches(
        (FRAME[end - size : end] for size, end in zip(sizes, ends, strict=True)), tmp_path / name
    )
    write_table(FRAME[: ends[-1]], tmp_path / f"whole-{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()


PANICS = (371, 921, 1099)  # seeds with which polars 1.x panicked when this was written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "doc_id": [f"d{row}" for row in range(40)],
            "text": [f"some words here {row % 7}" for row in range(40)],
            "labels": [["A", "B"][: row % 3] for row in range(40)],
            "x": [row * 0.5 for row in range(40)],
            "n": list(range(40)),
        }
    )
    frame.write_parquet(tmp_path / "corpus.parquet")
    return tmp_path / "corpus.parquet"


def spoil(content: bytes, seed: int) -> bytes:
    drawn, spoilt = random.Random(seed), bytearray(content)
    for _ in range(drawn.choice((1, 1, 2, 6))):
        spoilt[drawn.randrange(len(spoilt))] ^= 1 << drawn.randrange(8)
    return bytes(spoilt)


def find_damage(path: Path) -> DataError | None:
    try:
        collect(scan_table(path), str(path))
    except DataError as error:
        return error
    return None


def test_a_damaged_file_is_told_with_its_name(table: Path) -> None:
    """Some changes of a byte cannot be seen: pages have no checksum."""
    whole, told = table.read_bytes(), []
    for seed in (*PANICS, *range(40)):
        table.write_bytes(spoil(whole, seed))
        told.append(find_damage(table))
    assert all(told[: len(PANICS)])
    found = [error for error in told if error is not None]
    assert len(found) > 20
    assert all(
        str(table) in error.where and error.exit_code == 4 and "memory" not in str(error)
        for error in found
    )


def test_a_panic_for_want_of_memory_goes_through_and_another_becomes_an_error() -> None:
    with pytest.raises(PanicException), panics_as_errors():
        raise PanicException("memory allocation of 8 bytes failed")
    with pytest.raises(ComputeError, match="makes no sense: range end index 9"), panics_as_errors():
        raise PanicException("range end index 9 out of range")
    assert speaks_of_shortage(PanicException("failed to spawn thread"))
    assert not speaks_of_shortage(PanicException("capacity overflow"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.csv"


def read(
    path: Path,
    content: str | bytes,
    bad: BadRows | None = None,
    encoding: str | None = None,
    size: int | None = None,
) -> pl.DataFrame:
    """The table, in blocks of some characters (None: in one)."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr(tables, "LARGE_TABLE", size)
            patch.setattr(text_tables, "CHARACTERS_PER_BLOCK", size)
        return scan_table(path, bad=bad, encoding=encoding).collect()


def refuse(path: Path, content: str | bytes) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path, content)
    return caught.value


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (
            'doc_id;text;labels;"Bemerkung, frei"\n1;a, b;c;d\n',
            ["doc_id", "text", "labels", "Bemerkung, frei"],
        ),
        ('"a, b, c, d";text;labels\n1;2;3\n', ["a, b, c, d", "text", "labels"]),
        ('text;"two, ""three, four"", five"\n1;2\n', ["text", 'two, "three, four", five']),
        ("text|codes, all|x\na|b|c\n", ["text", "codes, all", "x"]),
        ("text;labels (a,b,c)\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ("text;labels (a,b,c)\n\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ('text;labels (a,b)\n"one; two";bar\n', ["text", "labels (a,b)"]),
        ("text\tlabels, all\na, b\tx\n", ["text", "labels, all"]),
        ("text,labels;codes\n", ["text", "labels;codes"]),
        ('text;"labels\nor codes";split\na;b;c\n', ["text", "labels\nor codes", "split"]),
        (",text,\n0,a,b\n", ["", "text", "_"]),
    ],
)
def test_the_separator_is_the_one_that_header_and_first_row_agree_on(
    path: Path, content: str, columns: list[str]
) -> None:
    assert read(path, content).columns == columns


def test_carriage_returns(path: Path) -> None:
    """One within a row is left alone; lines that end in one alone are refused."""
    assert read(path, 'text,labels\n"a\rb",c\nd\re,f\r\n').rows() == [("a\rb", "c"), ("d\re", "f")]
    bad = BadRows()
    assert read(path, "id,text,labels\n0,a\rb,z\n1,c\rd,e,f\n2,g,z\n", bad).rows() == [
        ("0", "a\rb", "z"),
        ("2", "g", "z"),
    ]
    assert [(row.line, row.content) for row in bad.rows] == [(3, "1,c\rd,e,f")]


def test_names_in_messages_are_cut() -> None:
    assert shorten("labels") == "labels"
    assert shorten("x" * 41) == "x" * 39 + "…"
    assert show_names(["a", "b" * 50]) == "a, " + "b" * 39 + "…"
    assert show_names("abcdefghijklmnop") == "a, b, c, d, e, f, g, h, i, j, k, l"


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("\n \nid,text\n1,a\n\n2,b\n\n", [("1", "a"), ("2", "b")]),  # blank lines are no rows
        ("text\na\n\nb\n", [("a",), (None,), ("b",)]),  # but in a table of one column
        ('a,b,c\n1\n2,"",3\n', [("1", None, None), ("2", None, "3")]),  # short rows are filled
        (
            r'{"text": "\ud83d\ude00 and \\ud83d"}',
            [("\U0001f600 and \\ud83d",)],
        ),  # half a character that is text
        ('[{"text": "a"},\n{"text": "b"}]', [("a",), ("b",)]),
    ],
)
@pytest.mark.parametrize("size", [None, 8])
def test_what_a_small_text_holds(
    path: Path, content: str, rows: list[tuple[str | None, ...]], size: int | None
) -> None:
    assert read(path, content, size=size).rows() == rows


@pytest.mark.parametrize("quotes", [1, 2, 7])
def test_a_quote_amid_a_field_is_part_of_it(path: Path, quotes: int) -> None:
    rows = [(str(i), f'a {i}" pipe', "x") for i in range(quotes)]
    content = "id\ttext\tlabels\n" + "".join("\t".join(row) + "\n" for row in rows)
    assert read(path, content).rows() == rows
    error = refuse(path, content + '8\t"never closed\n9\ta\tb\n')
    assert (error.what, error.where) == (
        "a row cannot be read: its quotes do not close",
        f"{path}, line {quotes + 2}",
    )


def test_a_quote_that_is_never_closed_fills_no_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LONGEST_ROW", 60)
    error = refuse(path, 'a,b,c\n1,2,3\n3,"' + "4\n" * 100)
    assert (error.what, error.where) == (
        "a row cannot be read: its quotes do not close",
        f"{path}, line 3",
    )


ROWS_OF_CSV = "text,labels\n" + "some text,a\n" * 9
OBJECTS = '{"text": "a"}\n' * 9
BAD = {  # what is read before and after, and what is said of the row between
    "too many fields": (ROWS_OF_CSV, b"x,y,z\n", "line 11: 3 fields, the header has 2"),
    "too many behind a field of two lines": (
        ROWS_OF_CSV + '"a\nb",c\n',
        b"x,y,z\n",
        "line 13: 3 fields, the header has 2",
    ),
    "a byte in CSV": (
        ROWS_OF_CSV,
        b"x\xff,y\n",
        "line 11, column 2: byte 0xff is not UTF-8 (--encoding names another)",
    ),
    "a byte in a field of two lines": (
        ROWS_OF_CSV,
        b'"x\ny\xff",z\n',
        "line 12, column 2: byte 0xff is not UTF-8",
    ),
    "half a line": (OBJECTS, b'{"text": \n', "line 10, column 10: not JSON"),
    "a list": (OBJECTS, b"[1]\n", "line 10: a JSON list, not an object"),
    "a byte in JSON": (
        OBJECTS,
        b'{"text": "\xff"}\n',
        "line 10, column 11: byte 0xff is not UTF-8",
    ),
    "half a character": (
        OBJECTS,
        b'{"text": "\\ud83d"}\n',
        "line 10: a string holds half a character",
    ),
    "no number": (OBJECTS, b'{"text": NaN}\n', "line 10: NaN is no JSON"),
    "deep": (
        OBJECTS,
        b'{"text": ' + b"[" * 3000 + b"]" * 3000 + b"}\n",
        "line 10: a number of thousands of digits, or lists",
    ),
    "zero byte": (OBJECTS, b'{"text": "\0"}\n', "line 10, column 11: not JSON"),
}


@pytest.mark.parametrize("case", [case for case in BAD if case != "zero byte"])
@pytest.mark.parametrize("size", [None, 45, 100])
def test_rows_that_cannot_be_read_are_named_and_left_out(
    path: Path, case: str, size: int | None
) -> None:
    sound, wrong, said = BAD[case]
    rest = "".join(sound.splitlines(keepends=True)[1:])
    bad, expected = BadRows(), read(path, sound + rest)
    assert_frame_equal(read(path, sound.encode() + wrong + rest.encode(), bad, size=size), expected)
    assert [str(row).removeprefix(f"{path}, ").startswith(said) for row in bad.rows] == [True]
    for strict in (None, BadRows(strict=True)):
        with pytest.raises(DataError, match="a row cannot be read") as caught:
            read(path, sound.encode() + wrong + rest.encode(), strict, size=size)
        assert said.startswith(caught.value.where.removeprefix(f"{path}, "))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_other_encodings(path: Path, encoding: str) -> None:
    lines = ["text;labels", *(f"tëxt {number};a,b" for number in range(9))]
    content, rows = (
        "\r\n".join(lines).encode(encoding),
        [(f"tëxt {number}", "a,b") for number in range(9)],
    )
    for size in (None, 90):
        assert (
            read(
                path, content, encoding=encoding if encoding == "cp1252" else None, size=size
            ).rows()
            == rows
        )


VALUES = [
    st.integers(-9, 9) | st.sampled_from([0.5, -2.25]),
    st.text(max_size=4),
    st.lists(st.text(max_size=3), max_size=2),
    st.booleans(),
]


@settings(deadline=None, max_examples=150)
@given(
    rows=st.sampled_from(VALUES).flatmap(
        lambda values: st.lists(st.tuples(st.text(max_size=9), st.none() | values), min_size=3)
    )
)
def test_json_lines_in_blocks(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    content = "\n".join(
        json.dumps({"text": text} if value is None else {"text": text, "a": value})
        for text, value in rows
    )
    frames = [read(path, content, size=size) for size in (None, 40)]
    assert_frame_equal(*frames, check_column_order=False)


def test_a_type_that_comes_late_makes_no_bad_row_count_twice(path: Path) -> None:
    bad = BadRows()
    assert (
        read(path, '{"a": 1}\n' * 9 + "[1]\n" + '{"a": "x"}\n' * 9, bad, size=30)["a"].to_list()
        == ["1"] * 9 + ["x"] * 9
    )
    assert [row.line for row in bad.rows] == [10]


CELLS = st.text(st.sampled_from('ab,;"\n\r\t é'), min_size=1, max_size=8).filter(str.strip)


@settings(deadline=None, max_examples=150)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=12),
    separator=st.sampled_from(",\t"),
)
def test_rows_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], separator: str
) -> None:
    path, stream = tmp_path_factory.mktemp("rows") / "x", io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, lineterminator="\r\n").writerows(
        [("text", "labels"), *rows]
    )
    for size in (None, 30):
        assert read(path, stream.getvalue(), size=size).rows() == rows


TWICE = [
    '{"text": "a", "labels": ["text", "labels"]}',
    '{"text": "b", "labels": ["x"], "text": "c"}',
    '{"text": "say \\"text\\": \\"text\\"", "labels": []}',
]
TYPES = [
    json.dumps({"text": "a", "labels": {"x": 1} if row in (7, 40) else ["a"]}) for row in range(60)
]


@pytest.mark.parametrize(
    ("lines", "texts", "bad"),
    [
        (TWICE, ["a", 'say "text": "text"'], [(2, "the key 'text' stands twice in an object")]),
        (TYPES, ["a"] * 58, [(8, "'labels' is of type dict"), (41, "'labels' is of type dict")]),
        *(
            ([first, '{"text": "a"}', '{"text": "b"}'], ["a", "b"], [(1, "not JSON")])
            for first in ("# notes", "text,labels", "nothing")
        ),
    ],
)
def test_a_few_odd_lines_cost_themselves(
    path: Path, lines: list[str], texts: list[str], bad: list[tuple[int, str]]
) -> None:
    found = BadRows()
    path.write_text("\n".join(lines))
    assert pl.concat(read_text_table(path, None, found))["text"].to_list() == texts
    assert [(row.line, row.why) for row in found.rows] == bad


def test_numbers_in_a_few_lists_of_texts_are_told(path: Path) -> None:
    bad = BadRows()
    path.write_text(
        "\n".join(
            json.dumps(
                {"labels": [1, 2.5, True, None] if row == 5 else ["2018"] if row == 6 else ["a"]}
            )
            for row in range(60)
        )
    )
    assert pl.concat(read_text_table(path, None, bad))["labels"][5].to_list() == [
        "1",
        "2.5",
        "true",
        None,
    ]
    assert bad.close() == [f"{path}: numbers among the texts of 'labels' are read as text (line 6)"]


def test_a_large_table_is_the_same_as_a_small_one(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"text": [f'line "{number}"\nmore, text' for number in range(50)], "labels": ["a"] * 50}
    )
    write_table(frame, tmp_path / "x.tsv.gz")
    assert_frame_equal(read(tmp_path / "y", (tmp_path / "x.tsv.gz").read_bytes(), size=99), frame)


SCHEMA = {"number": pl.Int64(), "name": pl.String()}
BLOCKS, ROWS = 120, 50_000

PEAK = f"""
import resource, sys
from pathlib import Path
import numpy as np, polars as pl
from plant_cli.data.parquet import write_frames
def frames(count):
    for i in range(count):
        yield pl.DataFrame({{"number": np.random.default_rng(i).integers(0, 2**62, {ROWS}), "other": np.full({ROWS}, i)}})
write_frames(Path(sys.argv[1]), frames(8), {{"number": pl.Int64(), "other": pl.Int64()}}, {{}})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_frames(Path(sys.argv[1]), frames({BLOCKS}), {{"number": pl.Int64(), "other": pl.Int64()}}, {{}})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def frames(count: int) -> Iterator[pl.DataFrame]:
    for i in range(count):
        yield pl.DataFrame({"number": [i, i], "name": [f"n{i}", None]})


def test_frames_stand_below_one_another_in_order_with_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_frames(path, frames(100), SCHEMA, {"plant.format": "7"})
    assert pl.read_parquet(path).equals(pl.concat(frames(100)))
    assert pl.read_parquet_metadata(path)["plant.format"] == "7"
    write_frames(path, frames(0), SCHEMA, {})
    assert pl.read_parquet(path).schema == SCHEMA


def test_what_the_frames_raise_comes_through_and_no_file_is_left(tmp_path: Path) -> None:
    begun = []

    def failing() -> Iterator[pl.DataFrame]:
        begun.extend(tmp_path.iterdir())  # so that polars makes no file later on
        yield from frames(3)
        raise Interrupted("stopped", where="here", expected="more", todo="again")

    with pytest.raises(Interrupted, match="stopped") as caught:
        write_frames(tmp_path / "rows.parquet", failing(), SCHEMA, {})
    assert caught.value.where == "here"
    assert len(begun) == 1
    assert not list(tmp_path.iterdir())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """96 MB of rows in 0.8 MB blocks add less than half of that to the process's peak."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "rows.parquet")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        pl.scan_parquet(tmp_path / "rows.parquet").select(pl.len()).collect().item()
        == BLOCKS * ROWS
    )
    assert int(done.stdout) < BLOCKS * ROWS * 16 // 2


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "value",
    [
        {"articles": [{"text": "a b", "labels": ["x"]}, {"text": "c", "labels": []}]},
        {
            "count": 2,
            "next": None,
            "schema": {"fields": []},
            "data": [{"text": "a b", "labels": ["x"]}, {"text": "c", "labels": []}],
        },
        {"text": ["a b", "c"], "labels": [["x"], []]},
        {"text": {"0": "a b", "1": "c"}, "labels": {"0": ["x"], "1": []}},
        {"columns": ["text", "labels"], "index": [0, 1], "data": [["a b", ["x"]], ["c", []]]},
        {"d1": {"text": "a b", "labels": ["x"]}, "d2": {"text": "c", "labels": []}},
    ],
)
def test_one_json_object_with_all_rows(
    tmp_path: Path, value: dict[str, Any], indent: int | None
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(value, indent=indent))
    frame = scan_table(tmp_path / "x.json").collect()
    assert frame.select("text", "labels").rows() == [("a b", ["x"]), ("c", [])]
    assert ("doc_id" in frame.columns) == ("d1" in value)


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a longer text", "labels": ["a"], "spans": [{"start": 1}]},
        {"text": "a", "labels": {"b": 1}},
        {"a": {}},
    ],
)
def test_one_json_object_that_is_a_row(tmp_path: Path, row: dict[str, Any]) -> None:
    assert unwrap_rows(row) is None
