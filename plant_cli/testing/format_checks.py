"""What checks of formats of predictions and of vocabularies have in common: samples of files are
looked at, and read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import polars as pl

from plant_cli.api import DataError

Content = TypeVar("Content")
Make = Callable[[Content], AbstractContextManager[Any]]  # of what a file holds, the file


def look_at_all(spec: Any, samples: Mapping[str, Content], make: Make[Content]) -> None:
    """`recognise` of the format raises no error, whatever a file holds."""
    for name, content in samples.items():
        with make(content) as file:
            try:
                said = spec.recognise(file)
            except Exception as error:
                raise AssertionError(f"`recognise` fails for {name}: {error!r}") from error
        assert said is None or said.strip(), f"`recognise` says nothing of {name}"


def read_all(
    spec: Any, samples: Mapping[str, Content], make: Make[Content]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """What the format reads of the samples that it recognises, the same each time, by their names;
    one that is none after all is a `DataError`.
    """
    for name, content in samples.items():
        with make(content) as file:
            if spec.recognise(file) is None:
                continue
            try:
                frame = spec.read(file).frame
            except DataError:
                continue
            assert frame.equals(spec.read(file).frame), f"{name} is read in two ways"
        yield name, frame
