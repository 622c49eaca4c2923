from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.data.records import FORMAT, require_same, stamp

A, B = "a" * 64, "b" * 64


def check(found: dict[str, object], **wanted: str) -> None:
    require_same(found, path=Path("run/mig/mig.parquet"), what="the relevance", todo="run `plant mig --force`", **wanted)


def test_a_stamp_holds_the_format_and_the_hashes_that_apply() -> None:
    assert stamp() == {"format": str(FORMAT)}
    assert stamp(labels=A) == {"format": str(FORMAT), "label_hash": A}
    assert stamp(labels=A, tokenizer=B) == {"format": str(FORMAT), "label_hash": A, "tokenizer_hash": B}


def test_what_was_stamped_passes_and_only_that() -> None:
    for found, wanted, unlike in (
        (stamp(labels=A, tokenizer=B), {"labels": A, "tokenizer": B}, {"labels": A, "tokenizer": A}),
        (stamp(labels=A), {"tokenizer": None}, {"tokenizer": A}),
        ({"format": FORMAT, "label_hash": A}, {"labels": A}, {"labels": B}),  # JSON may hold the format as a number
    ):
        check(found, **wanted)  # type: ignore[arg-type]
        with pytest.raises(ArtefactError, match="the relevance was made for another"):
            check(found, **unlike)  # type: ignore[arg-type]


@pytest.mark.parametrize(("wanted", "other"), [({"labels": B}, "label order"), ({"labels": A, "tokenizer": A}, "tokenizer")])
def test_another_hash_is_refused_with_both_places(wanted: dict[str, str], other: str) -> None:
    with pytest.raises(ArtefactError, match=f"the relevance was made for another {other}") as caught:
        check(stamp(labels=A, tokenizer=B), **wanted)
    assert caught.value.exit_code == 4
    assert "run/mig/mig.parquet" in caught.value.where
    assert "aaaaaaaaaaaa" in caught.value.where
    assert "bbbbbbbbbbbb" in caught.value.where
    assert caught.value.todo == "run `plant mig --force`"


def test_a_file_without_a_mark_is_refused() -> None:
    with pytest.raises(ArtefactError, match="another label order"):
        check(stamp(), labels=A)


@pytest.mark.parametrize("found", [{}, {"format": "2"}, {"format": None}])
def test_another_format_is_refused_before_anything_is_compared(found: dict[str, object]) -> None:
    with pytest.raises(ArtefactError, match="the relevance has format"):
        check(found, labels=A)
