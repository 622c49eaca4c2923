"""Names that become folders: of stages and of their variants."""

from __future__ import annotations

import re

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]*$"
NAME_RULE = "small letters, digits, '.', '_' and '-', beginning with a letter or digit"


def with_tag(command: str, tag: str | None) -> str:
    """A command line of the same variant: `plant eval` and `baseline` make `plant eval --tag baseline`."""
    return command if tag is None else f"{command} --tag {tag}"


def names_folder(name: str) -> bool:
    """Whether a tag can be part of a folder's name, on every file system and without leaving the run."""
    return re.fullmatch(NAME_PATTERN, name) is not None
