"""The corpora of the extreme classification repository, from a download in whichever format."""

from __future__ import annotations

from plant_cli.api import Choice, DataError, DataSection, Dataset, NoOptions
from plant_datasets.formats.documents import Reading
from plant_datasets.formats.registration import FORMATS


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read the download with the format that recognises it."""
    reading = Reading.of(data)
    found = [spec for spec in FORMATS if spec.recognise is not None and spec.recognise(data)]
    if len(found) != 1:
        names = ", ".join(spec.name for spec in found)
        raise DataError(
            f"{len(found)} formats fit the download{': ' if names else ''}{names}",
            where=str(reading.path),
            expected="the unpacked folder of the corpus, in one format",
            todo="see `plant data info` for the files; or name the format with --dataset",
        )
    return found[0].load(data.model_copy(update={"dataset": Choice(name=found[0].name)}), found[0].options())
