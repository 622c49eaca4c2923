"""Shards share the documents without loss or repetition."""

import pytest

from plant_cli.relevance.shard import Shard


@pytest.mark.parametrize("of", [1, 2, 7])
def test_shards_hold_every_document_once(of: int) -> None:
    documents = list(range(20))
    shares = [documents[Shard(number, of).rows] for number in range(1, of + 1)]
    assert sorted(document for share in shares for document in share) == documents
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_shard_is_written_as_it_is_read() -> None:
    assert str(Shard.parse("2/4")) == "2/4"


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "x/2", "2"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no shard|invalid literal"):
        Shard.parse(text)


@pytest.mark.parametrize("total", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("of", [1, 2, 3, 8])
def test_parts_are_the_whole_one_after_the_other_and_alike(total: int, of: int) -> None:
    parts = [Shard(number, of).part(total) for number in range(1, of + 1)]
    assert [row for part in parts for row in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
