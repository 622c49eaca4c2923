"""Trackers that accelerate knows get what the history has; curves are drawn from lowest to highest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from accelerate import tracking as accelerates
from accelerate.tracking import GeneralTracker

from plant_cli.api import ComponentError
from plant_cli.training.checkpointing import draw_curve, open_tracker


class Remembering(GeneralTracker):
    name = "remembering"
    requires_logging_directory = False
    told: ClassVar[list[Any]] = []

    def __init__(self, project: str) -> None:
        super().__init__()
        self.told.append(project)

    @property
    def tracker(self) -> None:
        return None

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.told.append(values)

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        self.told.append((step, values))


@pytest.fixture
def remembered() -> Iterator[list[Any]]:
    accelerates.register_tracker_class(Remembering)
    Remembering.told.clear()
    yield Remembering.told
    del accelerates.LOGGER_TYPE_TO_CLASS["remembering"]


def test_a_tracker_is_told_the_plan_and_every_figure(remembered: list[Any], tmp_path: Path) -> None:
    accelerator = open_tracker(
        "remembering", tmp_path, {"epochs": 3, "rates": {"head": 1.0}, "schedule": "all", "patience": None}, cpu=True
    )
    accelerator.log({"loss": 0.5}, step=7)
    assert remembered == ["plant", {"epochs": 3, "schedule": "all"}, (7, {"loss": 0.5})]


def test_without_a_tracker_nothing_is_told(remembered: list[Any], tmp_path: Path) -> None:
    open_tracker(None, tmp_path, {"epochs": 3}, cpu=True).log({"loss": 0.5})
    assert remembered == []
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_tracker_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ComponentError, match="no tracker 'tensorbord'") as caught:
        open_tracker("tensorbord", tmp_path, {}, cpu=True)
    assert "tensorboard" in caught.value.todo


def test_a_tracker_whose_package_is_missing_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerates, "_available_trackers", [])
    with pytest.raises(ComponentError, match="'comet_ml' needs a package") as caught:
        open_tracker("comet_ml", tmp_path, {}, cpu=True)
    assert caught.value.todo == "pip install comet-ml"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([3.0], "▁"),
        ([1.0, 8.0], "▁█"),
        ([8.0, 4.0, 1.0], "█▄▁"),
        ([float("nan"), 0.0, 7.0], "▁█"),
        ([0.0] * 60 + [1.0] * 60, "▁" * 20 + "█" * 20),
    ],
    ids=str,
)
def test_a_curve_goes_from_lowest_to_highest_block(values: list[float], line: str) -> None:
    assert draw_curve(values) == line
