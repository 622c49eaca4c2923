from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataSection


def test_paths_that_lead_somewhere_become_absolute_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").touch()
    given = DataSection(path="data.csv", titles="hub:titles", text_column="body")
    located = given.located()
    assert (located.path, located.titles, located.text_column) == (str(tmp_path / "data.csv"), "hub:titles", "body")
    assert located.located() == located
    assert given.path == "data.csv"
    assert DataSection().located() == DataSection()
