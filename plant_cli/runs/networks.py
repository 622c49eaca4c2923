"""The plugin that brings networks: the core asks it to train and to open one, and imports no
torch itself.
"""

from __future__ import annotations

from plant_cli.api import ComponentError, NetworkSpec, PluginError
from plant_cli.api.components import Components
from plant_cli.api.network_packages import INSTALL


def find_networks(components: Components) -> NetworkSpec:
    """What the plugin that brings networks offers.

    Raises:
        ComponentError: no plugin brings them.
        PluginError: several do.
    """
    found = components.specs(NetworkSpec)
    if not found:
        raise ComponentError(
            "no plugin that brings networks is at work",
            where="networks",
            expected="the plugin `network` of plant-cli",
            todo=f"`{INSTALL}` installs it, and PLANT_PLUGINS must not leave it out; `plant "
            "plugins` lists what is loaded",
        )
    if len(found) > 1:
        raise PluginError(
            f"{len(found)} plugins bring networks",
            where=", ".join(spec.plugin for spec in found),
            expected="one plugin that brings them",
            todo="PLANT_PLUGINS=-NAME leaves one out",
        )
    return found[0]
