"""Options, choices of components, and paths that stay valid wherever the run is used."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from plant_cli.api import Choice, Options, choice, option
from plant_cli.api.options import LARGEST, consent_options, former_names


class DigOptions(Options):
    depth: int = option(3, "How deep, in metres.", ge=1, was="metres")
    map: str | None = option(None, "A map.", path=True)
    beds: list[str] = option([], "Beds: names or files.", path=True)
    bed: str | None = option(None, "A bed: a name or a file.", path="or name")
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


def test_a_plain_name_stays_a_name_beside_a_folder_that_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roses").mkdir()
    (tmp_path / "roses" / "bed.txt").touch()
    assert DigOptions(bed="roses", beds=["roses"], map="roses").located().model_dump(include={"bed", "beds", "map"}) == {
        "bed": "roses",
        "beds": ["roses"],
        "map": str(tmp_path / "roses"),
    }
    assert DigOptions(bed="roses/bed.txt").located().bed == str(tmp_path / "roses" / "bed.txt")
    assert DigOptions().located().bed is None


def test_a_choice_is_a_name_or_a_mapping() -> None:
    assert Choice.model_validate("thorn") == Choice(name="thorn")
    chosen = Choice.model_validate({"name": "thorn", "sharpness": 2})
    assert chosen == Choice(name="thorn", options={"sharpness": 2})
    assert [Choice(name="thorn").to_recipe(), chosen.to_recipe()] == ["thorn", {"name": "thorn", "sharpness": 2}]
    assert DigOptions().loss == Choice(name="thorn")


class Numbers(Options):
    rate: float = option(1.0, "Unbounded.")
    many: list[float] = option([], "Several.")
    maybe: float | None = option(None, "One or none.")
    count: int = option(0, "Unbounded.")
    counts: tuple[int, ...] = option((), "Several.")
    name: str = option("", "Any text.")
    strange: bool = option(False, "Strange code.", consent=True)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, "inf", "-Infinity", "nan", "1e400"])
@pytest.mark.parametrize("field", ["rate", "many", "maybe"])
def test_infinite_numbers_and_what_is_not_a_number_are_refused_by_every_option(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match="finite number") as caught:
        Numbers.model_validate({field: [value] if field == "many" else value})
    assert caught.value.errors()[0]["loc"][0] == field


def test_whole_numbers_that_no_table_holds_are_refused() -> None:
    assert Numbers(count=LARGEST, counts=(-LARGEST,)).count == LARGEST
    for values in ({"count": LARGEST + 1}, {"counts": [1, -LARGEST - 1]}):
        with pytest.raises(ValidationError, match="a whole number from"):
            Numbers.model_validate(values)


def test_text_that_no_file_name_holds_is_refused() -> None:
    with pytest.raises(ValidationError, match="without the character NUL"):
        Numbers(name="a\0b")


def test_options_that_need_consent_are_found() -> None:
    assert consent_options(Numbers) == ["strange"]
