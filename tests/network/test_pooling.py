"""The pooling matrix is adaptive average pooling."""

import pytest
import torch

from plant_cli.network.attention import pooling_matrix


@pytest.mark.parametrize(("hidden", "bins"), [(12, 4), (12, 5), (384, 128), (100, 128), (7, 7), (9, 1)])
def test_equals_adaptive_average_pooling(hidden: int, bins: int) -> None:
    x = torch.randn(3, hidden, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.nn.functional.adaptive_avg_pool1d(x, bins)
    torch.testing.assert_close(x @ pooling_matrix(hidden, bins).T, expected)
