"""The device that a machine section names, for plugins that train something of their own."""

from plant_cli.base.devices import find_device

__all__ = ["find_device"]
