"""PLANT: pretrained and leveraged attention for extreme multi-label text classification."""

__version__: str


def __getattr__(name: str) -> str:
    """The version, looked up when it is asked for: a command that starts imports as little as can be."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("plant-cli")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+source"
