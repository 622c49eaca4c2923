"""A format of vocabularies: an outline, in which indented titles stand below others."""

from plant_cli.api import ForeignVocabulary, VocabularySpec, hookimpl

MARK = "# outline"


def recognise(file):
    return "an outline" if file.text.startswith(MARK) else None


def read(file):
    import polars as pl

    rows, above = [], []
    for line in file.text.splitlines()[1:]:
        title = line.strip()
        if title:
            depth = (len(line) - len(line.lstrip())) // 2
            above = [*above[:depth], title.lower()]
            rows.append((above[-1], title, above[-2:-1]))
    columns = {"label": pl.String, "title": pl.String, "parents": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return ForeignVocabulary(frame=frame, remarks=[f"an outline of {len(rows):,} labels"])


@hookimpl
def plant_register_vocabularies():
    return [
        VocabularySpec(
            name="outline",
            summary="An outline: titles, with narrower ones indented below them.",
            recognise=recognise,
            read=read,
        )
    ]
