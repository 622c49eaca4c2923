"""An analyser: Latin words without their most common endings."""

from plant_cli.api import AnalyserSpec, hookimpl

ENDINGS = (
    "ibus",
    "orum",
    "arum",
    "ius",
    "ae",
    "am",
    "as",
    "em",
    "es",
    "is",
    "os",
    "um",
    "us",
    "a",
    "e",
    "i",
    "o",
)


class LatinStems:
    def reduce(self, word):
        return next(
            (
                word.removesuffix(end)
                for end in ENDINGS
                if word.endswith(end) and len(word) > len(end) + 2
            ),
            word,
        )


@hookimpl
def plant_register_analysers():
    return [
        AnalyserSpec(
            name="latin-stems",
            summary="Latin words without their most common endings.",
            languages=("la",),
            phrase="as Latin stems",
            load=lambda options, language: LatinStems(),
        )
    ]
