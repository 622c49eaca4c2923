"""What needs a graphics card is measured by one script: here at small sizes, and with parts
that fail.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from tests.benchmarks import card


@pytest.mark.slow
def test_the_script_measures_every_part_at_small_sizes(tmp_path: Path) -> None:
    script = ["bash", "tests/benchmarks/card.sh", "figures", str(tmp_path), "--small"]
    done = subprocess.run(
        script, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "card.json").read_text())
    assert found["parts"].keys() == card.PARTS.keys()
    for name, part in card.PARTS.items():
        assert found["parts"][name]["exit_code"] == 0, name
        assert bool(found["parts"][name]["figures"]) == part.writes, name
        assert f"== {name}:" in done.stdout


def test_a_part_that_fails_or_hangs_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {
        "missing": card.Part(module="no_such_module", arguments=""),
        "hanging": card.Part(
            module="timeit",
            arguments="-n 1 -r 1 __import__('time').sleep(60)",
            seconds=1,
            writes=False,
        ),
        "sound": card.Part(module="json.tool", arguments="--help", writes=False),
    }
    monkeypatch.setattr(card, "PARTS", parts)
    found = dict(card.measure(list(parts), tmp_path, small=False))
    assert [found[name]["exit_code"] for name in parts] == [1, -1, 0]
    assert "no_such_module" in (tmp_path / "missing.log").read_text()


def test_without_a_card_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no graphics card"):
        card.main([str(tmp_path)])
