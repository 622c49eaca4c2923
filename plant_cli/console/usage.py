"""A command line that the parser cannot read is explained in four parts, like every other error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from plant_cli.api import PlantError, RecipeError, UsageError, near_names

WRONG_USAGE: Any = typer.BadParameter.__base__
"""The base class of all errors of the parser. Typer publishes only this class derived from it."""


class Explained:
    """A command whose parser's errors are explained in four parts; mixed into Typer's.

    Attributes:
        former_flags: flags that had another name before, the new name by the old.
    """

    former_flags: Mapping[str, str] = {}

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **settings: Any) -> Any:
        """Parse the words after the command's name."""
        try:
            return super().make_context(info_name, args, parent=parent, **settings)  # type: ignore[misc]
        except WRONG_USAGE as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # is the help itself
                raise
            raise explain(error, " ".join(filter(None, [parent and parent.command_path, info_name])), self.former_flags) from error


def explain(error: Any, command: str, former: Mapping[str, str]) -> PlantError:
    """The parser's error about a command, as one that says what to do.

    Args:
        error: what the parser raised.
        command: the command as it was typed, such as `plant mig`.
        former: flags that had another name before, the new name by the old.
    """
    ask = f"`{command} -h` lists what there is"
    parameter = getattr(error, "param", None)
    if parameter is not None and error.message:
        expected = error.message.removeprefix("Value error, ").removeprefix("Input should be ").partition(", unable")[0]
        return RecipeError(f"the value of {_show(parameter)} is not valid", where=command, expected=expected, todo=f"correct it; {ask}")
    if parameter is not None:
        return UsageError(f"{_show(parameter)} is missing", where=command, expected=_line(error, command), todo=f"give it; {ask}")
    if hasattr(error, "possibilities") and error.option_name in former:
        now = former[error.option_name]
        return UsageError(
            f"the option '{error.option_name}' is now called '{now}'", where=command, expected=now, todo=f"write {now} instead; {ask}"
        )
    if hasattr(error, "possibilities"):
        expected = near_names(error.option_name, error.possibilities) if error.possibilities else "an option of this command"
        return UsageError(
            f"there is no option '{error.option_name}'",
            where=command,
            expected=expected,
            todo=f"correct it ({ask}); put `--` before a value that begins with a dash",
        )
    return UsageError(error.format_message().rstrip("."), where=command, expected=_line(error, command), todo=ask)


def _show(parameter: Any) -> str:
    return str(parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar or parameter.name)


def _line(error: Any, command: str) -> str:
    """The shape of a whole command line, from the parser's usage text."""
    return " ".join(error.ctx.get_usage().split()).removeprefix("Usage: ") if error.ctx else f"{command} [OPTIONS] …"
