"""Components and where they are found: the base of all specs, the plugins that brought them, and look-ups by the class of spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from plant_cli.api.options import Choice, NoOptions, Options


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What every component has."""

    name: str
    """Kebab-case, unique within its kind."""
    summary: str
    """One sentence for lists and help."""
    options: type[Options] = NoOptions
    """The model of its options."""
    source: str = ""
    """Where it comes from (paper and equation, or empty)."""


SpecT = TypeVar("SpecT", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """One plugin, loaded or broken."""

    name: str
    """Of its entry point."""
    distribution: str = "?"
    """The installed package that holds it."""
    version: str = "?"
    """Of that package."""
    module: str = "?"
    """Its module, as it is imported."""
    file: str = "?"
    """That of its module."""
    error: str | None = None
    """Why it is broken, in one line; None if it works."""
    trace: str | None = None
    """The whole trace of that error."""
    components: tuple[tuple[str, str], ...] = ()
    """Kind and name of each component that it brings."""

    @property
    def state(self) -> str:
        """`ok` or `broken`."""
        return "ok" if self.error is None else "broken"


class Components(Protocol):
    """The components of all plugins. A kind is named by the class of its specs, such as `BackboneSpec`."""

    @property
    def plugins(self) -> Sequence[PluginRecord]:
        """Every plugin that was found, broken ones too."""
        ...

    def specs(self, kind: type[SpecT]) -> list[SpecT]:
        """All usable components of a kind, by name; names with two owners are left out."""
        ...

    def find(self, kind: type[SpecT], name: str) -> SpecT:
        """The spec of a component.

        Raises:
            ComponentError: there is no such component; the message names near ones.
            PluginError: two plugins registered it.
        """
        ...

    def resolve(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options; errors as of `find`, and `ComponentError` for its options."""
        ...

    def owner(self, kind: type[Spec], name: str) -> PluginRecord | None:
        """The plugin that registered a component; None if nobody did."""
        ...
