"""The hooks as pluggy sees them."""

from __future__ import annotations

from types import ModuleType

import pluggy

from plant_cli.api import Spec, hookimpl
from plant_cli.api.hooks import GROUP, HOOK_SPECS, HOOKS


def test_pluggy_calls_each_hook_of_a_plugin() -> None:
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(HOOK_SPECS)
    for name, kind in HOOKS.items():
        module = ModuleType(f"plugin_{kind.name}")
        vars(module)[name] = hookimpl(lambda found=kind.name: [Spec(name=found, summary="A.")], specname=name)
        manager.register(module)
    manager.check_pending()
    for name, kind in HOOKS.items():
        assert [[spec.name for spec in found] for found in getattr(manager.hook, name)()] == [[kind.name]]


def test_a_hook_by_itself_registers_nothing() -> None:
    for name in HOOKS:
        assert list(getattr(HOOK_SPECS, name)()) == []
