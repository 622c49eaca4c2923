"""The dataset `weather`: reports put together from phrases, always the same ones."""

from __future__ import annotations

from itertools import combinations

import polars as pl

from plant_cli.api import Dataset

PHRASES = {
    "fog": "visibility below two hundred metres along the river",
    "frost": "ice on the roads and a hard night for the vines",
    "gale": "gusts took tiles from roofs and felled a poplar",
    "heat": "a third day above thirty-five degrees without a breeze",
    "rain": "steady showers filled the gutters until evening",
    "snow": "flakes settled on the hills and closed the pass",
}
PLACES = ("In the north", "On the coast", "In the lowlands", "Around the lake")
TEST_PLACE = PLACES[-1]


def read_weather() -> Dataset:
    """Four reports of each pair of phenomena, one for each place; the last place is for testing."""
    rows = [
        {
            "doc_id": f"{first}-{second}-{place.split()[-1]}",
            "text": f"{place}, {PHRASES[first]}; later {PHRASES[second]}.",
            "labels": [first, second],
            "split": "test" if place == TEST_PLACE else "train",
        }
        for first, second in combinations(sorted(PHRASES), 2)
        for place in PLACES
    ]
    frame = pl.LazyFrame(rows)
    return Dataset(
        splits={split: frame.filter(pl.col("split") == split).drop("split") for split in ("train", "test")},
        labels=pl.LazyFrame({"label": list(PHRASES), "title": [f"{name} reported" for name in PHRASES]}),
        licence="Apache-2.0",
        citation="plant-example",
        access="bundled",
    )
