"""Every malformed input that is kept gets the answer that was recorded: its exit code, and the
four parts of its message.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.malformed.__main__ import GOLDEN, describe, list_commands
from tests.faults.processes import Ending

ROOT = Path(__file__).parents[2]


def test_every_input_is_recorded_and_every_refusal_clear() -> None:
    recorded = json.loads(GOLDEN.read_text("utf-8"))
    names = [name for name, _ in list_commands()]
    assert len(names) == len(set(names)) >= 250
    assert recorded.keys() == set(names)
    assert [name for name, said in recorded.items() if not said["clear"]] == []
    assert [
        name for name, said in recorded.items() if said["code"] and len(said["said"]) != 4
    ] == []


def test_what_is_compared_holds_no_name_of_this_machine() -> None:
    ending = Ending(
        4, 1.0, "reading\nerror: a\n  where:      /tmp/x/run\n  expected:   b\n  what to do: c\n"
    )
    assert describe(ending, "/tmp/x") == {
        "code": 4,
        "said": ["error: a", "  where:      /run", "  expected:   b", "  what to do: c"],
        "clear": True,
    }


@pytest.mark.slow
def test_malformed_inputs_get_the_recorded_answers() -> None:
    command = [sys.executable, "-m", "tests.faults.malformed"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
