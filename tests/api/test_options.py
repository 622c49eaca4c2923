"""Options, choices of components, and paths that stay valid wherever the run is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from plant_cli.api import Choice, Options, choice, option
from plant_cli.api.options import former_names


class DigOptions(Options):
    depth: int = option(3, "How deep, in metres.", ge=1, was="metres")
    map: str | None = option(None, "A map.", path=True)
    beds: list[str] = option([], "Beds: names or files.", path=True)
    loss: Choice = choice("loss", "thorn", "A loss.", was="penalty")


def test_options_are_strict_and_frozen() -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        DigOptions(deep=4)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="frozen"):
        DigOptions().depth = 4
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        DigOptions(depth=0)


def test_former_names_lead_to_the_present_ones() -> None:
    assert former_names(DigOptions) == {"metres": "depth", "penalty": "loss"}


def test_existing_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.txt").touch()
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "bed.txt").touch()
    located = DigOptions(map="map.txt", beds=["roses", "garden/bed.txt"]).located()
    assert located.map == str(tmp_path / "map.txt")
    assert located.beds == ["roses", str(tmp_path / "garden" / "bed.txt")]
    assert DigOptions(map="gone.txt").located().map == "gone.txt"


def test_a_choice_is_a_name_or_a_mapping() -> None:
    assert Choice.model_validate("thorn") == Choice(name="thorn")
    chosen = Choice.model_validate({"name": "thorn", "sharpness": 2})
    assert chosen == Choice(name="thorn", options={"sharpness": 2})
    assert [Choice(name="thorn").to_recipe(), chosen.to_recipe()] == ["thorn", {"name": "thorn", "sharpness": 2}]
    assert DigOptions().loss == Choice(name="thorn")
