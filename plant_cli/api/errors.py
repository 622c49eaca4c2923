"""The one tree of errors. Each carries a message in four parts and the exit code that the shell sees."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class PlantError(Exception):
    """Something a person can put right.

    Args:
        what: what is wrong, in one sentence.
        where: the file and line, key, row, run or component it is about; an attempt at a stage or action fills in its folder.
        expected: what would have been right.
        todo: what to do next; a command where there is one.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", expected: str, todo: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what} (where: {self.where}; expected: {self.expected}; what to do: {self.todo})"


class UsageError(PlantError):
    """The command line asks for something that cannot be done."""

    exit_code = 2


class RecipeError(PlantError):
    """A recipe, a `--set` or an option value is not valid."""

    exit_code = 3


class DataError(PlantError):
    """The user's corpus, label file or predictions cannot be used as they are."""

    exit_code = 4


class ArtefactError(PlantError):
    """A run folder or a file in it is missing, damaged, of another corpus or of another format."""

    exit_code = 4


class ComponentError(PlantError):
    """A component is unknown, or was given options it cannot work with."""

    exit_code = 5


class PluginError(PlantError):
    """A plugin is broken, or two plugins own one name."""

    exit_code = 5


class ResourceError(PlantError):
    """A device is missing, or memory or disk space ran out."""

    exit_code = 6


class TrainingError(PlantError):
    """Training cannot go on: the loss is not a number, or the model collapsed."""

    exit_code = 7


class GateFailed(PlantError):
    """A requirement such as `--require "P@5>=0.6"` was not met."""

    exit_code = 7


class Interrupted(PlantError):
    """The user (or the system) asked to stop; what was done so far is saved."""

    exit_code = 130


def first_line(error: BaseException) -> str:
    """The first line of what somebody else's error says, at most 200 characters; the name of its class if it says nothing."""
    said = str(error).strip()
    return said.splitlines()[0][:200] if said else type(error).__name__


def near_names(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the closest known names, whatever their case, otherwise the first few."""
    names = sorted(set(known))
    alike: dict[str, list[str]] = {}
    for one in names:
        alike.setdefault(one.casefold(), []).append(one)
    close = [one for folded in get_close_matches(name.casefold(), alike, n=3, cutoff=0.6) for one in alike[folded]][:3]
    if close:
        return "did you mean " + " or ".join(repr(n) for n in close) + "?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"one of {shown}" if shown else "none are known"
