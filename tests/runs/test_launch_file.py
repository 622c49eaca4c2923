"""What is said of launched processes is read, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import UsageError
from plant_cli.runs.processes import read_launch


def test_the_description_is_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("num_processes: 2\nuse_cpu: true\n")
    assert read_launch(file) == {"num_processes": 2, "num_machines": 1, "use_cpu": True}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("a: [", "cannot be read"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("num_processes: true\n", "how many"),
        (f"num_processes: {'x' * 9000}\n", "num_processes is 'x{59} "),
        ("- 2\n", "how many"),
        ("use_cpu: true\n", "how many"),
        ("num_processes: two\n", "how many"),
        ("num_processes: 0\n", "how many"),
        ("num_processes: 2\nnum_machines: some\n", "num_machines is 'some'"),
    ],
)
def test_a_file_that_describes_no_launch_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "two.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=said) as caught:
        read_launch(file)
    assert caught.value.where == str(file)
    assert "accelerate config" in caught.value.todo


def test_the_command_that_makes_it_can_be_copied(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_launch(tmp_path / "two of them.yaml")
    assert caught.value.todo == f"accelerate config --config_file '{tmp_path}/two of them.yaml'"
