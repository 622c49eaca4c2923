"""Reading a launch file, as `accelerate config` writes it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from plant_cli.api.errors import UsageError, first_line


def read_launch(file: Path) -> dict[str, Any]:
    """The content of a launch file, with `num_processes` and `num_machines`.

    Raises:
        UsageError: the file cannot be read, or does not say how many processes run.
    """
    import yaml

    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _refused(file, f"the launch file cannot be read: {first_line(error)}") from error
    except RecursionError as error:
        raise _refused(file, "the launch file cannot be read: it is nested too deeply") from error
    description = {"num_machines": 1, **(found if isinstance(found, dict) else {})}
    for key in ("num_processes", "num_machines"):
        count = description.get(key)
        if type(count) is not int or count < 1:
            raise _refused(file, f"the launch file does not say how many processes run: {key} is {count!r:.60}")
    return description


def _refused(file: Path, what: str) -> UsageError:
    return UsageError(
        what,
        where=str(file),
        expected="YAML with num_processes and where they run, as `accelerate config` writes it",
        todo=f"accelerate config --config_file {shlex.quote(str(file))}",
    )
