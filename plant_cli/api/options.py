"""Options models: the one declaration of an option. Recipe keys, `--flags`, help, validation and docs come from them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

KINDS = ("stage", "backbone", "decoder", "loss", "signal", "dataset", "metric")


class Options(BaseModel):
    """Base of every options model: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True, protected_namespaces=())


class NoOptions(Options):
    """For a component that has nothing to choose."""


class Choice(Options):
    """A component chosen by name, with its own options still unvalidated.

    In a recipe either the name (`backbone: minilm`) or a mapping that holds it beside the options
    (`backbone: {name: minilm, max_tokens: 512}`); on the command line the name, with `--set` for the options.
    """

    name: str
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_recipe(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and "name" in value and set(value) != {"name", "options"}:
            return {"name": value["name"], "options": {k: v for k, v in value.items() if k != "name"}}
        return value

    def to_recipe(self) -> str | dict[str, Any]:
        """The form a person writes."""
        return {"name": self.name, **self.options} if self.options else self.name


def option(default: Any = ..., help: str = "", *, short: str | None = None, argument: bool = False, **rules: Any) -> Any:
    """One option of an options model.

    Args:
        default: its value when nobody says otherwise; leave out for a required option.
        help: one sentence for `--help` and the docs, with the unit where there is one.
        short: a one-letter flag such as `"-O"`.
        argument: true for a positional argument.
        rules: pydantic's constraints (`ge`, `le`, `gt`, `pattern`, …).
    """
    return Field(default, description=help, json_schema_extra={"short": short, "argument": argument, "kind": None}, **rules)


def choice(kind: str, default: str | None, help: str) -> Any:
    """An option whose value is a component of the given kind (one of `KINDS`); annotate the field as `Choice`."""
    return Field(
        ... if default is None else Choice(name=default),
        description=help,
        json_schema_extra={"short": None, "argument": False, "kind": kind},
    )
