"""`forms.parquet`: the forms in which words occur in train, where they are counted as lemmas or stems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from plant_cli.api.errors import ArtefactError
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.base.files import replacing
from plant_cli.base.parquet import panics_as_errors

FORMS = "forms.parquet"
Pair = tuple[str, str]
"""A word and a form of it."""


def write_forms(folder: Path, pairs: Iterable[Pair]) -> None:
    """Write words and forms in the order in which forms were first met; no file if there are none.

    Args:
        folder: `mig` of a run, or of a shard.
        pairs: each once.
    """
    frame = pl.DataFrame(list(pairs), schema={"word": pl.String, "form": pl.String}, orient="row")
    if len(frame):
        with replacing(folder / FORMS) as temporary:
            frame.write_parquet(temporary)


def read_pairs(folder: Path) -> list[Pair]:
    """What `write_forms` wrote; empty if there is no file; `ArtefactError` if it cannot be read."""
    path = folder / FORMS
    if not path.exists():
        return []
    require_recorded(folder, FORMS)
    try:
        with panics_as_errors():
            return pl.read_parquet(path, glob=False).select("word", "form").rows()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtefactError(
            "the forms of words cannot be read",
            where=str(path),
            expected="the file as `plant mig` wrote it",
            todo="run `plant mig --force`",
        ) from error


def read_forms(folder: Path) -> Mapping[str, list[str]]:
    """The forms of each word that has others than itself."""
    forms: dict[str, list[str]] = {}
    for word, form in read_pairs(folder):
        forms.setdefault(word, []).append(form)
    return {word: found for word, found in forms.items() if found != [word]}
