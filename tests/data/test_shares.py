"""Shards share the documents without loss or repetition."""

from pathlib import Path

import pytest

from plant_cli.api import UsageError
from plant_cli.data.shares import Shard, find_paths, require_whole


@pytest.mark.parametrize("of", [1, 2, 7])
def test_shards_hold_every_document_once(of: int) -> None:
    documents = list(range(20))
    shares = [documents[Shard(number, of).rows] for number in range(1, of + 1)]
    assert sorted(document for share in shares for document in share) == documents
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("start", range(7))
def test_a_shard_of_what_begins_amid_the_documents_holds_the_same_ones(start: int) -> None:
    documents = list(range(20))
    for shard in (Shard(number, 3) for number in (1, 2, 3)):
        assert documents[start:][shard.rows_from(start)] == [row for row in documents[shard.rows] if row >= start]


def test_a_shard_is_written_as_it_is_read() -> None:
    assert str(Shard.parse("2/4")) == "2/4"


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "x/2", "2", "1/99999999999999999999"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no shard|invalid literal|at most"):
        Shard.parse(text)


@pytest.mark.parametrize("total", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("of", [1, 2, 3, 8])
def test_parts_are_the_whole_one_after_the_other_and_alike(total: int, of: int) -> None:
    parts = [Shard(number, of).part(total) for number in range(1, of + 1)]
    assert [row for part in parts for row in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_paths_are_named_once_and_sorted(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).mkdir()
    assert find_paths([str(tmp_path / "[bc]"), str(tmp_path / "?"), str(tmp_path / "none*")]) == [tmp_path / name for name in "abc"]


@pytest.mark.parametrize(
    ("shards", "what"),
    [
        (["1/3", "3/3"], "shard 2/3 is missing"),
        (["1/2", "1/2", "2/2"], "shard 1/2 is given twice"),
        (["1/1", "1/2", "2/2"], "the shards are of different divisions, into 1 and 2"),
        ([], "there are no shards"),
    ],
)
def test_shards_that_are_no_whole_are_refused(shards: list[str], what: str) -> None:
    given = {Path(str(number)): Shard.parse(text) for number, text in enumerate(shards)}
    with pytest.raises(UsageError, match=what) as caught:
        require_whole(given, "--merge", "plant mig --shard i/n")
    assert caught.value.where == f"--merge: {', '.join(f'{path} ({shard})' for path, shard in given.items()) or 'nothing'}"
    assert "`plant mig --shard i/n`" in caught.value.todo


def test_shards_of_a_whole_are_taken_in_any_order() -> None:
    require_whole({Path("b"): Shard(2, 2), Path("a"): Shard(1, 2)}, "--merge", "plant mig --shard i/n")
