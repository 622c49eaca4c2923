"""The base of all specs, the record of a plugin, and the registry as plugins and stages see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from plant_cli.api.options import Choice, NoOptions, Options


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a plugin registers for one component: every spec has these fields."""

    name: str
    """Small letters, digits and single dashes, such as `word-bag`; unique within its kind."""
    summary: str
    """One sentence for lists and help; it ends in a full stop and has at most 160 characters."""
    options: type[Options] = NoOptions
    """The class of its options; the checks demand `help` for each of them."""
    source: str = ""
    """The paper and equation that it implements; may be empty."""
    plugin: str = field(default="", init=False, compare=False, repr=False)
    """The name of the plugin that registered it, set by the registry."""


SpecT = TypeVar("SpecT", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """One plugin, loaded or broken."""

    name: str
    """The name of its entry point."""
    distribution: str = "?"
    """The installed package that contains it."""
    version: str = "?"
    """The version of that package."""
    module: str = "?"
    """The name of its module."""
    file: str = "?"
    """The file of its module."""
    error: str | None = None
    """Why it is broken, in one line; None if it works."""
    trace: str | None = None
    """The whole trace of that error."""
    components: tuple[tuple[str, str], ...] = ()
    """Kind and name of each component that it registers."""

    @property
    def state(self) -> str:
        """`ok` or `broken`."""
        return "ok" if self.error is None else "broken"


class ComponentLookup(Protocol):
    """Finds components: `StageContext.component`, or `Registry.resolve`."""

    def __call__(self, kind: type[SpecT], chosen: Choice, /) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options."""
        ...


class Components(Protocol):
    """All registered components. A kind is named by the class of its specs, such as
    `BackboneSpec`.
    """

    @property
    def plugins(self) -> Sequence[PluginRecord]:
        """Every installed plugin, including broken ones."""

    def specs(self, kind: type[SpecT]) -> list[SpecT]:
        """The components of a kind, sorted by name; a name that two plugins register is left
        out.
        """

    def find(self, kind: type[SpecT], name: str) -> SpecT:
        """The spec of a component.

        Raises:
            ComponentError: there is no such component; the message names near ones.
            PluginError: two plugins registered it.
        """

    def resolve(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options. Raises as `find` does, and
        `ComponentError` for wrong options.
        """

    def owner(self, kind: type[Spec], name: str) -> PluginRecord | None:
        """The plugin that registered a component; None if no plugin did."""

    def strangers(self) -> Sequence[PluginRecord]:
        """The working plugins of other distributions."""
