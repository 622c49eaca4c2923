"""The literal network is what the paper writes, number by number."""

import torch
from torch import nn

from plant_cli.network.attention import LiteralHead, literal_logits


def test_one_head_of_one_dimension_by_hand() -> None:
    """Q = 1, keys = values = (0, ln 3): attention (1/4, 3/4), gathered 3/4 ln 3; boosted by 2 and 1, projected by 4, bias 5."""
    attention = nn.MultiheadAttention(1, 1, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        attention.in_proj_weight.fill_(1.0)
        attention.out_proj.weight.fill_(1.0)
        attention.in_proj_bias.zero_()
        attention.out_proj.bias.zero_()
    ones = torch.ones(1, 1, dtype=torch.float64)
    head = LiteralHead(queries=ones, attention=attention, boost_scale=2 * ones, boost_shift=ones, projection=4 * ones[0], bias=5 * ones[0])
    hidden = torch.tensor([[[0.0], [3.0], [7.0]]], dtype=torch.float64)
    hidden[0, 1] = torch.tensor(3.0, dtype=torch.float64).log()
    logits, weights = literal_logits(head, hidden, torch.tensor([[True, True, False]]))
    gathered = 0.75 * torch.tensor(3.0, dtype=torch.float64).log()
    torch.testing.assert_close(weights[0, 0], torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64))
    torch.testing.assert_close(logits[0, 0], 4 * (1 + 2 * gathered) + 5)
