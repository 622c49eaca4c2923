"""Options models: the one declaration of an option. Recipe keys, `--flags`, help, validation and docs come from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

LARGEST = 2**63 - 1  # of the whole numbers that tensors and tables hold


class Options(BaseModel):
    """Base of every options model: immutable; unknown keys, infinite numbers and what is not a number are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False, defer_build=True, protected_namespaces=()
    )

    @field_validator("*")
    @classmethod
    def _refuse_what_nothing_can_hold(cls, value: Any) -> Any:
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, int) and abs(item) > LARGEST:
                raise ValueError(f"a whole number from -{LARGEST} to {LARGEST}")
            if isinstance(item, str) and "\0" in item:
                raise ValueError("text without the character NUL")
        return value

    def check_values(self) -> None:
        """Refuse values that cannot be meant, with a `UsageError` of its own; by default none.

        It is called for every step of a recipe before the first one runs. A model overrides it for what rules of pydantic cannot say, or
        say worse: they name the option and the line, this names what to write instead.
        """

    def located(self) -> Self:
        """The same options with absolute paths, so that a run finds its files from any working directory.

        Only options declared with `path`, and only what exists: a path that leads to nothing may mean something else, and so may a plain
        name in a list or of an option declared with `path="or name"`.
        """
        kinds = {name: _path_kind(info) for name, info in type(self).model_fields.items()}
        located = {name: _located(getattr(self, name), names=kind == "or name") for name, kind in kinds.items() if kind}
        return self.model_copy(update=located)

    def paths(self) -> list[str]:
        """What options declared with `path` name, as far as it exists."""
        values = [getattr(self, name) for name, info in type(self).model_fields.items() if _path_kind(info)]
        single = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
        return [item for item in single if item is not None and Path(item).exists()]


def _path_kind(info: FieldInfo) -> Any:
    return info.json_schema_extra.get("path") if isinstance(info.json_schema_extra, dict) else None


def _located(value: Any, *, names: bool) -> Any:
    """An absolute path; with `names` a value without slash and dot is a name, which stays as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(_located(item, names=True) for item in value)
    if value is None or (names and not {"/", os.sep, "."} & set(value)):
        return value
    return str(Path(value).absolute()) if Path(value).exists() else value


class NoOptions(Options):
    """For a component that has nothing to choose."""


class Choice(Options):
    """A component chosen by name, with its own options still unvalidated.

    In a recipe either the name (`backbone: minilm`) or a mapping that holds it beside the options
    (`backbone: {name: minilm, max_tokens: 512}`); on the command line the name, with `--set` for the options.
    """

    name: str = Field(description="The component's name.")
    options: dict[str, Any] = Field(default_factory=dict, description="Its options, as a recipe gives them.")

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


def former_names(model: type[Options]) -> dict[str, str]:
    """The present name of each option that had another name before (`was=`), by its former name."""
    found = {name: info.json_schema_extra for name, info in model.model_fields.items()}
    return {str(extra["was"]): name for name, extra in found.items() if isinstance(extra, dict) and extra.get("was")}


def consent_options(model: type[Options]) -> list[str]:
    """The options of a model that need the user's consent (`consent=True`)."""
    found = {name: info.json_schema_extra for name, info in model.model_fields.items()}
    return [name for name, extra in found.items() if isinstance(extra, dict) and extra.get("consent")]


def option(
    default: Any = ...,
    help: str = "",
    *,
    short: str | None = None,
    argument: bool = False,
    path: bool | Literal["or name"] = False,
    was: str | None = None,
    consent: bool = False,
    keys: str | None = None,
    **rules: Any,
) -> Any:
    """One option of an options model.

    Args:
        default: its value when nobody says otherwise; leave out for a required option.
        help: one sentence for `--help` and the docs, with the unit where there is one.
        short: a one-letter flag such as `"-O"`.
        argument: true for a positional argument.
        path: true if the value names a file or folder, or is a list of such: a run keeps it absolute (`Options.located`). `"or name"` if it
            may also be a name, such as that of a stage in the run: a value without slash and dot then stays as it is, as in a list.
        was: the option's former name: a flag or a recipe key of that name is refused with a message that names the new one.
        consent: true if another value than the default needs the user's consent, since strange code would run: it counts on the command
            line and in a recipe that the user names, and is refused where a file of a run folder asks for it.
        keys: of a mapping whose keys name components and whose values are their options: the kind in `plant_cli.api.kinds.KINDS`.
        rules: pydantic's constraints (`ge`, `le`, `gt`, `pattern`, …).
    """
    extra: dict[str, Any] = {"short": short, "argument": argument, "path": path, "was": was, "consent": consent, "kind": None, "keys": keys}
    return Field(default, description=help, json_schema_extra=extra, **rules)


def choice(kind: str, default: str | None, help: str, *, was: str | None = None) -> Any:
    """An option whose value is a component; annotate the field as `Choice`.

    Args:
        kind: a name in `plant_cli.api.kinds.KINDS`, such as "loss".
        default: the component's name; None if none is chosen unless somebody says so, the field is then `Choice | None`.
        help: one sentence for `--help` and the docs.
        was: the option's former name, as in `option`.
    """
    return Field(
        None if default is None else Choice(name=default),
        description=help,
        json_schema_extra={"short": None, "argument": False, "was": was, "kind": kind},
    )
