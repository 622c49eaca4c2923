"""What a stage works with: names, command lines, tables, and the reporter that shows nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from plant_cli.api import Column, SilentReporter, Table
from plant_cli.api.context import DEFAULT_RUN, command_for, names_folder, with_tag


def test_a_command_can_be_copied_into_a_shell():
    assert command_for("finetune", None, DEFAULT_RUN) == "plant finetune"
    given = shlex.split(command_for("finetune", "b", Path("my first ü; run")))
    assert given == ["plant", "finetune", "--run", "my first ü; run", "--tag", "b"]


@pytest.mark.parametrize("name", ["baseline", "v-1", "0.5_x"])
def test_what_can_be_part_of_a_folders_name(name: str) -> None:
    assert names_folder(name)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "ABC", "-a", ".a", "a\n", "a b", "é"])
def test_what_cannot(name: str) -> None:
    assert not names_folder(name)


def test_a_command_of_a_variant_has_its_tag() -> None:
    assert with_tag("plant eval", None) == "plant eval"
    assert with_tag("plant eval", "baseline") == "plant eval --tag baseline"


def test_a_row_of_another_length_is_refused() -> None:
    columns = [Column(name="label"), Column(name="documents")]
    assert Table(title="Labels", columns=columns, rows=[("A", 1)]).rows == [("A", 1)]
    with pytest.raises(ValueError, match="row 2 of the table 'Labels' has 1 cells for 2 columns"):
        Table(title="Labels", columns=columns, rows=[("A", 1), ("B",)])


def test_notes_and_warnings_are_kept() -> None:
    reporter = SilentReporter()
    reporter.note("seen")
    reporter.warn("odd")
    with reporter.progress("sowing", 3, "seeds") as task:
        task.advance(3, loss=0.5)
    assert (reporter.notes, reporter.warnings) == (["seen"], ["odd"])
