"""`plant plugins` and `plant plugins show` over an invented registry."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from plant_cli.api import LossSpec, NoOptions, Options, PluginError, PluginRecord, hookimpl, option
from plant_cli.commands import plugins
from plant_cli.registry import Registry
from plant_cli.testing.contexts import make_context


class ThornOptions(Options):
    sharpness: float = option(0.5, "How sharp.", gt=0, le=1)
    bush: str = option(help="Which bush.")


def _loss(name: str) -> LossSpec:
    return LossSpec(
        name=name,
        summary="A thorn.",
        options=ThornOptions,
        source="Rose 2020",
        stage="label",
        build=lambda options: None,
    )  # type: ignore[arg-type,return-value]


def _module(*specs: Any) -> ModuleType:
    def plant_register_losses() -> list[Any]:
        return list(specs)

    module = ModuleType("rose")
    module.plant_register_losses = hookimpl(plant_register_losses)  # type: ignore[attr-defined]
    return module


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    made.register(_module(_loss("thorn"), _loss("prick")), name="rose")
    made.plugins.append(
        PluginRecord(name="weed", distribution="weeds", version="2", error="ImportError: no")
    )
    return made


def _show(registry: Registry, **options: Any) -> Any:
    return plugins.show_component(
        make_context(components=registry), plugins.PluginShowOptions(**options)
    )


def test_list_names_components_and_what_is_broken(registry: Registry) -> None:
    result = plugins.list_plugins(make_context(components=registry), NoOptions())
    rows = [row[:5] for row in result.tables[0].rows]
    assert rows[0][0] == "rose"
    assert rows[0][3:] == ("ok", "loss: thorn, prick")
    assert rows[1] == ("weed", "weeds", "2", "broken", "")
    assert result.tables[0].notes == ["weed is broken: ImportError: no"]
    assert result.data["plugins"][1]["error"] == "ImportError: no"


def test_show_has_every_option_with_type_default_limits_help(registry: Registry) -> None:
    result = _show(registry, name="thorn")
    assert result.tables[0].rows == [
        ("sharpness", "number", "0.5", "> 0 and <= 1", "How sharp."),
        ("bush", "text", "required", "", "Which bush."),
    ]
    assert "Source: Rose 2020" in result.tables[0].notes
    assert result.data["components"][0]["plugin"] == "rose"


def test_two_owners_are_explained(registry: Registry) -> None:
    registry.register(_module(_loss("thorn")), name="bramble")
    with pytest.raises(PluginError, match=r"rose.*and bramble"):
        _show(registry, name="thorn")
