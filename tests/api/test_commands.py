"""Command lines of messages can be typed as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

from plant_cli.api.context import DEFAULT_RUN, command_for


def test_a_command_can_be_copied_into_a_shell():
    assert command_for("finetune", None, DEFAULT_RUN) == "plant finetune"
    given = shlex.split(command_for("finetune", "b", Path("my first ü; run")))
    assert given == ["plant", "finetune", "--run", "my first ü; run", "--tag", "b"]
