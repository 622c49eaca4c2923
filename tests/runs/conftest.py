from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plant_cli.artefacts.records import StageRecord
from plant_cli.runs.folder import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run")


@pytest.fixture
def make_record() -> Callable[..., StageRecord]:
    def make(stage: str = "mig", tag: str | None = None, **values: Any) -> StageRecord:
        defaults: dict[str, Any] = {"status": "running", "options": {}, "sections": {}, "seed": 0, "started": "2026-01-01T00:00:00"}
        return StageRecord(stage=stage, tag=tag, **{**defaults, **values})

    return make
