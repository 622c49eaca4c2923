"""`plant quickstart`: the shipped recipe on whatever backbone is there, and what it says to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from plant_cli.api import Result, SilentReporter
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage
from plant_cli.stages import quickstart, run


@dataclass
class Asked:
    request: Any = None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What would be run, without running it."""
    seen = Asked()

    def remember(request: Any) -> Result:
        seen.request = request
        return Result(summary={"steps": 7})

    monkeypatch.setattr(run, "run_recipe", remember)
    return seen


def start(tmp_path: Any, **options: Any) -> Result:
    flags = {"quickstart": options, "machine": {"seed": 5}}
    return run_stage(registry=installed(), run_path=tmp_path / "run", name="quickstart", flags=flags, reporter=SilentReporter())


@pytest.mark.parametrize(("found", "backbone"), [(object(), "minilm"), (None, "tiny")])
def test_the_backbone_is_the_best_that_is_installed(
    asked: Asked, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, found: object, backbone: str
) -> None:
    monkeypatch.setattr(quickstart, "find_spec", lambda name: found)
    result = start(tmp_path)
    assert asked.request.recipe == "quickstart"
    assert asked.request.flags == {"machine": {"seed": 5}, "model": {"backbone": backbone}}
    assert result.summary == {"steps": 7}
    assert "plant mig --k 1000 data.parquet" in (result.next_step or "")


def test_flags_are_handed_on(asked: Asked, tmp_path: Any) -> None:
    start(tmp_path, backbone="hf-encoder", force=True, resume=True)
    assert asked.request.flags["model"] == {"backbone": "hf-encoder"}
    assert (asked.request.force, asked.request.resume) == (True, True)
