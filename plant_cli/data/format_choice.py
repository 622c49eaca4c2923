"""Which of the formats of a kind reads a file: the first that recognises it."""

from __future__ import annotations

from typing import TypeVar

from plant_cli.api import (
    DataError,
    PredictionFile,
    PredictionsSpec,
    VocabularyFile,
    VocabularySpec,
    first_line,
)
from plant_cli.registry import installed

FormatSpec = TypeVar("FormatSpec", PredictionsSpec, VocabularySpec)


def choose_format(
    kind: type[FormatSpec], file: PredictionFile | VocabularyFile, what: str, own: str
) -> tuple[FormatSpec, str, list[str]]:
    """The format, what it says of the file, and a remark on each one that failed to say whether
    it knows it, and is passed over.

    `DataError` if none knows it: `what` says so, `own` what the core itself reads.
    """
    remarks = []
    for spec in sorted(installed().specs(kind), key=lambda spec: (spec.order, spec.name)):
        try:
            said = spec.recognise(file)  # type: ignore[arg-type]
        except MemoryError:
            raise
        except Exception as error:  # whatever a stranger's format does
            remarks.append(
                f"`recognise` of the format '{spec.name}' failed: {first_line(error)}: it is "
                f"passed over (PLANT_PLUGINS=-{spec.plugin or 'NAME'} leaves its plugin out)"
            )
            continue
        if said is not None:
            return spec, said, remarks
    raise DataError(
        what,
        where=str(file.path),
        expected=own,
        todo="look whether `plant plugins` lists its format, or write such a table",
    )
