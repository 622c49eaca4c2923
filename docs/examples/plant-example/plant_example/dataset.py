"""A dataset: made-up weather reports, always the same ones."""

from itertools import combinations

from plant_cli.api import Dataset, DatasetSpec, hookimpl

PHRASES = {
    "fog": "visibility below two hundred metres along the river",
    "frost": "ice on the roads and a hard night for the vines",
    "gale": "gusts took tiles from roofs and felled a poplar",
    "heat": "a third day above thirty-five degrees without a breeze",
    "rain": "steady showers filled the gutters until evening",
    "snow": "flakes settled on the hills and closed the pass",
}
PLACES = {
    "train": ("In the north", "On the coast", "In the lowlands"),
    "test": ("Around the lake",),
}


def load(data, options):
    import polars as pl  # imported here, so that `plant --help` stays quick

    def report(first, second, place):
        text = f"{place}, {PHRASES[first]}; later {PHRASES[second]}."
        return {
            "doc_id": f"{first}-{second}-{place.split()[-1]}",
            "text": text,
            "labels": [first, second],
        }

    pairs = list(combinations(PHRASES, 2))
    return Dataset(
        splits={
            name: pl.LazyFrame([report(*pair, place) for pair in pairs for place in places])
            for name, places in PLACES.items()
        },
        labels=pl.LazyFrame(
            {"label": list(PHRASES), "title": [f"{name} reported" for name in PHRASES]}
        ),
        licence="Apache-2.0",
        access="bundled",
    )


@hookimpl
def plant_register_datasets():
    return [
        DatasetSpec(
            name="weather", summary="Sixty made-up weather reports with six labels.", load=load
        )
    ]
