"""Hints from known names, and what others' errors say."""

from plant_cli.api import first_line, near_names


def test_near_names_are_found_whatever_their_case() -> None:
    assert near_names("case_id", ["CASE_ID", "text"]) == "did you mean 'CASE_ID'?"
    assert near_names("FOO", ["bar", "Foo", "foo"]) == "did you mean 'Foo' or 'foo'?"
    assert near_names("colum", ["A", "a", "Column", "column", "COLUMN", "columns"]) == "did you mean 'COLUMN' or 'Column' or 'column'?"


def test_without_a_near_name_the_first_few_are_shown() -> None:
    assert near_names("x", [f"name {i:02}" for i in range(13)]) == f"one of {', '.join(f'name {i:02}' for i in range(12))}, …"
    assert near_names("x", []) == "none are known"


def test_the_first_line_of_what_an_error_says() -> None:
    assert first_line(ValueError("\n one\ntwo")) == "one"
    assert first_line(ValueError("x" * 9_000)) == "x" * 200
    assert first_line(ValueError(" ")) == first_line(ValueError()) == "ValueError"
