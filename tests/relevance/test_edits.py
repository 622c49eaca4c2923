from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.relevance.relevance_table import FILE, LabelEdits, read_edits, write_edits


def test_round_trip_keeps_words_that_yaml_would_change(tmp_path: Path) -> None:
    edits = {"1e4": LabelEdits(deny=frozenset({"no", "null", "12:30"}), allow={"on": 0.25, "été": 1.0}), "B": LabelEdits(allow={"x": 1e-4})}
    edits["line\x85ends"] = LabelEdits(deny=frozenset({"\x85x", "a\u2028b"}))
    write_edits(tmp_path, edits)
    assert read_edits(tmp_path) == edits


def test_later_edits_win() -> None:
    first = LabelEdits(deny=frozenset({"a", "b"}), allow={"c": 0.5, "d": 0.5})
    joined = first.then(LabelEdits(deny=frozenset({"c"}), allow={"a": 0.1}))
    assert joined == LabelEdits(deny=frozenset({"b", "c"}), allow={"d": 0.5, "a": 0.1})
    assert joined.then(LabelEdits(deny=frozenset({"c"}), allow={"a": 0.1})) == joined
    assert joined.then(LabelEdits(allow={"a": 0.9})).allow == {"d": 0.5, "a": 0.9}


def test_nothing_left_removes_the_file(tmp_path: Path) -> None:
    write_edits(tmp_path, {"a": LabelEdits(deny=frozenset({"x"}))})
    write_edits(tmp_path, {"a": LabelEdits()})
    assert not (tmp_path / FILE).exists()
    assert read_edits(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: {deny: word}", "deny"),
        ("a: {denied: [x]}", "denied"),
        ("a: {allow: {x: much}}", "much"),
        ("a: {allow: {x: 1.5}}", "1.5"),
        ("a: [x]", "list"),
        ("- a", "list"),
        ("a: {deny: [x", "parsing"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ArtefactError) as caught:
        read_edits(tmp_path)
    assert what in caught.value.what
    assert FILE in caught.value.where
    assert "mig edit" in caught.value.todo
    assert caught.value.exit_code == 4
