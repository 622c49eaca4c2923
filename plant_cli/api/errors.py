"""The one tree of errors. Each carries a message in four parts and the exit code that the shell
sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any


class PlantError(Exception):
    """An error that the user can correct.

    Args:
        what: what is wrong, in one sentence.
        where: the file and line, key, run or component; by default the folder of the stage that
            raises it.
        expected: what would have been right.
        todo: what to do next, with a command if there is one.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", expected: str, todo: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.todo = todo

    def __reduce__(self) -> tuple[Any, ...]:
        """An error reaches the process that began this one as it is, whatever its class is made
        of.
        """
        return type(self).__new__, (type(self), *self.args), vars(self)

    def __str__(self) -> str:
        return (
            f"{self.what} (where: {self.where}; expected: {self.expected}; what to do: {self.todo})"
        )


class UsageError(PlantError):
    """The command line asks for something impossible."""

    exit_code = 2


class RecipeError(PlantError):
    """A recipe, a `--set` or an option value is not valid."""

    exit_code = 3


class DataError(PlantError):
    """The user's corpus, label file or predictions cannot be used as they are."""

    exit_code = 4


class ColumnQuestion(DataError):
    """Several columns of a table may be meant: `choices` are their names with a few of their
    values.

    `option` is the field of the section `data` that names the right one.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str,
        todo: str,
        option: str = "",
        choices: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        super().__init__(what, where=where, expected=expected, todo=todo)
        self.option = option
        self.choices = dict(choices)


class ArtefactError(PlantError):
    """A run folder or a file in it is missing, damaged, of another corpus or of another format."""

    exit_code = 4


class ComponentError(PlantError):
    """A component is unknown or does not accept its options."""

    exit_code = 5


class PluginError(PlantError):
    """A plugin is broken, or two plugins register one name."""

    exit_code = 5


class ResourceError(PlantError):
    """A device is missing, or memory or disk space ran out."""

    exit_code = 6


class TrainingError(PlantError):
    """Training cannot continue: the loss is not a number, or the model collapsed."""

    exit_code = 7


class GateFailed(PlantError):
    """A requirement such as `--require "P@5>=0.6"` was not met."""

    exit_code = 7


class Interrupted(PlantError):
    """The user or the system asked to stop; the work so far is saved."""

    exit_code = 130


@contextmanager
def naming_command(command: str) -> Iterator[None]:
    """Give the command as the place of errors in the block that name none."""
    try:
        yield
    except PlantError as error:
        error.where = error.where or command
        raise


def damaged_file(
    what: str, why: str, path: Path, *, todo: str, expected: str = "the file as it was written"
) -> ArtefactError:
    """The error for a damaged file of a run: `damaged_file("the decision threshold", "it lacks
    a key", path, todo=…)`.
    """
    return ArtefactError(f"{what} is damaged: {why}", where=str(path), expected=expected, todo=todo)


def missing_column(name: str, columns: Iterable[str], *, where: str, todo: str) -> DataError:
    """The error for a table without a column; it suggests similar names."""
    return DataError(
        f"there is no column '{name}'", where=where, expected=near_names(name, columns), todo=todo
    )


def missing_package(
    name: str, use: str, extra: str, *, where: str, otherwise: str = ""
) -> ComponentError:
    """For an optional package that is not installed: `missing_package("rdflib", "which reads
    SKOS", "skos", where=str(path))`.
    """
    return ComponentError(
        f"the package {name}, {use}, is not installed",
        where=where,
        expected=f"the extra `{extra}`{otherwise}",
        todo=f"pip install 'plant-cli[{extra}]'",
    )


def exclusive_options(
    first: str, second: str, *, why: str = "", todo: str = "leave one of them out"
) -> UsageError:
    """The error for two options that exclude each other."""
    return UsageError(
        f"{first} and {second} exclude each other" + (f": {why}" if why else ""),
        expected="one of the two",
        todo=todo,
    )


def refuse_repeated(names: Sequence[str], what: str) -> None:
    """Refuse a list with a repeated name: `refuse_repeated(options.systems, "system")`."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(
            f"'{repeated}' is given twice",
            expected=f"different {what}s",
            todo=f"name each {what} once",
        )


PICKLE_REFUSED = "UnpicklingError"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters; the name of its class if it
    has no message.
    """
    if (
        type(error).__name__ == PICKLE_REFUSED
    ):  # torch's message tells how to read such a file all the same
        return "it holds other objects than numbers"
    said = str(error).strip()
    return said.splitlines()[0][:200] if said else type(error).__name__


def near_names(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: similar known names, whatever their case, else the first few."""
    names = sorted(set(known))
    alike: dict[str, list[str]] = {}
    for one in names:
        alike.setdefault(one.casefold(), []).append(one)
    close = [
        one
        for folded in get_close_matches(name.casefold(), alike, n=3, cutoff=0.6)
        for one in alike[folded]
    ][:3]
    if close:
        return "did you mean " + " or ".join(repr(n) for n in close) + "?"
    return f"one of {first_names(names, 12)}" if names else "none are known"


def first_names(names: Sequence[object], most: int, between: str = ", ") -> str:
    """The first of many names, for a message; `…` stands for the others."""
    return between.join([*map(str, names[:most]), *(["…"] if len(names) > most else [])])


def fractional_labels(kind: str, where: str, what: str) -> DataError:
    """The error for labels that are numbers with a fraction."""
    return DataError(
        f"the labels are of type {kind}, {what}",
        where=where,
        expected='strings such as "004.60": as numbers, 004.60 and 4.6 are the same',
        todo="write these labels as strings where the file is made; if they are no labels, name "
        "another column with --labels-column",
    )
