"""How the rate of a backbone is spread over its layers."""

import pytest

from plant_cli.training.options import layer_share


def test_shares_fall_from_the_last_layers_to_the_first() -> None:
    assert [layer_share(depth, "equal") for depth in range(3)] == [1.0, 1.0, 1.0]
    assert [layer_share(depth, "harmonic") for depth in range(4)] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert [layer_share(depth, "geometric") for depth in range(3)] == pytest.approx([1, 1 / 2.6, 1 / 6.76])
