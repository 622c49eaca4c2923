"""What so many texts will take: one row from measured slopes, the same as in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import run_at
from plant_network import PlanOptions
from plant_network.sizes import PlannedSizes, round_figure

from plant_cli.api import UsageError
from plant_cli.scoring.forecast import LabellingForecast

PAGE = Path(__file__).parents[3] / "docs" / "planning.md"


def test_the_command_prints_the_row_of_the_page(tmp_path: Path) -> None:
    flags = {"plan": {"documents": 10**8, "labels": 10**5}}
    found = run_at(tmp_path / "none", "plan", flags=flags)
    (row,) = found.tables[0].rows
    assert "| " + " | ".join(f"{cell:,}" for cell in row) + " |" in PAGE.read_text()
    assert not (tmp_path / "none").exists()
    data = found.data
    assert data["fitted_on"] == 10**6
    assert data["price"] == pytest.approx(0.05 * (data["fit_hours"] + data["label_hours"]))


def test_labelling_grows_with_documents_words_and_labels() -> None:
    whole = LabellingForecast.of(1000, 10_000, 100)
    assert LabellingForecast.of(2000, 10_000, 100).seconds == pytest.approx(2 * whole.seconds)
    assert LabellingForecast.of(2000, 10_000, 100).memory == whole.memory
    assert LabellingForecast.of(1000, 10_000, 200).seconds > whole.seconds
    assert LabellingForecast.of(1000, 20_000, 100).memory > whole.memory


def test_fewer_documents_than_those_that_train_are_all_taken() -> None:
    assert PlannedSizes.of(PlanOptions(), 5).fitted_on == 5
    assert [round_figure(value) for value in (0.0, 0.01234, 12.0, 1234.5)] == [0, 0.012, 12, 1200]


def test_a_recipe_says_itself_how_many_documents_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two plans"):
        run_at(tmp_path, "plan", flags={"plan": {"documents": 5, "recipe": "quickstart"}})
