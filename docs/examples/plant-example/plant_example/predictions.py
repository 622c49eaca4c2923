"""A format of predictions: lines such as `doc-1 = Cats (90 %), Dogs (5 %)`."""

import re

from plant_cli.api import ForeignPredictions, PredictionsSpec, hookimpl, misread

LINE = re.compile(r"(\S+) = (.*)")
PAIR = re.compile(r"([^,]+?) \((\d+) %\)(?:, |$)")


def recognise(file):
    match = LINE.fullmatch(file.first)
    return "lines of percentages" if match and PAIR.match(match[2]) else None


def read(file):
    import polars as pl

    rows = []
    for number, line in enumerate(file.read_lines(file.path), start=1):
        match = LINE.fullmatch(line)
        if match is None:
            raise misread("this is no line", f"{file.path}, line {number}", "id = label (90 %)")
        pairs = PAIR.findall(match[2])
        scores = [int(percent) / 100 for _, percent in pairs]
        rows.append((match[1], [label for label, _ in pairs], scores))
    columns = {"doc_id": pl.String, "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
    return ForeignPredictions(frame=pl.DataFrame(rows, schema=columns, orient="row"))


@hookimpl
def plant_register_predictions():
    return [
        PredictionsSpec(
            name="percentages",
            summary="Lines of an id and labels with percentages.",
            recognise=recognise,
            read=read,
        )
    ]
