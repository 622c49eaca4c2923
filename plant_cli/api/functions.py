"""Functions of specs: a callable, or the name of one that is imported when it is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Never, TypeVar, overload

from plant_cli.api.errors import PluginError

NAME = re.compile(r"[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*:[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*")
FunctionT = TypeVar("FunctionT")


@dataclass(frozen=True)
class Named:
    """A function by its name, `package.module:function`; calling it imports the module and calls the function."""

    name: str

    def __post_init__(self) -> None:
        """Refuse a name of another form."""
        if NAME.fullmatch(self.name) is None:
            raise TypeError(f"{self.name!r} names no function: 'package.module:function' is expected")

    @property
    def module(self) -> str:
        """The module that holds the function."""
        return self.name.partition(":")[0]

    def load(self) -> Callable[..., Any]:
        """The function itself.

        Raises:
            PluginError: there is no such module or no such function.
        """
        try:
            value: Any = import_module(self.module)
            for part in self.name.partition(":")[2].split("."):
                value = getattr(value, part)
        except (ModuleNotFoundError, AttributeError) as error:
            raise PluginError(
                f"a function of a plugin cannot be imported: {error}",
                where=self.name,
                expected="a function that exists, as package.module:function",
                todo="install what is missing, or report it to the authors of the plugin; `plant plugins` lists all plugins",
            ) from error
        function: Callable[..., Any] = value
        return function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function and call it."""
        return self.load()(*arguments, **named)


class Function(Generic[FunctionT]):
    """A field of a spec that is set to a function or to the name of one, and read as a function.

    Args:
        required: false if the spec may leave it out; it is then None.
    """

    def __init__(self, *, required: bool = True) -> None:
        self.required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, spec: None, owner: type) -> Never: ...
    @overload
    def __get__(self, spec: object, owner: type) -> FunctionT: ...
    def __get__(self, spec: object | None, owner: type) -> Any:
        """The function; for the class of specs itself its default, as dataclasses ask for it."""
        if spec is not None:
            return spec.__dict__[self.name]
        if self.required:
            raise AttributeError(self.name)
        return None

    def __set__(self, spec: object, function: FunctionT | str) -> None:
        """Keep the function, or what imports it."""
        spec.__dict__[self.name] = Named(function) if isinstance(function, str) else function
