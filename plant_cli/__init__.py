"""PLANT: pretrained and leveraged attention for extreme multi-label text classification."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plant_cli.scoring.opened_models import fit as fit
    from plant_cli.scoring.opened_models import open_model as load

__all__ = ["__version__", "fit", "load"]
__version__: str
_MODELS = {"fit": "fit", "load": "open_model"}  # names in `scoring.opened_models`


def __getattr__(name: str) -> Any:
    """The version, `fit` and `load`, looked up when they are asked for: a command that starts imports as little as can be."""
    from importlib.metadata import PackageNotFoundError, version

    if name in _MODELS:
        return getattr(import_module("plant_cli.scoring.opened_models"), _MODELS[name])
    if name != "__version__":
        raise AttributeError(name)

    try:
        return version("plant-cli")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+source"
