"""The formats that are registered."""

from importlib import import_module

from plant_datasets.formats.registration import FORMATS


def test_each_format_has_a_module_that_reads_recognises_and_writes() -> None:
    for spec in FORMATS:
        module = import_module(f"plant_datasets.formats.{spec.name.replace('-', '_')}")
        assert all(callable(getattr(module, name)) for name in ("load", "recognise", "write")), spec.name
