"""Files that are whole or not there, their hashes and sizes; labels in blocks."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api.errors import ArtefactError, UsageError
from plant_cli.data.blocks import cut_blocks, work_ahead
from plant_cli.data.files import (
    SIZE_PATTERN,
    ListHash,
    StringsHash,
    hash_file,
    hash_json,
    hash_strings,
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


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, 1)
    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way(path)
    assert read_json(path, "the value") == 1
    assert list(tmp_path.iterdir()) == [path]


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
    [(None, "x.json", "missing"), (b'{"a": 1', "line 1", "damaged"), (b'"\xff"', "x.json", "byte 1 is not UTF-8")],
)
def test_bad_files_are_explained(tmp_path: Path, content: bytes | None, where: str, what: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError) as caught:
        read_json(path, "the value")
    assert what in caught.value.what
    assert where in caught.value.where
    assert caught.value.exit_code == 4


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
        (RuntimeError("parquet: File out of specification: Invalid thrift: transport error"), errno.ENOSPC),
    ],
)
def test_a_full_disk_names_what_was_to_be_written(tmp_path: Path, write: Callable[[Path], Any], error: Exception, code: int) -> None:
    with pytest.raises(OSError, match=r"left|quota") as caught, write(tmp_path / "out"):
        raise error
    assert (caught.value.errno, caught.value.filename) == (code, str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5_000])
def test_json_that_no_command_writes_is_damaged(tmp_path: Path, content: str) -> None:
    path = tmp_path / "value.json"
    path.write_text(content)
    with pytest.raises(ArtefactError, match="the value is damaged"):
        read_json(path, "the value")


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "stage" / "checkpoints").mkdir(parents=True)
    kept = [tmp_path / "stage" / name for name in ("model.bin", ".hidden", ".x-model.bin", f"{'a' * 32}-model.bin")]
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
        with pytest.raises(OSError, match="File too large"), replacing(tmp_path / "table.parquet") as temporary:
            frame.write_parquet(temporary)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [False, True])
def test_only_force_replaces_and_only_what_is_of_the_same_kind(tmp_path: Path, folder: bool) -> None:
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
    write_json_lines(tmp_path / "history.jsonl", [{"epoch": 1, "loss": None}, {"epoch": 2, "loss": 0.5}])
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1, "loss": null}\n{"epoch": 2, "loss": 0.5}\n'


@pytest.mark.parametrize(("text", "count"), [("500MB", 5 * 10**8), ("1.5GB", 15 * 10**8), ("2KB", 2000), ("1TB", 10**12)])
def test_sizes_are_read(text: str, count: int) -> None:
    assert re.fullmatch(SIZE_PATTERN, text)
    assert read_size(text) == count
    assert not re.fullmatch(SIZE_PATTERN, text.replace("B", ""))


def test_sizes_are_shown_in_the_largest_unit_that_fits() -> None:
    assert [show_size(n) for n in (10, 640_000_000, 64_000_000_000)] == ["0.01 KB", "640 MB", "64 GB"]


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
    expected = hashlib.sha256(b"\x01" + b"\0" * 7 + b"a" + b"\x02" + b"\0" * 7 + "ä".encode()).hexdigest()
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
