"""A registry of invented stages, and the command line over it."""

from __future__ import annotations

import io
from types import ModuleType

import pytest

from plant_cli.api import StageSpec, hookimpl
from plant_cli.registry import Registry


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def make_plugin(*specs: StageSpec, name: str = "garden") -> ModuleType:
    """A module that registers these stages."""
    module = ModuleType(name)

    def plant_register_stages() -> list[StageSpec]:
        return list(specs)

    vars(module)["plant_register_stages"] = hookimpl(plant_register_stages)
    return module


@pytest.fixture
def garden(request: pytest.FixtureRequest) -> Registry:
    """A registry with the stages that the test's module lists as `SPECS`."""
    registry = Registry()
    registry.register(make_plugin(*request.module.SPECS), name="garden")
    return registry
