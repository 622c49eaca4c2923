"""Processes that work together."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import UsageError
from plant_cli.cli.launching import _naming_run


def test_errors_of_another_process_name_the_run_and_not_its_copy() -> None:
    copy, run = Path("/tmp/plant-process-1/run"), Path("plant-run")
    with pytest.raises(UsageError) as caught, _naming_run(copy, run):
        raise UsageError(
            f"no run in '{copy}'",
            where=f"{copy}/corpus",
            expected="a run",
            todo=f"plant mig --run {copy}",
        )
    assert "plant-process" not in str(caught.value)
    assert caught.value.where == "plant-run/corpus"
