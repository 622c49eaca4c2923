"""Tables of every format, lists in their cells, sparse matrices, damage of Parquet."""

from __future__ import annotations

import os
import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from polars.exceptions import ComputeError, PanicException
from polars.testing import assert_frame_equal
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError
from plant_cli.data.lines import BadRows
from plant_cli.data.parquet import panics_as_errors, speaks_of_shortage
from plant_cli.data.tables import (
    collect,
    join_columns,
    load_sparse,
    peek_columns,
    scan_table,
    table_format,
    text_columns,
    whole_numbers,
    write_table,
    write_text_batches,
)
from plant_cli.data.vocabularies import read_vocabulary

CASES = yaml.safe_load((Path(__file__).parent / "messages.yaml").read_text("utf-8"))
FRAME = pl.DataFrame(
    {
        "doc_id": ["007", "b"],
        "text": ['He said "no", twice.\nThen\tleft; ünïcode नमस्ते', "plain"],
        "labels": [["one label", "two,three"], ['quo"te']],
    }
)


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.ndjson", "x.json", "x.jsonl.gz", "x.jsonl.zst"])
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
    assert scan_table(tmp_path / "really-tabs.csv").collect().to_dicts() == [{"text": "a, b", "labels": "x"}]


def test_a_name_with_glob_characters_is_only_a_name(tmp_path: Path) -> None:
    write_table(FRAME, tmp_path / "a[1]*.parquet")
    assert scan_table(tmp_path / "a[1]*.parquet").collect().height == 2


def test_a_huge_field_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,labels\n" + '"' + "word, " * 200_000 + '",a\n')
    assert scan_table(tmp_path / "x.csv").collect()["text"].str.len_chars().item() == 1_200_000


def test_equal_tables_give_equal_compressed_bytes(tmp_path: Path) -> None:
    write_table(FRAME, tmp_path / "a.jsonl.gz")
    write_table(FRAME, tmp_path / "b.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.csv", ".csv"), ("a.b.csv.gz", ".csv"), ("a.parquet", ".parquet"), ("a.gz", None), ("a.xlsx", None), ("csv", None)],
)
def test_the_format_that_a_name_promises(name: str, form: str | None) -> None:
    assert table_format(Path(name)) == form


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"][0][:60])
def test_what_cannot_be_read_is_explained(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = case["content"] if isinstance(case["content"], str) else "".join(text * times for text, times in case["content"])
    path = Path("x")
    path.write_bytes(content.encode("latin-1"))

    def read() -> None:
        if "read" in case:
            read_vocabulary(path, case.get("language"))
        collect(scan_table(path, encoding=case.get("encoding"), bad=BadRows() if "lenient" in case else None), "x")

    with pytest.raises(DataError) as caught:
        read()
    assert [caught.value.what, caught.value.where, caught.value.expected, caught.value.todo] == case["says"]
    assert caught.value.exit_code == 4


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
    pl.DataFrame({"text": [f"some text {i}" for i in range(2000)]}).write_parquet(path, compression="zstd")
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
    assert frame.select(whole_numbers("a"), whole_numbers("b")).to_dict(as_series=False) == {"a": [None, 2, None], "b": [1, None, None]}


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_is_known_by_its_mark_and_any_other_is_named(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("text,labels\ncaf\u00e9,b\n".encode(codec))
    assert collect(scan_table(path), "x").rows() == [("caf\u00e9", "b")]
    path.write_bytes("text,labels\ncaf\u00e9,b\n".encode("latin-1"))
    assert collect(scan_table(path, encoding="iso-8859-1"), "x").rows() == [("caf\u00e9", "b")]


def test_several_columns_become_one_text() -> None:
    assert text_columns("title,abstract", ["title", "abstract"]) == ["title", "abstract"]
    assert text_columns("a,b", ["a,b"]) == ["a,b"]
    frame = pl.DataFrame({"a": ["x", " ", None], "b": ["y ", "z", None]})
    assert frame.select(join_columns(["a", "b"])).to_series().to_list() == ["x\ny", "z", ""]


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.csv"])
@pytest.mark.parametrize("sizes", [(0, 2), (1, 0, 1), (0, 0), (2, 0), (1, 1)])
def test_batches_are_written_as_one_table_wherever_empty_ones_stand(tmp_path: Path, name: str, sizes: tuple[int, ...]) -> None:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    write_text_batches((FRAME[end - size : end] for size, end in zip(sizes, ends, strict=True)), tmp_path / name)
    write_table(FRAME[: ends[-1]], tmp_path / f"whole-{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()


MATRIX = csr_array(np.array([[0.0, 1.0], [2.0, 0.0]]))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_npz(tmp_path / "m.npz", MATRIX)
    return tmp_path / "m.npz"


def test_what_scipy_saved_is_read(saved: Path) -> None:
    assert (load_sparse(saved).toarray() == MATRIX.toarray()).all()


def test_every_flipped_byte_gives_a_matrix_or_a_reason(saved: Path) -> None:
    """Whichever part of the archive is hit: its list, a header, compressed numbers."""
    content, refused = saved.read_bytes(), 0
    for place in range(0, len(content), 7):
        spoilt = bytearray(content)
        spoilt[place] ^= 0x10
        saved.write_bytes(spoilt)
        with suppress(ValueError):
            load_sparse(saved)
            continue
        refused += 1
    assert refused > 20


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", b"\x93NUMPY"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        load_sparse(tmp_path / "m.npz")


@pytest.mark.parametrize(("indices", "indptr"), [([0, 2], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 9, 2])])
def test_places_outside_of_the_matrix_are_refused(tmp_path: Path, indices: list[int], indptr: list[int]) -> None:
    """Compiled code would read beyond its memory there."""
    parts = {"data": np.ones(2), "indices": np.array(indices), "indptr": np.array(indptr)}
    np.savez(tmp_path / "m.npz", format=np.array(b"csr"), shape=np.array([2, 2]), **parts)
    with pytest.raises(ValueError, match="ind"):
        load_sparse(tmp_path / "m.npz")


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
    assert all(str(table) in error.where and error.exit_code == 4 and "memory" not in str(error) for error in found)


def test_a_panic_for_want_of_memory_goes_through_and_another_becomes_an_error() -> None:
    with pytest.raises(PanicException), panics_as_errors():
        raise PanicException("memory allocation of 8 bytes failed")
    with pytest.raises(ComputeError, match="makes no sense: range end index 9"), panics_as_errors():
        raise PanicException("range end index 9 out of range")
    assert speaks_of_shortage(PanicException("failed to spawn thread"))
    assert not speaks_of_shortage(PanicException("capacity overflow"))
