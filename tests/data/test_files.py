"""Files that are whole or not there, lines of files in any encoding, and rows that cannot be
read.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import pickle
import re
import resource
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import ArtefactError, DataError, DataSection, UsageError
from plant_cli.api.options import SIZE_PATTERN
from plant_cli.data import lines as module
from plant_cli.data.blocks import cut_blocks, work_ahead
from plant_cli.data.files import (
    LARGEST_RECORD,
    ListHash,
    StringsHash,
    hash_file,
    hash_json,
    hash_strings,
    name_temporary,
    read_json,
    read_size,
    remove,
    remove_temporaries,
    replacing,
    replacing_folder,
    require_free,
    show_size,
    write_json,
    write_json_lines,
)
from plant_cli.data.lines import (
    LINES_LISTED,
    SUFFIXES,
    WRITTEN,
    BadRows,
    bare_name,
    decode_text,
    find_encoding,
    find_fallback,
    open_bytes,
    read_bytes,
    read_lines,
    spool,
    watching,
    writing_bytes,
    writing_text,
)
from plant_cli.data.tables import scan_table


def test_a_json_value_survives_the_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "value.json"
    value = {"name": "नमस्ते", "numbers": [1, 2.5, None], "deep": {"yes": True}}
    write_json(path, value)
    assert read_json(path, "the value") == value
    assert [p.name for p in path.parent.iterdir()] == ["value.json"]


def fail_half_way(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text("2")
        raise RuntimeError("half way")


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="a device or a pipe"), replacing(tmp_path / "pipe"):
        raise AssertionError
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="no folder in which nobody can make a file"
)
def test_a_folder_that_takes_no_file_is_told() -> None:
    with (
        pytest.raises(UsageError, match="the output cannot be written") as caught,
        replacing(Path("/proc/x.csv")),
    ):
        raise AssertionError
    assert caught.value.where == "/proc"


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, 1)
    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way(path)
    assert read_json(path, "the value") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_of_an_output_goes_and_what_a_living_one_writes_stays(
    tmp_path: Path,
) -> None:
    script = (
        "import sys, pathlib; from plant_cli.data.files import name_temporary; "
        "name_temporary(pathlib.Path(sys.argv[1])).mkdir()"
    )
    path = tmp_path / "value.json"
    subprocess.run([sys.executable, "-c", script, path], check=True)
    (left,) = tmp_path.iterdir()
    of_others = {
        name_temporary(path),
        left.with_name(f"{left.name}.gz"),  # of another output
        left.with_name(f".{'0' * 32}-value.json"),  # of another machine
    }
    for other in of_others:
        other.write_text("half")
    require_free(path, force=False)
    assert {*tmp_path.iterdir()} == of_others


def test_the_temporary_file_keeps_the_suffix(tmp_path: Path) -> None:
    with replacing(tmp_path / "x.parquet") as temporary:
        assert temporary.suffix == ".parquet"
        assert temporary.parent == tmp_path
        temporary.touch()
    assert (tmp_path / "x.parquet").exists()


def test_not_a_number_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", float("nan"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (None, "x.json", "missing"),
        (b'{"a": 1', "line 1", "damaged"),
        (b"[" * 100_000, "x.json", "the value is damaged"),
        (b"9" * 5_000, "x.json", "the value is damaged"),
        (b'"\xff"', "x.json", "byte 1 is not UTF-8"),
        (b'{"value": NaN}', "x.json", "the value is damaged"),
        (b"[-Infinity]", "x.json", "the value is damaged"),
        (b"[1e999]", "x.json", "the value is damaged"),
        (b"9" * 400, "x.json", "the value is damaged"),
    ],
    ids=["missing", "cut", "deep", "long", "bytes", "nan", "infinite", "huge", "whole"],
)
def test_bad_files_are_explained(
    tmp_path: Path, content: bytes | None, where: str, what: str
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError) as caught:
        read_json(path, "the value")
    assert what in caught.value.what
    assert where in caught.value.where
    assert caught.value.exit_code == 4


def test_a_record_as_large_as_no_command_writes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.touch()
    os.truncate(path, LARGEST_RECORD + 1)
    with pytest.raises(ArtefactError, match="the value is damaged: it has 268 MB"):
        read_json(path, "the value")


def fail_in_folder(path: Path) -> None:
    with replacing_folder(path) as temporary:
        (temporary / "other.txt").write_text("2")
        raise RuntimeError("half way")


def test_a_folder_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder"
    with replacing_folder(path) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "value.txt").write_text("1")
        assert not path.exists()
    with pytest.raises(RuntimeError, match="half way"):
        fail_in_folder(path)
    assert [p.name for p in path.rglob("*.txt")] == ["value.txt"]
    with replacing_folder(path) as temporary:
        (temporary / "other.txt").write_text("2")
    assert [p.name for p in path.rglob("*.txt")] == ["other.txt"]
    assert [p.name for p in path.parent.iterdir()] == ["folder"]


@pytest.fixture
def umask() -> Iterator[None]:
    """New files may be read by all and written by the group, whoever runs the tests."""
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_private(path: Path) -> None:
    """As safetensors writes: only its owner may read it."""
    path.write_text("weights")
    path.chmod(0o600)


@pytest.mark.usefixtures("umask")
def test_a_file_has_the_rights_of_any_new_file_or_of_the_one_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with replacing(path) as temporary:
        write_private(temporary)
    assert mode(path) == 0o664
    path.chmod(0o640)
    with replacing(path) as temporary:
        write_private(temporary)
    assert mode(path) == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("umask")
def test_the_files_of_a_folder_may_be_read_like_any_new_file(tmp_path: Path) -> None:
    with replacing_folder(tmp_path / "export") as temporary:
        (temporary / "backbone").mkdir()
        write_private(temporary / "backbone" / "model.safetensors")
        (temporary / "run.sh").touch(0o700)
    assert mode(tmp_path / "export" / "backbone" / "model.safetensors") == 0o664
    assert mode(tmp_path / "export" / "run.sh") == 0o764
    assert sorted(p.name for p in (tmp_path / "export").iterdir()) == ["backbone", "run.sh"]


@pytest.mark.parametrize("write", [replacing, replacing_folder])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), errno.ENOSPC),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "what was read"), errno.EDQUOT),
        (RuntimeError("I/O error: No space left on device (os error 28)"), errno.ENOSPC),
        (
            RuntimeError("parquet: File out of specification: Invalid thrift: transport error"),
            errno.ENOSPC,
        ),
    ],
)
def test_a_full_disk_names_what_was_to_be_written(
    tmp_path: Path, write: Callable[[Path], Any], error: Exception, code: int
) -> None:
    with pytest.raises(OSError, match=r"left|quota") as caught, write(tmp_path / "out"):
        raise error
    assert (caught.value.errno, caught.value.filename) == (code, str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "stage" / "checkpoints").mkdir(parents=True)
    kept = [
        tmp_path / "stage" / name
        for name in ("model.bin", ".hidden", ".x-model.bin", f"{'a' * 32}-model.bin")
    ]
    left = [
        tmp_path / "stage" / f".{'a' * 32}-model.bin",
        tmp_path / "stage" / "checkpoints" / f".{'0' * 32}",
        tmp_path / f".{'b' * 32}-run.json",
    ]
    for path in [*kept, *left]:
        path.touch()
    (tmp_path / f".{'c' * 32}-export" / "inner").mkdir(parents=True)
    remove_temporaries(tmp_path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stage"]


def test_temporaries_behind_a_link_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f".{'a' * 32}-x").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stage").symlink_to(tmp_path / "elsewhere")
    remove_temporaries(tmp_path / "run")
    assert (tmp_path / "elsewhere" / f".{'a' * 32}-x").exists()


def test_removing_a_link_keeps_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling", "not-there"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "a").exists()
    remove(tmp_path / "folder")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("room", range(400, 3000, 150))
def test_a_parquet_file_that_may_not_grow_is_named_at_every_size(tmp_path: Path, room: int) -> None:
    """The footer, which is written last, too: its writer does not say why it failed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    frame = pl.DataFrame({f"column {number}": [1.0] for number in range(30)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with (
            pytest.raises(OSError, match="File too large"),
            replacing(tmp_path / "table.parquet") as temporary,
        ):
            frame.write_parquet(temporary)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [False, True])
def test_only_force_replaces_and_only_what_is_of_the_same_kind(
    tmp_path: Path, folder: bool
) -> None:
    places = [tmp_path / "file", tmp_path / "folder"]
    places[0].touch()
    places[1].mkdir()
    alike, other = places[folder], places[not folder]
    require_free(tmp_path / "new", force=False, folder=folder)
    require_free(tmp_path / "new" / "deep", force=False, folder=folder)
    with pytest.raises(UsageError, match="the output cannot be written"):
        require_free(places[0] / "new", force=True, folder=folder)
    require_free(alike, force=True, folder=folder)
    with pytest.raises(UsageError, match="there already") as caught:
        require_free(alike, force=False, folder=folder)
    assert (caught.value.where, "--force" in caught.value.todo) == (str(alike), True)
    for force in (False, True):
        with pytest.raises(UsageError, match=f"the output is a {other.name}") as caught:
            require_free(other, force=force, folder=folder)
        assert "--force" not in caught.value.todo


def test_json_lines_hold_a_value_each(tmp_path: Path) -> None:
    write_json_lines(
        tmp_path / "history.jsonl", [{"epoch": 1, "loss": None}, {"epoch": 2, "loss": 0.5}]
    )
    assert (
        tmp_path / "history.jsonl"
    ).read_text() == '{"epoch": 1, "loss": null}\n{"epoch": 2, "loss": 0.5}\n'


@pytest.mark.parametrize(
    ("text", "count"), [("500MB", 5 * 10**8), ("1.5GB", 15 * 10**8), ("2KB", 2000), ("1TB", 10**12)]
)
def test_sizes_are_read(text: str, count: int) -> None:
    assert re.fullmatch(SIZE_PATTERN, text)
    assert read_size(text) == count
    assert not re.fullmatch(SIZE_PATTERN, text.replace("B", ""))


def test_sizes_are_shown_in_the_largest_unit_that_fits() -> None:
    assert [show_size(n) for n in (10, 640_000_000, 64_000_000_000)] == [
        "0.01 KB",
        "640 MB",
        "64 GB",
    ]


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"plant" * 1000)
    assert hash_file(path) == hashlib.sha256(b"plant" * 1000).hexdigest()


def test_the_order_of_keys_does_not_matter_but_values_do() -> None:
    assert hash_json({"a": 1, "b": [2]}) == hash_json({"b": [2], "a": 1})
    assert hash_json({"a": 1}) != hash_json({"a": 2})
    with pytest.raises(ValueError, match="JSON compliant"):
        hash_json(float("inf"))


def test_the_hash_of_strings_is_stable_over_releases() -> None:
    expected = hashlib.sha256(
        b"\x01" + b"\0" * 7 + b"a" + b"\x02" + b"\0" * 7 + "ä".encode()
    ).hexdigest()
    assert hash_strings(["a", "ä"]) == expected


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_lists_have_different_hashes(left: list[str], right: list[str]) -> None:
    assert (hash_strings(left) == hash_strings(right)) == (left == right)


@given(st.lists(st.lists(st.text(), max_size=3), max_size=6), st.integers(0, 6))
def test_hashes_of_parts_are_those_of_the_whole(values: list[list[str]], cut: int) -> None:
    lists, strings = ListHash(), StringsHash()
    for part in (values[:cut], values[cut:]):
        lists.add(part)
        for row in part:
            strings.add(row)
    assert lists.hexdigest() == hash_json(values)
    assert strings.hexdigest() == hash_strings(string for row in values for string in row)


def test_blocks_hold_as_much_as_surely_fits_and_at_least_one_label() -> None:
    assert cut_blocks(np.array([3, 3, 3, 20, 1, 1]), 7) == [0, 2, 3, 4, 6]
    assert cut_blocks(np.array([3, 3]), 100, 0) == [0, 1, 2]
    assert cut_blocks(np.array([], dtype=np.int64), 5) == [0]


def test_results_come_in_order_and_never_pile_up() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(50):
            taken.append(i)
            yield i

    for place, made in enumerate(work_ahead(lambda i: i * i, numbers(), jobs=2)):
        assert made == place**2
        assert len(taken) <= place + 5


def test_a_failure_is_raised_and_the_threads_end() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        list(work_ahead(lambda i: 1 // (3 - i), range(100), jobs=2))
    assert threading.active_count() == before


def test_lines_end_in_any_way_and_a_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nfour")
    assert list(read_lines(tmp_path / "x", BadRows())) == [
        (1, "one"),
        (2, "two"),
        (3, ""),
        (4, "four"),
    ]
    assert [line for _, line in read_lines(tmp_path / "x", BadRows(), ends=True)] == [
        "one\r\n",
        "two\n",
        "\n",
        "four",
    ]


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-16-le"])
def test_wide_encodings(tmp_path: Path, codec: str) -> None:
    (tmp_path / "x").write_bytes("\u00e9\r\nb".encode(codec))
    assert list(read_lines(tmp_path / "x", BadRows(), codec if codec.endswith("le") else None)) == [
        (1, "\u00e9"),
        (2, "b"),
    ]


def test_a_wrong_byte_is_named_with_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("\ufeffgood\n\u00e4b".encode() + b"\xff\nlast\n")
    bad = BadRows()
    assert [line for _, line in read_lines(tmp_path / "x", bad)] == ["good", "last"]
    assert bad.rows[0].place == f"{tmp_path / 'x'}, line 2, column 3"
    assert bad.rows[0].content == "\u00e4b\ufffd"
    with pytest.raises(DataError, match="0xff is not UTF-8"):
        list(read_lines(tmp_path / "x", BadRows(strict=True)))


def test_the_first_ten_are_listed_and_all_are_kept(tmp_path: Path) -> None:
    assert BadRows().close() == []
    bad = BadRows.of(DataSection(rejects=str(tmp_path / "rejects.tsv")))
    for line in range(1, 13):
        bad.add(Path("x.txt"), line, "no tab", f"row\t{line}")
    (remark,) = bad.close()
    assert remark.startswith("12 rows cannot be read")
    assert remark.count("no tab") == LINES_LISTED
    kept = (tmp_path / "rejects.tsv").read_text().splitlines()
    assert len(kept) == 13
    assert kept[1] == 'x.txt\t1\t\tno tab\t"row\t1"'


def test_rejects_replace_nothing_but_rejects(tmp_path: Path) -> None:
    """The corpus itself may be named by mistake."""
    place = tmp_path / "rejects.tsv"
    data = DataSection(rejects=str(place))
    for content in ("", "file\tline\tcolumn\treason\tcontent\nx\t1\t\tno tab\ty\n"):
        place.write_text(content)
        BadRows.of(data).close()
        assert place.read_text() == "file\tline\tcolumn\treason\tcontent\n"
    place.write_text("text,labels\n")
    with pytest.raises(UsageError, match="would replace another file"):
        BadRows.of(data)
    assert place.read_text() == "text,labels\n"


def test_ten_lines_of_another_encoding_cost_themselves(tmp_path: Path) -> None:
    """One more is an error: see `messages.yaml`."""
    (tmp_path / "x").write_bytes("naïve\n".encode("latin-1") * LINES_LISTED + b"plain\n")
    bad = BadRows()
    assert [line for _, line in read_lines(tmp_path / "x", bad)] == ["plain"]
    assert len(bad.rows) == LINES_LISTED


TEXT = "line\n" * 200_000


@pytest.mark.parametrize("suffix", ["", *WRITTEN])
def test_what_is_written_is_read_and_equal_texts_give_equal_bytes(
    tmp_path: Path, suffix: str
) -> None:
    first, second = tmp_path / f"a.txt{suffix}", tmp_path / f"b.txt{suffix}"
    for path in (first, second):
        with writing_text(path) as stream:
            stream.write(TEXT)
    assert first.read_bytes() == second.read_bytes()
    assert read_bytes(first).decode() == TEXT
    assert bare_name(first) == "a.txt"
    if suffix:
        assert first.stat().st_size < 10_000


def compress(path: Path, content: bytes) -> bytes:
    with writing_bytes(path) as stream:
        stream.write(content)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_truncated_file_and_damage_in_the_middle_are_noticed(tmp_path: Path, suffix: str) -> None:
    content = compress(tmp_path / f"c{suffix}", "".join(map(str, range(100_000))).encode())
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    for spoilt in (content[: len(content) // 2], content[: int(0.99 * len(content))], flipped):
        (tmp_path / "x").write_bytes(spoilt)
        with pytest.raises(DataError, match="truncated or damaged"):
            read_bytes(tmp_path / "x")


@pytest.mark.parametrize("suffix", WRITTEN)
def test_files_put_one_after_the_other_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x").write_bytes(
        compress(tmp_path / f"c{suffix}", b"a\n") + compress(tmp_path / f"c{suffix}", b"b\n")
    )
    assert read_bytes(tmp_path / "x") == b"a\nb\n"


def pack(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "others",
    [
        (),
        ("folder/",),
        ("__MACOSX/._a.csv", ".DS_Store"),
        ("README.txt", "LICENSE"),
        ("codes.pdf", "image.png"),
    ],
)
def test_the_one_file_of_data_in_a_zip_archive_is_read(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    path = pack(tmp_path / "a.csv.ZIP", {"folder/a.csv": b"a,b\n", **dict.fromkeys(others, b"")})
    assert read_bytes(path) == b"a,b\n"
    assert bare_name(path) == "a.csv"
    assert not any(suffix in bare_name(path).lower() for suffix in SUFFIXES)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (("train.csv", "test.csv"), "holds 2 files: train.csv, test.csv"),
        ((), "holds 0 files"),
        (("[Content_Types].xml", "xl/workbook.xml"), "a spreadsheet"),
        (("[Content_Types].xml", "word/document.xml"), "a Word document"),
        (("mimetype", "content.xml"), "OpenDocument"),
        (("model/data.pkl", "model/data/0"), "a file of PyTorch"),
        (("data.npy", "indices.npy"), "numpy arrays"),
    ],
)
def test_what_else_a_zip_archive_may_be_is_told(
    tmp_path: Path, members: tuple[str, ...], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        read_bytes(pack(tmp_path / "x", dict.fromkeys(members, b"")))


TAR = b"a.csv".ljust(257, b"\0") + b"ustar\x0000"


@pytest.mark.parametrize(
    ("content", "says", "todo"),
    [
        (b"%PDF-1.7 \x00", "a PDF document", "pdftotext"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "old Office", "save the sheet as CSV"),
        (TAR, "a tar archive", "tar -xf"),
        (gzip.compress(TAR, mtime=0), "a tar archive in a gzip file", "tar -xf"),
        (
            bz2.compress(gzip.compress(b"a", mtime=0)),
            "in this bzip2 file is another packed one",
            "unpack it",
        ),
        (lzma.compress(b"PAR1xxxxPAR1"), "in this xz file is Parquet", "unpack it"),
        (b"7z\xbc\xaf\x27\x1c\0", "a 7z archive", "7z x"),
        (b"Rar!\x1a\x07\x00", "a RAR archive", "unrar x"),
        (b"\x89PNG\r\n", "an image", "OCR"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "an image", "OCR"),
        (b"SQLite format 3\x00", "an SQLite database", "sqlite3 -header -csv"),
        (pickle.dumps(["a"]), "a Python pickle", "runs its code"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "Parquet"),
        (b"ARROW1\0\0", "an Arrow or Feather file", "read_ipc"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "a pointer of Git LFS",
            "git lfs pull",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_a_file_that_holds_no_text_is_called_by_its_name(
    tmp_path: Path, content: bytes, says: str, todo: str
) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_bytes(tmp_path / "x")
    assert todo in caught.value.todo


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("\n<!DOCTYPE html><html><body>Sign in</body></html>", "a web page"),
        ("<?xml version='1.0'?>\n<corpus><text>a</text></corpus>", "an XML file"),
        ("<articleSet><article>a, b</article></articleSet>", "an XML file"),
        ("% Mulan\n@RELATION 'x: -C 2'\n", "an ARFF file"),
        ("-- dump, 1\nCREATE TABLE notes (id int);\n", "an SQL script"),
        ("@article{a, title={b}}\n", "a list of references"),
        ("TY  - JOUR\nTI  - a, b\n", "a list of references"),
        ("{\\rtf1\\ansi", "a text in rich text format"),
        ("\\documentclass{article}\n", "a LaTeX source"),
    ],
)
def test_a_text_that_is_no_table_is_called_by_its_name(
    tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(DataError, match=says) as caught:
        scan_table(tmp_path / "x.csv")
    assert "header" not in caught.value.todo


def test_a_table_of_marked_up_texts_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("<text>,labels\n<p>a</p>,b\n")
    assert scan_table(tmp_path / "x.csv").collect().columns == ["<text>", "labels"]


@pytest.mark.parametrize("packer", [gzip.compress, bz2.compress, lzma.compress])
def test_a_file_that_gives_very_many_times_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packer: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(module, "_MUCH", 1 << 16)
    (tmp_path / "x").write_bytes(packer(b"0" * (1 << 20)))
    with pytest.raises(DataError, match="more than 250 times its own size"):
        read_bytes(tmp_path / "x")
    (tmp_path / "x").write_bytes(packer(b"0" * (1 << 16)))
    assert len(read_bytes(tmp_path / "x")) == 1 << 16


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError), open_bytes(path):
            pass


def test_encodings(tmp_path: Path) -> None:
    assert find_encoding("a".encode("utf-32")[:4], None, "x") == "utf-32"
    assert find_encoding("ab".encode("utf-16")[:4], None, "x") == "utf-16"
    assert find_encoding(b"abcd", None, "x") == "utf-8-sig"
    assert find_encoding(b"abcd", "Latin-1", "x") == "iso8859-1"
    assert (
        find_encoding(b"\xef\xbb\xbfa", "cp1252", "x") == "utf-8-sig"
    )  # a mark says more than an option for all files
    with pytest.raises(DataError, match="no encoding named"):
        find_encoding(b"abcd", "klingon", "x")


@pytest.mark.parametrize(
    ("codec", "expected"),
    [("utf-8", None), ("utf-8-sig", None), ("utf-16", None), ("cp1252", "cp1252")],
)
def test_the_usual_encoding_is_for_what_is_not_unicode(codec: str, expected: str | None) -> None:
    content = "Möbel".encode(codec)
    assert find_fallback(content, "cp1252") == expected
    assert find_fallback(content, None) is None
    assert find_fallback(b"PAR1\xe4", "cp1252") is None
    assert decode_text(content, expected, "the text", "x") == "Möbel"


def files() -> list[Path]:
    return [path for path in Path(module._folder().name).rglob("*") if path.is_file()]


def test_frames_come_back_in_order_and_are_taken_one_at_a_time() -> None:
    alive = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal alive
        for number in range(3):
            alive = len(files())
            yield pl.DataFrame({"a": [number, number + 10]})

    before = len(files())
    parts = spool(frames())
    assert alive == before + 2
    assert [part.collect()["a"].to_list() for part in parts] == [[0, 10], [1, 11], [2, 12]]


def test_nothing_is_left_of_what_failed() -> None:
    def frames() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": [1]})
        raise ValueError("no more")

    before = files()
    with pytest.raises(ValueError, match="no more"):
        spool(frames())
    assert files() == before


def test_the_files_vanish_with_the_process(tmp_path: Path) -> None:
    code = (
        "import polars as pl; from plant_cli.data.lines import spool; "
        "print(spool([pl.DataFrame({'a': [7]})])[0].collect().item())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "7\n"
    assert not list(tmp_path.iterdir())


def test_who_watches_learns_of_the_rows() -> None:
    seen: list[int] = []
    with watching(seen.append):
        spool([pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3]})])
    spool([pl.DataFrame({"a": [4]})])
    assert seen == [2, 1]


def test_objects_without_a_key_become_nulls() -> None:
    frame = pl.DataFrame(
        {"a": [1], "b": [{}], "c": [[{}]], "d": [{"e": {}}]}, schema_overrides={"b": pl.Struct([])}
    )
    [read] = spool([frame])
    assert read.collect().rows() == [(1, None, None, None)]
