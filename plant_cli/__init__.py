"""PLANT: pretrained and leveraged attention for extreme multi-label text classification."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("plant-cli")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+source"
