"""Arguments and file names that are not valid text: the system passes on any bytes, and not all of them are characters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from plant_cli.api import UsageError


@contextmanager
def refuse_bytes(given: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Refuse arguments that are not valid text, and inside the block file names that are not.

    Args:
        given: values by recipe section and option.

    Raises:
        UsageError: an argument or a file name cannot be read in the terminal's encoding.
    """
    for name, value in (pair for options in given.values() for pair in options.items()):
        wrong = next(filter(_holds_bytes, map(str, value if isinstance(value, list | tuple) else [value])), None)
        if wrong is not None:
            raise _refused(wrong, f"the command line, {name.replace('_', '-')}")
    try:
        yield
    except UnicodeEncodeError as error:
        line = next(filter(_holds_bytes, error.object.splitlines()), None)
        if line is None:
            raise
        raise _refused(line, "a path: of this folder, or of a file of the corpus") from error


def _holds_bytes(text: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in text)  # how Python keeps bytes that it cannot decode


def _refused(text: str, where: str) -> UsageError:
    name = sys.getfilesystemencoding().upper()
    shown = os.fsencode(text).decode(errors="backslashreplace").strip()
    return UsageError(
        f"not a text in {name}: {shown[:200]}",
        where=where,
        expected=f"text and names of files in {name}, the encoding of this terminal",
        todo=f"rename the file, or give the text in {name} (`iconv -f latin1 -t utf-8` turns one encoding into another)",
    )
