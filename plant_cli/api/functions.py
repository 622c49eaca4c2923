"""Functions in specs: a callable, or the name of a function that is imported when it is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Never, TypeVar, cast, overload

from plant_cli.api.errors import PluginError

NAME = re.compile(r"[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*:[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*")
FunctionT = TypeVar("FunctionT")


@dataclass(frozen=True)
class Named:
    """A function by its name, `package.module:function`; calling it imports the module and calls the function."""

    name: str

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.name) is None:
            raise TypeError(f"{self.name!r} names no function: 'package.module:function' is expected")

    @property
    def module(self) -> str:
        """The module that holds the function."""
        return self.name.partition(":")[0]

    def load(self) -> Callable[..., Any]:
        """Import the function; `PluginError` if it does not exist."""
        try:
            function: Any = import_module(self.module)
            for part in self.name.partition(":")[2].split("."):
                function = getattr(function, part)
        except (ModuleNotFoundError, AttributeError) as error:
            raise PluginError(
                f"a function of a plugin cannot be imported: {error}",
                where=self.name,
                expected="a function that exists, as package.module:function",
                todo="install what is missing, or report it to the authors of the plugin; `plant plugins` lists all plugins",
            ) from error
        return cast(Callable[..., Any], function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function and call it."""
        return self.load()(*arguments, **named)


class Function(Generic[FunctionT]):
    """A field of a spec that is set to a function or to its name, and read as a function; None if it is not required and left out."""

    def __init__(self, *, required: bool = True) -> None:
        self.required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, spec: None, owner: type) -> Never: ...
    @overload
    def __get__(self, spec: object, owner: type) -> FunctionT: ...
    def __get__(self, spec: object | None, owner: type) -> Any:
        """The function; dataclasses read the default from the class itself."""
        if spec is not None:
            return spec.__dict__[self.name]
        if self.required:
            raise AttributeError(self.name)
        return None

    def __set__(self, spec: object, function: FunctionT | str) -> None:
        """Store the function."""
        spec.__dict__[self.name] = Named(function) if isinstance(function, str) else function
