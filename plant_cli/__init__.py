"""PLANT: pretrained and leveraged attention for extreme multi-label text classification."""

from importlib import import_module
from typing import Any

_MODELS = {
    "fit": "fit",
    "load": "open_model",
}  # names in `scoring.opened_models`; __init__.pyi tells type checkers


def __getattr__(name: str) -> Any:
    """The version, `fit` and `load`, looked up when they are asked for: a command that starts
    imports as little as can be.
    """
    if name in _MODELS:
        return getattr(import_module("plant_cli.scoring.opened_models"), _MODELS[name])
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("plant-cli")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+source"
