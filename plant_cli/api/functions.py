"""Functions in specs: a callable, or the name of a function that is imported when it is called.
What they give is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, Never, TypeVar, cast, overload

from plant_cli.api.errors import PluginError
from plant_cli.api.network_packages import explain_import

NAME = re.compile(r"[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*:[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*")
FunctionT = TypeVar("FunctionT")


@dataclass(frozen=True)
class Named:
    """A function by its name, `package.module:function`; calling it imports the module and
    calls the function.
    """

    name: str

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.name) is None:
            raise TypeError(
                f"{self.name!r} names no function: 'package.module:function' is expected"
            )

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
            if missing := explain_import(error, self.name):
                raise missing from error
            raise PluginError(
                f"a function of a plugin cannot be imported: {error}",
                where=self.name,
                expected="a function that exists, as package.module:function",
                todo="install what is missing, or report it to the authors of the plugin; `plant "
                "plugins` lists all plugins",
            ) from error
        return cast(Callable[..., Any], function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function and call it."""
        return self.load()(*arguments, **named)


@dataclass(frozen=True)
class Promise:
    """What a function of a component gives."""

    expected: str
    """In words, as in "a list of texts"."""
    holds: Callable[..., bool]
    """Whether a value is that; it also gets the arguments of the function."""

    def is_kept(self, value: Any, *arguments: Any) -> bool:
        """Whether a value is what was promised to who gave the arguments."""
        try:
            return self.holds(value, *arguments)
        except Exception:  # a strange object may fail at anything
            return False

    def require(self, value: Any, *arguments: Any, who: str, what: str, where: str = "") -> None:
        """Refuse a value that is not what was promised.

        Args:
            value: what the function `what` of the component `who` (`scorer 'x'`) gave.
            arguments: what it was given.
            where: the function, as in messages.
        """
        if not self.is_kept(value, *arguments):
            raise PluginError(
                f"the {who} gave {describe_value(value)} for `{what}`",
                where=where or who,
                expected=self.expected,
                todo="choose another one, or tell its authors; `plant plugins` says who they "
                "are, PLANT_PLUGINS=-NAME leaves a plugin out",
            )


def describe_value(value: Any) -> str:
    """What a value is, for messages: None, or its class, with dtype and shape if it has them."""
    shape = getattr(value, "shape", None)
    kind = (
        "None"
        if value is None
        else f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    )
    return kind + (
        f" of {getattr(value, 'dtype', 'what')}, shape {tuple(shape)}"
        if isinstance(shape, tuple)
        else ""
    )


class ExitCalled(RuntimeError):
    """A component called `sys.exit()`."""


@contextmanager
def surviving_exits() -> Iterator[None]:
    """Turn `sys.exit()` in the block into an error like any other: no component may end a
    command, least of all with success.
    """
    try:
        yield
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        failure = ExitCalled(f"sys.exit({code}) was called while the command was at work")
        raise failure.with_traceback(
            error.__traceback__
        ) from None  # its innermost frame is where that was


@dataclass(frozen=True)
class Guarded:
    """A function of a spec as others call it: `sys.exit()` in it is an error, and what it gives
    is what was promised.
    """

    function: Callable[..., Any]
    who: str = field(compare=False)  # the component, `scorer 'words'`
    what: str = field(compare=False)  # the field of the spec
    promise: Promise | None = field(compare=False)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        with surviving_exits():
            value = self.function(*arguments, **named)
        if self.promise is not None:
            self.promise.require(value, *arguments, who=self.who, what=self.what, where=self._where)
        return value

    @property
    def _where(self) -> str:
        code = getattr(self.function, "__code__", None)
        if code is None:
            return f"{self.who}, {getattr(self.function, 'name', self.what)}"
        return f"{self.who}, {code.co_filename}:{code.co_firstlineno}"


class Function(Generic[FunctionT]):
    """A field of a spec that is set to a function or to its name, and read as a function; None
    if it is not required and left out.
    """

    def __init__(self, gives: Promise | None = None, *, required: bool = True) -> None:
        self.gives = gives
        self.required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.kind = owner.__name__.removesuffix("Spec").lower()

    @overload
    def __get__(self, spec: None, owner: type) -> Never: ...
    @overload
    def __get__(self, spec: object, owner: type) -> FunctionT: ...
    def __get__(self, spec: object | None, owner: type) -> Any:
        """The function; dataclasses read the default from the class itself."""
        if spec is not None:
            function = spec.__dict__[self.name]
            return (
                None
                if function is None
                else Guarded(
                    function, f"{self.kind} '{vars(spec).get('name')}'", self.name, self.gives
                )
            )
        if self.required:
            raise AttributeError(self.name)
        return None

    def __set__(self, spec: object, function: FunctionT | str) -> None:
        """Store the function."""
        plain = function.function if isinstance(function, Guarded) else function
        spec.__dict__[self.name] = Named(plain) if isinstance(plain, str) else plain
