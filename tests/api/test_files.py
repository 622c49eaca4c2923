from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api.errors import ArtefactError
from plant_cli.api.files import read_json, replacing, replacing_folder, write_json


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
