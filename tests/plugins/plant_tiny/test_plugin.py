"""The backbone `tiny` is built from its options."""

from plant_tiny.plugin import plant_register_backbones

from plant_cli.api import MachineSection


def test_the_network_has_the_sizes_that_were_asked_for() -> None:
    (spec,) = plant_register_backbones()
    backbone = spec.load(spec.options(hidden=16, heads=2, layers=1, buckets=64, max_tokens=9), MachineSection())
    assert (spec.name, backbone.hidden_size, backbone.max_length) == ("tiny", 16, 9)
