"""What is known of a plugin."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from plant_cli.api import PluginRecord, Spec


def test_a_plugin_with_an_error_is_broken() -> None:
    assert PluginRecord(name="rose").state == "ok"
    assert PluginRecord(name="weed", error="ImportError: no").state == "broken"


def test_a_spec_cannot_be_changed() -> None:
    spec = Spec(name="thorn", summary="A thorn.")
    with pytest.raises(FrozenInstanceError):
        spec.name = "other"  # type: ignore[misc]
