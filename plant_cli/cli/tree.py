"""The tree of commands: one for each registered stage and action, `plant help`, and errors of
command lines in four parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from plant_cli.api import PlantError, RecipeError, StageSpec, UsageError, near_names
from plant_cli.cli.flags import first_clause, former_flags, given_values, stage_flags
from plant_cli.cli.help import (
    GROUPS,
    WIDEST,
    explain_option,
    full_help,
    list_lines,
    short_help,
    sort_by_work,
    terminal_width,
)
from plant_cli.data.printed_tables import printable
from plant_cli.registry import Registry

WRONG_USAGE: Any = typer.BadParameter.__base__
"""The base class of all errors of the parser. Typer publishes only this class derived from it."""


class Explained:
    """A command that explains errors of its parser in four parts; mixed into Typer's commands."""

    former_flags: Mapping[str, str] = {}
    """New names of renamed flags, by their old names."""
    lists_all = "-h lists all commands"
    """The flag that lists all commands or options."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **settings: Any
    ) -> Any:
        """Parse the words after the command's name."""
        try:
            return super().make_context(info_name, args, parent=parent, **settings)  # type: ignore[misc]
        except WRONG_USAGE as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # is the help itself
                raise
            command = " ".join(filter(None, [parent and parent.command_path, info_name]))
            flag, _, what = self.lists_all.partition(" ")
            raise explain_usage_error(
                error, command, self.former_flags, f"`{command} {flag}` {what}"
            ) from error


def explain_usage_error(
    error: Any, command: str, former: Mapping[str, str], ask: str
) -> PlantError:
    """An error with four parts for an error of the parser; `ask` says how to list the options."""
    parameter = getattr(error, "param", None)
    if parameter is not None and error.message:
        expected = (
            error.message.removeprefix("Value error, ")
            .removeprefix("Input should be ")
            .partition(", unable")[0]
        )
        return RecipeError(
            f"the value of {_show(parameter)} is not valid",
            where=command,
            expected=expected,
            todo=f"correct it; {ask}",
        )
    if parameter is not None:
        return UsageError(
            f"{_show(parameter)} is missing",
            where=command,
            expected=_line(error, command),
            todo=f"give it; {ask}",
        )
    if hasattr(error, "possibilities"):
        return _explain_unknown_option(error, command, former, ask)
    options = (
        [option for one in error.ctx.command.params for option in one.opts] if error.ctx else []
    )
    if "unexpected extra argument" in error.format_message() and "--path" in options:
        ask = f"name the corpus with --path; {ask}"
    return UsageError(
        error.format_message().rstrip("."), where=command, expected=_line(error, command), todo=ask
    )


def _explain_unknown_option(
    error: Any, command: str, former: Mapping[str, str], ask: str
) -> UsageError:
    """The error for an option that has another name, is an argument, or does not exist."""
    name = error.option_name
    if name in former:
        return UsageError(
            f"the option '{name}' is called '{former[name]}'",
            where=command,
            expected=former[name],
            todo=f"write {former[name]} instead; {ask}",
        )
    if error.ctx and name[2:].upper() in _arguments(error.ctx.command):
        return UsageError(
            f"'{name}' is no option but an argument",
            where=command,
            expected=_line(error, command),
            todo=f"write its value alone, without {name}",
        )
    known = error.possibilities
    return UsageError(
        f"there is no option '{name}'",
        where=command,
        expected=near_names(name, known) if known else "an option of this command",
        todo=f"correct it ({ask}); put `--` before a value that begins with a dash",
    )


def _show(parameter: Any) -> str:
    return str(
        parameter.opts[0]
        if parameter.opts[0].startswith("-")
        else parameter.metavar or parameter.name
    )


def _arguments(command: Any) -> list[str]:
    """The arguments of a command, as its usage shows them."""
    return [
        str(parameter.metavar)
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]


def _line(error: Any, command: str) -> str:
    """The form of a complete command line."""
    return (
        " ".join(error.ctx.get_usage().split()).removeprefix("Usage: ")
        if error.ctx
        else f"{command} [OPTIONS] …"
    )


CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}
HELP_SUMMARY = "Explain a command, or one option: plant help finetune.epochs"

# The context and the formatter of commands are private classes of Typer: `Any` here.


class StageGroup(Explained, TyperGroup):
    """Commands of stages. Names have one word or two (`mig show`); the first may be a stage too
    (`mig`) or only a group (`data`).
    """

    def __init__(self, *, registry: Registry, prefix: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.registry = registry
        self.prefix = prefix
        specs = registry.specs(StageSpec)
        self.specs = {s.name.removeprefix(prefix): s for s in specs if s.name.startswith(prefix)}

    def list_commands(self, ctx: Any) -> list[str]:
        """First words of the commands, by group and in the order of work."""
        names = [
            spec.name.removeprefix(self.prefix).split()[0]
            for spec in sort_by_work(self.specs.values())
        ]
        return [*dict.fromkeys(names), *([] if self.prefix else ["help"])]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build one command; None if there is no such name."""
        actions = {
            name: spec for name, spec in self.specs.items() if name.startswith(cmd_name + " ")
        }
        spec = self.specs.get(cmd_name)
        if spec is not None:
            return stage_command(spec, cmd_name, self.registry, actions)
        if cmd_name == "help" and not self.prefix:
            return help_command(self)
        if not actions:
            return None
        return StageGroup(
            registry=self.registry,
            prefix=f"{self.prefix}{cmd_name} ",
            name=cmd_name,
            help=f"Actions: {', '.join(sorted(name.split()[-1] for name in actions))}.",
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=dict(CONTEXT),
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take two words where they name an action, otherwise one; an unknown name is a usage
        error that shows near names.
        """
        for words in (2, 1):
            name = " ".join(args[:words])
            if name in self.specs or (words == 1 and self.get_command(ctx, name)):
                return name, self.get_command(ctx, name), args[words:]
        return self._unknown(ctx, args)

    def _unknown(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        full = self.prefix + name
        owners = self.registry.owner(StageSpec, full)
        if owners is not None:  # two plugins registered it: the registry says which
            self.registry.find(StageSpec, full)
        broken = _broken_plugins(self.registry)
        raise UsageError(
            f"there is no command '{full}'",
            where="the command line"
            + (f"; a broken plugin may hold it: {broken}" if broken else ""),
            expected=near_names(name, self.list_commands(ctx)),
            todo="`plant plugins` says why they are broken"
            if broken
            else f"`{ctx.command_path} -h` lists all commands",
        )

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command under the heading of its group, without building any;
        then the options.
        """
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            actions = {n: s for n, s in self.specs.items() if n.split()[0] == name}
            spec = actions.get(name)
            text = (
                first_clause(spec.summary)
                if spec
                else ", ".join(sorted(n.split()[-1] for n in actions))
            )
            group = next(iter(actions.values())).group if actions else GROUPS[-1]
            groups.setdefault(group, []).append((name, text or HELP_SUMMARY))
        for group, rows in groups.items():
            formatter.write("\n" + list_lines(group, rows, terminal_width()) + "\n")
        with formatter.section("Options"):
            formatter.write_dl(
                [
                    record
                    for parameter in self.get_params(ctx)
                    if (record := parameter.get_help_record(ctx))
                ]
            )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the hint, and which plugins are broken."""
        super().format_epilog(ctx, formatter)
        broken = _broken_plugins(self.registry)
        if broken:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(
                    printable(f"Broken plugins, left out: {broken}. `plant plugins` says why.")
                )


class StageCommand(Explained, TyperCommand):
    """A stage's command, which knows its spec, its registry and its actions (`mig show`)."""

    lists_all = "--help-all lists all options"
    spec: StageSpec
    registry: Registry
    actions: Mapping[str, StageSpec]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the short help."""
        self.write_help(ctx, formatter, short_help)

    def write_help(self, ctx: Any, formatter: Any, help: Callable[..., str]) -> None:
        """Write the usage, and what a function of `plant_cli.cli.help` says."""
        self.format_usage(ctx, formatter)
        formatter.write("\n" + help(self.spec, self.registry, self.actions, terminal_width()))


def stage_command(
    spec: StageSpec, name: str, registry: Registry, actions: dict[str, StageSpec]
) -> Any:
    """The Typer command of one stage or action."""
    flags = stage_flags(spec, registry)

    def body(**values: Any) -> None:
        from plant_cli.cli.execution import execute  # help does not need it

        execute(spec, registry, given_values(flags, values))

    everything = Annotated[
        bool,
        typer.Option(
            "--help-all", is_eager=True, callback=_show_all, help="Show all options and exit."
        ),
    ]
    last = inspect.Parameter(
        "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=everything
    )
    body.__signature__ = inspect.Signature([*(flag.parameter for flag in flags), last])  # type: ignore[attr-defined]
    command = _command(body, name, StageCommand)
    command.spec, command.registry, command.actions = spec, registry, actions
    command.former_flags = former_flags(spec)
    return command


def _command(
    body: Callable[..., None], name: str, kind: type[TyperCommand], **settings: Any
) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name=name, cls=kind, context_settings=CONTEXT | settings)(body)
    return get_command(app)


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        formatter = ctx.make_formatter()
        ctx.command.write_help(ctx, formatter, full_help)  # type: ignore[attr-defined]
        typer.echo(formatter.getvalue().rstrip("\n"))
        raise typer.Exit


def help_command(root: StageGroup) -> Any:
    """`plant help`: the help of a command, or what is known of one option."""

    def body(
        ctx: typer.Context,
        words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND|OPTION]")] = None,
    ) -> None:
        name, parent = " ".join(words or ()), cast(typer.Context, ctx.parent)
        command = root.get_command(parent, name) if name else root
        if command is None:
            typer.echo(explain_option(name, root.registry, terminal_width()), nl=False)
        else:
            typer.echo(
                command.get_help(
                    parent
                    if command is root
                    else command.make_context(name, [], parent, resilient_parsing=True)
                )
            )

    return _command(body, "help", TyperCommand, ignore_unknown_options=True)


def _broken_plugins(registry: Registry) -> str:
    return ", ".join(record.name for record in registry.plugins if record.error)
